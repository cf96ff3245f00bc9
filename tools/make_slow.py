"""Run jobs in which one rank is slow, or none is, and say how often the instrument names the right one.

    python tools/make_slow.py --kept idle.jsonl --markdown benchmarks/slow.md
    python tools/make_slow.py --busy --kept busy.jsonl --markdown benchmarks/slow.md

An interrupted command is resumed by the same one. Each condition has a section of the page.

The truth is measured in the same run, by what the ranks note of their calls: see slow_truth.py. A run in
which that is not what the program was written for, as on a machine too busy for it, is void: it counts
for nothing but false alarms of a hang. Exit codes: 0 all is as promised, 1 it is not, 64 wrong usage,
130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import slow_truth
from msgspec import Meta, Struct
from score.score import commit, made
from sections import put

from helpers.labs import toml_file
from helpers.launch.processes import free_port

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "slow"
FILE = "slow.toml"
MARK = "# <- slow"
TITLE = "For whom the others wait"
LEDGER = "SLOW_LEDGER"
"""The environment variable that names the folder in which the ranks note their calls."""

LIMIT = 300.0
"""Seconds after which a run is ended."""

JOINS = 120.0
"""Seconds in which a job that is attached to has to join."""

LOOKS = "20"
"""Seconds for which `attach` looks."""

NEAR = 0.10
"""By how much a share may differ from the true one."""

Kind = Literal["compute", "input", "io", "gil", "quota", "stopped", "gc", "compile", "data", "unknown"]


class Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What slow.toml says of one program.

    Attributes:
        command: as a user types it, with `{port}` for a free port.
        ranks: those that the others wait for; empty where none stands out.
        kind: what makes them slow; several where more than one is a right name for it.
        line: `any` where the slow line is not always the same.
        needs: a file that has to be writable for the program to run.
        says: the program in one sentence.
    """

    command: Annotated[str, Meta(pattern=r"\w+\.py\b")]
    ranks: tuple[int, ...]
    says: Annotated[str, Meta(min_length=1)]
    kind: tuple[Kind, ...] = ()
    line: Literal["marked", "any"] = "marked"
    needs: str = ""

    @property
    def program(self) -> str:
        """The file that the command names."""
        found = re.search(r"\w+\.py\b", self.command)
        assert found is not None
        return found[0]

    @property
    def can_run(self) -> bool:
        """True where this machine has what the program needs."""
        return not self.needs or os.access(self.needs, os.W_OK)

    def lines(self) -> set[int]:
        """The numbers of the marked lines."""
        text = (FOLDER / self.program).read_text().splitlines()
        return {number for number, line in enumerate(text, start=1) if line.endswith(MARK)}


@dataclass(frozen=True)
class Trial:
    """One run of one program.

    Attributes:
        report: the JSON report; empty where there is none.
    """

    name: str
    declared: Declared
    truth: slow_truth.Truth
    report: Mapping[str, Any]

    @property
    def slow(self) -> Mapping[str, Any]:
        """What the report says of slow ranks; empty where it names none."""
        return self.report.get("slow") or {}

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks that the report names."""
        return tuple(self.slow.get("ranks") or ())

    @property
    def void(self) -> bool:
        """True where the run was not as declared."""
        return self.truth.slow() != self.declared.ranks

    @property
    def hang(self) -> bool:
        """True for a job that was called hung."""
        return self.report.get("outcome") == "hang"

    @property
    def well(self) -> bool:
        """True where the outcome is that of a job with nothing wrong."""
        return self.report.get("outcome") in ("ok", "running") and self.report.get("cause") == "none"

    @property
    def rank_right(self) -> bool:
        """True where exactly the true ranks are named, and `rank` is the only one or null."""
        ranks = self.declared.ranks
        alone = ranks[0] if len(ranks) == 1 else None
        return self.ranks == ranks and self.slow.get("rank") == alone

    @property
    def line_right(self) -> bool:
        """True where a marked line is named, or the rank is where no line is asked."""
        if self.declared.line == "any":
            return self.rank_right
        where = self.slow.get("where") or {}
        return where.get("file") == self.declared.program and where.get("line") in self.declared.lines()

    @property
    def share_right(self) -> bool:
        """True where the share is near that of the truth."""
        share = self.slow.get("share")
        return share is not None and abs(share - self.truth.share(self.declared.ranks)) <= NEAR

    @property
    def checks(self) -> dict[str, bool]:
        """What is asked of a program with a slow rank, and whether it is right."""
        return {
            "rank": self.rank_right,
            "line": self.line_right,
            "share": self.share_right,
            "kind": self.slow.get("kind") in self.declared.kind,
        }

    def wrong(self) -> tuple[str, ...]:
        """What is wrong, in words."""
        found = [("called hung" if self.hang else "outcome")] if not self.well else []
        if self.void:
            return ("void", *found)
        if not self.declared.ranks:
            return (*found, "blamed") if self.slow else tuple(found)
        return (*found, *(check for check, right in self.checks.items() if not right))


@dataclass(frozen=True)
class Score:
    """All runs."""

    trials: Sequence[Trial]

    def of(self, *, slow: bool) -> list[Trial]:
        """The runs that count, of programs with a slow rank or of the others."""
        return [one for one in self.trials if not one.void and bool(one.declared.ranks) == slow]

    def right(self, check: str) -> tuple[int, int]:
        """How many slow programs have a check right, of how many."""
        slow = self.of(slow=True)
        return sum(one.checks[check] for one in slow), len(slow)

    def bar(self) -> dict[str, bool]:
        """Each demand in words, and whether it is met."""
        controls, named = self.of(slow=False), [one for one in self.of(slow=True) if one.rank_right]
        return {
            "rank right: 95 % at least": _share(self.right("rank")) >= 0.95,
            "line right: 90 % at least": _share(self.right("line")) >= 0.90,
            "share within 0.10 wherever the rank is right": all(one.share_right for one in named),
            "controls blamed: none": not any(one.slow for one in controls),
            "called hung: none": not any(one.hang for one in self.trials),
            "outcome right: all": all(one.well for one in self.trials),
            "void: a tenth at most": sum(one.void for one in self.trials) <= len(self.trials) / 10,
        }

    def to_markdown(self, title: str, made: str) -> str:
        """The result as a section of a page.

        Args:
            made: when, where and with what the runs were made.
        """
        controls = self.of(slow=False)
        page = [f"## {title}", "", made, "", "| measure | result |", "|---|---|"]
        for check, words in (("rank", "rank right"), ("line", "line right"), ("kind", "kind right")):
            page.append(f"| {words} | {_ratio(self.right(check))} |")
        named = [one for one in self.of(slow=True) if one.rank_right]
        near = (sum(one.share_right for one in named), len(named))
        page += [
            f"| share within {NEAR:.2f} where the rank is right | {_ratio(near)} |",
            f"| controls blamed | {sum(bool(one.slow) for one in controls)} of {len(controls)} |",
            f"| called hung | {sum(one.hang for one in self.trials)} of {len(self.trials)} |",
            f"| void | {sum(one.void for one in self.trials)} of {len(self.trials)} |",
            "",
            *(f"- {demand}: {'met' if met else 'MISSED'}" for demand, met in self.bar().items()),
            "",
            "| program | slow ranks | named | true share | share | line | kind | outcome | wrong |",
            "|---|---|---|---|---|---|---|---|---|",
            *map(_row, self.trials),
        ]
        return "\n".join(page) + "\n"


def _row(one: Trial) -> str:
    where = one.slow.get("where") or {}
    share = one.slow.get("share")
    measured = one.truth.slow()
    true_share = one.truth.share(one.declared.ranks or measured)
    cells = (
        one.name,
        _numbers(one.declared.ranks) + (f" (measured: {_numbers(measured)})" if one.void else ""),
        _numbers(one.ranks),
        f"{true_share:.2f}" if one.declared.ranks or measured else "",
        "" if share is None else f"{share:.2f}",
        f"{where['file']}:{where['line']}" if where else "",
        one.slow.get("kind") or "",
        str(one.report.get("outcome", "no report")),
        ", ".join(one.wrong()),
    )
    return f"| {' | '.join(cells)} |"


def _numbers(ranks: Sequence[int]) -> str:
    return ", ".join(map(str, ranks)) or "none"


def _share(of: tuple[int, int]) -> float:
    return of[0] / of[1] if of[1] else 1.0


def _ratio(of: tuple[int, int]) -> str:
    return f"{of[0]} of {of[1]} ({_share(of):.0%})"


class KeptRun(Struct, frozen=True):
    """A trial as a line of a file.

    Attributes:
        shares: of the truth: ranks and their share.
    """

    name: str
    seconds: float
    shares: list[tuple[tuple[int, ...], float]]
    report: dict[str, Any]


class KeptRuns:
    """The trials that a command has made so far, if it is to be resumed.

    Args:
        file: in which they are kept; None for nowhere.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file

    def trials(self, programs: Mapping[str, Declared]) -> list[Trial]:
        """Those of these programs; a line that was cut off is left out."""
        lines = self._file.read_bytes().splitlines() if self._file and self._file.exists() else []
        found: list[Trial] = []
        for line in lines:
            with suppress(msgspec.DecodeError):
                kept = msgspec.json.decode(line, type=KeptRun)
                if kept.name in programs:
                    truth = slow_truth.Truth(kept.seconds, dict(kept.shares))
                    found.append(Trial(kept.name, programs[kept.name], truth, kept.report))
        return found

    def add(self, trial: Trial) -> None:
        """Keep one more."""
        if self._file is not None:
            report = {key: trial.report.get(key) for key in ("outcome", "cause", "slow")}
            truth = trial.truth
            kept = KeptRun(trial.name, truth.seconds, list(truth.shares.items()), report)
            with self._file.open("ab") as file:
                file.write(b"\n" + msgspec.json.encode(kept))  # the last line may have been cut off


def diagnosed(declared: Declared, place: Path) -> tuple[dict[str, Any], slow_truth.Truth]:
    """Run a program under `diagnose`; its report, and the truth."""
    file = place / "report.json"
    instrument = [sys.executable, "-m", "helpers", "diagnose", "--json", str(file), "--quiet", "--"]
    with _started([*instrument, *_words(declared)], place) as process:
        process.wait(LIMIT)
    return _report(file), slow_truth.truth(slow_truth.read(place))


def attached(declared: Declared, place: Path) -> tuple[dict[str, Any], slow_truth.Truth]:
    """Run a program by itself, and attach to it once it has joined; the report, and the truth meanwhile.

    Raises:
        TimeoutError: it does not join.
    """
    file = place / "report.json"
    instrument = [sys.executable, "-m", "helpers", "attach", "--json", str(file), "--for", LOOKS]
    with _started(_words(declared), place) as process:
        end = time.monotonic() + JOINS
        while not slow_truth.read(place).complete:
            if process.poll() is not None or time.monotonic() > end:
                raise TimeoutError("the job does not join")
            time.sleep(0.2)
        since = time.monotonic()
        with _started([*instrument, str(process.pid)], place) as looks:
            looks.wait(LIMIT)
        until = time.monotonic()
        process.wait(LIMIT)
    return _report(file), slow_truth.truth(slow_truth.read(place), since, until)


def _words(declared: Declared) -> list[str]:
    return shlex.split(declared.command.replace("{port}", str(free_port())))


def _report(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}


@contextmanager
def _started(command: list[str], place: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs in the folder of the programs; its process group has ended afterwards."""
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((bin_folder, os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH")))),
        "OMP_NUM_THREADS": "1",
        LEDGER: str(place),
    }
    process = subprocess.Popen(
        command,
        cwd=FOLDER,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
    finally:
        if process.poll() is None:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextmanager
def _busy(wanted: bool) -> Iterator[None]:
    """A busy loop beside the jobs, where that is wanted."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if wanted else None
    try:
        yield
    finally:
        if loop is not None:
            loop.kill()
            loop.wait()


def parser() -> argparse.ArgumentParser:
    """The options."""
    found = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--names", metavar="A,B", help="only these programs")
    found.add_argument(
        "--attach", action="store_true", help=f"have `attach` look at each for {LOOKS} s instead"
    )
    found.add_argument("--busy", action="store_true", help="run a busy loop beside each")
    found.add_argument(
        "--kept",
        type=Path,
        metavar="FILE",
        help="keep each run there; what is in it is not run again",
    )
    found.add_argument(
        "--markdown", type=Path, metavar="FILE", help="put the result into a page, as a section of it"
    )
    return found


def select(names: str | None) -> dict[str, Declared]:
    """The programs that a list with commas names; without a list, all that can run here.

    Raises:
        ValueError: a name is unknown, or a program has no marked line; the text says which.
    """
    declared = toml_file.read(FOLDER / FILE, dict[str, Declared])
    wanted = [name for name in (names or "").split(",") if name]
    for name in wanted:
        if name not in declared:
            raise ValueError(f"no program is called {name}; see {FILE}")
    for name, one in declared.items():
        if one.ranks and one.line == "marked" and not one.lines():
            raise ValueError(f"{name}: no line of {one.program} ends with `{MARK}`")
    return {name: one for name, one in declared.items() if name in (wanted or declared) and one.can_run}


def main(words: Sequence[str] | None = None) -> int:
    """Run, print and write; return the exit code."""
    options = parser().parse_args(words)
    try:
        programs = select(options.names)
    except (ValueError, toml_file.TomlError) as problem:
        print(problem, file=sys.stderr)
        return 64
    run = attached if options.attach else diagnosed
    kept = KeptRuns(options.kept)
    trials = kept.trials(programs)
    missing = programs.keys() - {trial.name for trial in trials}
    interrupted = False
    try:
        for name in (name for name in programs if name in missing):
            with tempfile.TemporaryDirectory(prefix="slow-") as place, _busy(options.busy):
                report, truth = run(programs[name], Path(place))
            trials.append(Trial(name, programs[name], truth, report))
            kept.add(trials[-1])
            print(f"{name}: {', '.join(trials[-1].wrong()) or 'right'}", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        interrupted = True
    score = Score(trials)
    made_with = f"Runs: {len(trials)}, made with {made()}, at commit {commit()}."
    section = score.to_markdown(_condition(options), made_with)
    print(section, end="", flush=True)
    if options.markdown:
        put(options.markdown, TITLE, section)
        says = (f"- {name}: {declared.says}" for name, declared in programs.items())
        put(options.markdown, TITLE, "\n".join(("## The programs", "", *says)))
    if interrupted:
        return 130
    return int(not all(score.bar().values()))


def _condition(options: argparse.Namespace) -> str:
    looks = "With `attach`" if options.attach else "With `diagnose`"
    return looks + (", beside a busy loop" if options.busy else ", on a machine with nothing else to do")


if __name__ == "__main__":
    sys.exit(main())
