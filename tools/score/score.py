"""Runs every job of a collection once and the controls often, and counts what is right."""

from __future__ import annotations

import os
import platform
import signal
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import psutil

from helpers.observe.recording import provenance

from . import trial as trials
from .jobs import Job
from .trial import Check, Trial

LEAST = 0.95
"""The least share of causes and of lines that has to be right."""

CONTROL_RUNS = 100
"""Runs of controls without a single false alarm that the bar asks for."""


@dataclass(frozen=True)
class Score:
    """The result of a number of trials.

    Attributes:
        planned: how many runs were to be made; more than there are when the run was interrupted.
    """

    trials: tuple[Trial, ...]
    planned: int = 0

    @property
    def failing(self) -> tuple[Trial, ...]:
        """The runs of jobs that do not end well, in which there is something to find."""
        return tuple(trial for trial in self.trials if not trial.job.control)

    @property
    def controls(self) -> tuple[Trial, ...]:
        """The runs of jobs with nothing wrong."""
        return tuple(trial for trial in self.trials if trial.job.control)

    @property
    def false_alarms(self) -> int:
        """Runs of controls that were said to hang or to fail."""
        return sum(trial.false_alarm for trial in self.controls)

    @property
    def leftovers(self) -> int:
        """Processes, ports and run folders that runs have left behind."""
        return sum(len(trial.left) for trial in self.trials)

    @property
    def delays(self) -> tuple[tuple[float, float], ...]:
        """Seconds from the job's own mark to the verdict, and to the end, of each proved hang."""
        return tuple(
            (trial.verdict, trial.ended)
            for trial in self.failing
            if trial.job.outcome == "hang" and trial.job.proved
            if trial.verdict is not None and trial.ended is not None
        )

    def right(self, kind: str) -> tuple[int, int]:
        """How many are right of how many: runs for `outcome`, places for `line`, else jobs that fail."""
        if kind == "line":
            lines = [check for trial in self.failing for check in trial.checks() if check.kind == kind]
            return sum(check.right for check in lines), len(lines)
        asked = self.trials if kind == "outcome" else self.failing
        if kind in ("parting", "applies"):
            asked = tuple(trial for trial in asked if any(c.wanted for c in trial.of_kind(kind)))
        wrong = [trial for trial in asked if any(check.kind == kind for check in trial.wrong())]
        return len(asked) - len(wrong), len(asked)

    @property
    def misnamed(self) -> int:
        """Runs that named a statement at which the ranks did not part, or a fix that does not fit."""
        return sum(
            any(check.seen and not check.right and not _fewer(check) for check in trial.of_kind(kind))
            for trial in self.failing
            for kind in ("parting", "applies")
        )

    def bar(self) -> dict[str, bool]:
        """Each demand in words, and whether it is met."""
        delays = [verdict for verdict, _ in self.delays]
        demands = {
            "outcome right: 100 %": share(self.right("outcome")) == 1.0,
            f"cause right: {LEAST * 100:.0f} % at least": share(self.right("cause")) >= LEAST,
            f"lines right: {LEAST * 100:.0f} % at least": share(self.right("line")) >= LEAST,
            f"statements right: {LEAST * 100:.0f} % at least": share(self.right("parting")) >= LEAST,
            f"fixes right: {LEAST * 100:.0f} % at least": share(self.right("applies")) >= LEAST,
            "wrong statements and fixes: none": self.misnamed == 0,
            "false alarms: none": self.false_alarms == 0,
            "leftovers: none": self.leftovers == 0,
        }
        if delays:
            prompt = statistics.median(delays) <= trials.PROMPT
            demands[f"median from a provable stall to its verdict: {trials.PROMPT:.0f} s at most"] = (
                prompt
            )
        return demands


def measure(
    jobs: Mapping[str, Job],
    *,
    controls: int = 0,
    record: Path | None = None,
) -> Score:
    """Run every job and say on standard error, run by run, what came out.

    Ctrl-C or SIGTERM ends the job that runs, and what was done until then counts.

    Args:
        controls: how many runs of controls there shall be in all: those that tests run, too, are
            repeated in turn until there are so many.
        record: folder for one recording a job, None for none.
    """
    listed = list(jobs.values())
    quick = [job for job in jobs.values() if job.control and job.suite != "score"]
    missing = max(0, controls - sum(job.control for job in listed))
    listed += islice(cycle(quick), missing)
    done: list[Trial] = []
    with _ended_by_sigterm(), suppress(KeyboardInterrupt):
        for job in listed:
            file = record / f"{job.name}.jsonl.gz" if record is not None else None
            done.append(trials.run(job, file))
            _tell(done[-1], f"{len(done)}/{len(listed)}")
    return Score(tuple(done), len(listed))


def _tell(trial: Trial, number: str) -> None:
    wrong = "; ".join(said(check) for check in trial.wrong()) or "right"
    print(f"{number} {trial.job.name}: {wrong} ({trial.took:.1f} s)", file=sys.stderr, flush=True)
    if any(check.kind != "time" for check in trial.wrong()):
        print(trial.story(), file=sys.stderr, flush=True)


def to_markdown(score: Score) -> str:
    """The result as a page: what was run where, the bar, the numbers, every job."""
    parts = [
        "# How often the instrument is right",
        "",
        f"{_counted(score)}, with {made()}.",
        "",
        *_summary(score),
    ]
    if score.failing:
        parts += [
            "",
            "| job | outcome | cause | culprits | lines | parted at | fixes | verdict | ended | left |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *(_row(trial) for trial in _first_of_each(score.failing)),
            "",
            "`verdict` and `ended` are seconds from the mark that the job writes just before the call "
            "that blocks it: to the verdict, and to the moment when all is stopped and the command line "
            "has returned. Jobs that patience decides, or that end by themselves, are not timed.",
        ]
    if score.controls:
        parts += [
            "",
            "| job with nothing wrong | runs | ended as it should | seconds, at most |",
            "|---|---|---|---|",
            *_controls(score.controls),
        ]
    mistakes = [
        f"- {trial.job.name}: {'; '.join(said(check) for check in trial.wrong())}"
        for trial in score.trials
        if trial.wrong()
    ]
    if mistakes:
        parts += ["", "Not as it should be:", "", *mistakes]
    return "\n".join(parts) + "\n"


def _counted(score: Score) -> str:
    done = len(score.trials)
    return (
        f"{done} runs" if done >= score.planned else f"{done} of {score.planned} runs, then ended early"
    )


def _summary(score: Score) -> Iterator[str]:
    yield "| measure | result |"
    yield "|---|---|"
    for kind, name in (
        ("outcome", "outcome right"),
        ("cause", "cause right"),
        ("culprits", "culprits right"),
        ("line", "lines right"),
        ("parting", "statements right, where there is one"),
        ("applies", "fixes right, where some fit"),
    ):
        right, asked = score.right(kind)
        if asked:
            yield f"| {name} | {right} of {asked} ({share((right, asked)):.1%}) |"
    yield f"| wrong statements and fixes | {score.misnamed} in {len(score.failing)} runs |"
    yield f"| false alarms | {score.false_alarms} in {len(score.controls)} runs of controls |"
    yield f"| left behind | {score.leftovers} in {len(score.trials)} runs |"
    delays = score.delays
    for name, values in (("verdict", [v for v, _ in delays]), ("the end", [e for _, e in delays])):
        if values:
            middle, most = statistics.median(values), max(values)
            yield f"| stall to {name} | median {middle:.2f} s, most {most:.2f} s, {len(values)} runs |"
    yield ""
    for demand, met in score.bar().items():
        yield f"- {demand}: {'met' if met else 'MISSED'}"
    if len(score.controls) < CONTROL_RUNS:
        yield f"- runs of controls: {len(score.controls)}, which is fewer than {CONTROL_RUNS}"


def _row(trial: Trial) -> str:
    checks = trial.checks()
    parting = _plain(next((check.seen for check in trial.of_kind("parting")), None))
    cells = [
        *judged(trial.job, trial.report, checks),
        _cell("parting", parting, checks),
        _cell("applies", _plain(tuple(trial.report.get("applies", ()))), checks),
        "" if trial.verdict is None or not trial.job.prompt else f"{trial.verdict:.2f}",
        "" if trial.ended is None or not trial.job.prompt else f"{trial.ended:.2f}",
        str(len(trial.left)),
    ]
    return f"| {' | '.join(cells)} |"


def _fewer(check: Check) -> bool:
    """True for an answer that has nothing wrong in it, only less than was to be said."""
    wanted, seen = check.wanted, check.seen
    both = check.kind == "applies" and isinstance(wanted, tuple) and isinstance(seen, tuple)
    return both and set(seen) <= set(wanted)


def judged(job: Job, report: Mapping[str, Any], checks: Sequence[Check]) -> list[str]:
    """The cells for a job, its outcome, cause, culprits and lines, in a row of any table."""
    lines = [check for check in checks if check.kind == "line"]
    culprits = ", ".join(map(str, report.get("culprits", ()))) or "none"
    return [
        job.name,
        _cell("outcome", report.get("outcome"), checks),
        _cell("cause", report.get("cause"), checks),
        _cell("culprits", culprits, checks),
        f"{sum(check.right for check in lines)} of {len(lines)}",
    ]


def _cell(kind: str, seen: object, checks: Sequence[Check]) -> str:
    """A cell of a table: what came out, or in bold what is wrong with it."""
    wrong = [said(check) for check in checks if check.kind == kind and not check.right]
    return f"**{'; '.join(wrong)}**" if wrong else str(seen)


def said(check: Check) -> str:
    """What came out of a check, and what was to come out."""
    return f"{check.what} {_plain(check.seen)}, not {_plain(check.wanted)}"


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return ":".join(map(str, value)) if _is_line(value) else ", ".join(map(str, value)) or "none"
    return str(value)


def _is_line(value: tuple[object, ...]) -> bool:
    return len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], int)


def _controls(controls: Sequence[Trial]) -> Iterator[str]:
    runs = Counter(trial.job.name for trial in controls)
    for name, count in runs.items():
        own = [trial for trial in controls if trial.job.name == name]
        right = sum(not trial.wrong() for trial in own)
        yield f"| {name} | {count} | {right} | {max(trial.took for trial in own):.0f} |"


def _first_of_each(found: Sequence[Trial]) -> list[Trial]:
    return list({trial.job.name: trial for trial in reversed(found)}.values())[::-1]


def share(counted: tuple[int, int]) -> float:
    """Those that are right of those that were asked, 1.0 of none."""
    right, asked = counted
    return right / asked if asked else 1.0


def commit() -> str:
    """The commit of this checkout, with `-dirty` where files differ from it; `unknown` without git.

    The pages of measurements may differ: other parts of them may have been written before.
    """
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/*.md")
    name = _git("rev-parse", "--short", "HEAD")
    return f"{name}-dirty" if name and changed else name or "unknown"


def _git(*words: str) -> str:
    with suppress(OSError):
        asked = ["git", "-C", str(trials.ROOT), *words]
        return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return ""


def made() -> str:
    """Versions, machine, its load and the date, in words."""
    versions = {k: v for k, v in provenance().items() if k in ("python", "torch", "lightning")}
    system = f"{platform.system()} {platform.machine()}"
    memory = psutil.virtual_memory().total / 2**30
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    cores = len(os.sched_getaffinity(0)) if platform.system() == "Linux" else os.cpu_count()
    return (
        f"{names}, on {system}, {cores} cores, {memory:.0f} GiB of memory, "
        f"load {os.getloadavg()[2]:.1f} in the last 15 minutes, on {datetime.now(UTC):%Y-%m-%d}"
    )


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does, so that the job it has started ends, too."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
