"""Runs one job of a collection under the command line, and compares the report with what is declared.

The job notes the moment before its blocking call in a file of the folder STALL_MARKS: a JSON object
with `stalled`, the seconds since the start of its command, and `monotonic`, that clock's reading. The
last note of all ranks counts.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from helpers.launch.processes import free_port, is_alive

from .jobs import FILE, Job

PROMPT = 3.0
"""Seconds from a stall to its verdict, by promise."""

GRACE = 2.0
"""Seconds within which nothing of a run is left after its verdict, by promise."""

LIMIT = 200.0
"""Seconds that a job may take in all."""

MARKER = "STUCK_RANKS_TRIAL"
"""The environment variable by which the processes of one trial are told."""

ROOT = Path(__file__).resolve().parents[2]

LISTENER = (
    "import socket; s = socket.socket(); s.bind(('', 0)); s.listen(); "
    "print(s.getsockname()[1], flush=True); input()"
)


@dataclass(frozen=True)
class Check:
    """One thing that is declared of a job, and what was seen.

    Attributes:
        kind: `outcome`, `cause`, `culprits`, `line`, `parting`, `applies`, `state`, `time` or `left`.
        what: the same in this job's terms: `rank 0`, `exit code`, ...
    """

    kind: str
    what: str
    wanted: object
    seen: object

    @property
    def right(self) -> bool:
        """True when both are equal."""
        return self.wanted == self.seen


@dataclass(frozen=True)
class Trial:
    """One finished run of a job.

    Attributes:
        report: the JSON report; empty when there is none.
        exit_code: of the instrument; None when it was ended after `LIMIT` seconds.
        errors: the end of what it wrote to standard error.
        foreign: pid of the process outside the job, None when there was none.
        verdict: seconds from the job's own mark to the verdict, None when it left no mark.
        ended: the same to the end of the instrument, when all that it started is stopped.
        took: seconds in all.
        left: what the run left behind: processes, ports, run folders.
    """

    job: Job
    report: Mapping[str, Any]
    exit_code: int | None
    errors: str
    foreign: int | None
    verdict: float | None
    ended: float | None
    took: float
    left: tuple[str, ...]

    @property
    def false_alarm(self) -> bool:
        """True for a hang or an error in a job with nothing wrong."""
        return self.job.control and self.report.get("outcome") in ("hang", "error")

    def checks(self) -> tuple[Check, ...]:
        """Everything that the collection declares of the job, against what was seen."""
        job, report = self.job, self.report
        found = [
            Check("outcome", key, wanted, report.get(key))
            for key, wanted in (
                ("outcome", job.outcome),
                ("proved", job.proved),
                ("interrupted", False),
            )
        ]
        found.append(Check("outcome", "exit code", job.exit_code, self.exit_code))
        found.append(Check("cause", "cause", job.cause, report.get("cause")))
        if job.culprits is not None:
            culprits = tuple(report.get("culprits", ()))
            found.append(Check("culprits", "culprits", job.culprits, culprits))
        blockers = tuple(blocker["pid"] for blocker in report.get("blockers", ()))
        found.append(Check("culprits", "blockers", (self.foreign,) * job.blockers, blockers))
        found += self._lines()
        if not job.control:
            found.append(statement(job, report))
        if job.applies is not None:
            applies = tuple(report.get("applies", ()))
            found.append(Check("applies", "fixes that fit", job.applies, applies))
        if job.states is not None:
            found.append(Check("state", "states", job.states, self._states()))
        if job.prompt:
            late = self.verdict is None or not 0 < self.verdict <= PROMPT
            late = late or self.ended is None or self.ended > PROMPT + GRACE
            times = f"{_seconds(self.verdict)} to the verdict, {_seconds(self.ended)} to the end"
            found.append(Check("time", "prompt", "prompt", times if late else "prompt"))
        found.append(Check("left", "left", (), self.left))
        return tuple(found)

    def of_kind(self, kind: str) -> tuple[Check, ...]:
        """The checks of one kind."""
        return tuple(check for check in self.checks() if check.kind == kind)

    def wrong(self) -> tuple[Check, ...]:
        """The checks that fail."""
        return tuple(check for check in self.checks() if not check.right)

    def story(self) -> str:
        """What to read when something is wrong."""
        keys = ("outcome", "proved", "cause", "summary", "evidence", "not_seen")
        shown = {key: self.report.get(key) for key in keys}
        wrong = [f"{c.what}: {c.seen!r}, not {c.wanted!r}" for c in self.wrong()]
        return "\n".join((*wrong, json.dumps(shown, indent=1), self.errors[-1500:]))

    def _lines(self) -> list[Check]:
        found = lines_of_ranks(self.job, self.report)
        if self.job.where == "marked":
            first = line_of(self.report.get("where"))
            found.append(Check("line", "first cause", self.job.lines().get("culprit"), first))
        return found

    def _states(self) -> tuple[str, ...]:
        ranks = self.report.get("ranks", ())
        return tuple(rank["state"] for rank in ranks if rank["rank"] is not None)


def lines_of_ranks(job: Job, report: Mapping[str, Any]) -> list[Check]:
    """The line of each rank that is marked."""
    ranks = {f"rank {rank['rank']}": rank for rank in report.get("ranks", ())}
    return [
        Check("line", mark, line, line_of(ranks.get(mark, {}).get("where")))
        for mark, line in job.lines().items()
        if mark not in ("culprit", "parted")
    ]


def statement(job: Job, report: Mapping[str, Any]) -> Check:
    """The statement at which the ranks parted."""
    named = line_of((report.get("parting") or {}).get("where"))
    return Check("parting", "parted at", job.lines().get("parted"), named)


def run(job: Job, record: Path | None = None, python: str = sys.executable) -> Trial:
    """Run a job in a place of its own, to its end.

    Args:
        record: file for the recording of the run, None for no recording.
        python: what runs the job; its folder has the `torchrun` and the `python` of the job's command.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("marks", "tmp"):
            (folder / part).mkdir()
        shutil.copytree(job.folder, folder / "place", ignore=shutil.ignore_patterns(FILE, "__pycache__"))
        environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(Path(python).parent), os.environ["PATH"])),
            "PYTHONPATH": os.pathsep.join((str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")]))),
            "STALL_MARKS": str(folder / "marks"),
            "TMPDIR": str(folder / "tmp"),
            "OMP_NUM_THREADS": "1",
            MARKER: mark,
        }
        with foreign_process(job, folder / "place", environment) as (foreign, said):
            return _run(job, folder, environment, record, foreign, said)


def _run(
    job: Job,
    folder: Path,
    environment: Mapping[str, str],
    record: Path | None,
    foreign: int | None,
    said: str,
) -> Trial:
    port = free_port()
    command = job.command.format(port=port, taken_port=said, beside=said)
    report_file = folder / "report.json"
    words = [sys.executable, "-m", "helpers", "diagnose", "--json", str(report_file), *job.options]
    if record is not None:
        words += ["--record", str(record.resolve())]
    silence, keep_open = os.pipe()  # a standard input that never delivers and never ends
    began = time.monotonic()
    exit_code: int | None = None
    try:
        done = subprocess.run(
            [*words, "--", *shlex.split(command)],
            cwd=folder / "place" / job.within,
            env=environment,
            stdin=silence,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LIMIT,
            check=False,
        )
        exit_code, errors = done.returncode, done.stderr
    except subprocess.TimeoutExpired as late:
        errors = late.stderr or b""
    finally:
        os.close(silence)
        os.close(keep_open)
    over = time.monotonic()
    report = json.loads(report_file.read_text()) if report_file.exists() else {}
    stalled = _marked(folder / "marks")
    verdict = (report.get("seconds") or {}).get("verdict")
    ports = {port, *(p["port"] for rank in report.get("ranks", ()) for p in rank["ports"])}
    return Trial(
        job,
        report,
        exit_code,
        errors.decode(errors="replace")[-15_000:],
        foreign,
        verdict - stalled["stalled"] if stalled and verdict is not None else None,
        over - stalled["monotonic"] if stalled else None,
        over - began,
        _left(environment[MARKER], Path(environment["TMPDIR"]), ports),
    )


@contextmanager
def foreign_process(
    job: Job, place: Path, environment: Mapping[str, str]
) -> Iterator[tuple[int | None, str]]:
    """A process outside the job, when it asks for one: its pid and the first line it prints."""
    words = shlex.split(job.beside)
    if "{taken_port}" in job.command:
        words = [sys.executable, "-S", "-c", LISTENER]
    if not words:
        yield None, ""
        return
    outside = {key: value for key, value in environment.items() if key != MARKER}
    with subprocess.Popen(
        words,
        cwd=place,
        env=outside,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()


def _marked(folder: Path) -> dict[str, float] | None:
    """The last moment that a rank noted before its blocking call."""
    notes = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    if not notes:
        return None
    return {key: max(note[key] for note in notes) for key in ("stalled", "monotonic")}


def left_processes(marker: str, value: str, within: float = GRACE) -> list[psutil.Process]:
    """Processes of runs that do not end within that many seconds.

    A process of a run has the run's id and `marker` in its environment; a guardian is known by its
    program.
    """
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            environment, command = process.environ(), process.cmdline()
            guards = any(part.endswith("helpers/launch/guardian.py") for part in command)
            if environment.get(marker) == value and ("STUCK_RANKS_ID" in environment or guards):
                found.append(process)
    return [process for process in psutil.wait_procs(found, timeout=within)[1] if is_alive(process)]


def _left(mark: str, temporary: Path, ports: set[int]) -> tuple[str, ...]:
    """What is left of a run; processes are ended so that they do not disturb another run."""
    processes = left_processes(MARKER, mark)
    found = []
    for process in processes:
        with suppress(psutil.Error):
            found.append(f"process: {' '.join(process.cmdline())[:200]}")
            process.kill()
    found += [f"run folder: {path.name}" for path in temporary.glob("stuck-ranks-*/*")]
    found += [f"port {port}" for port in sorted(ports) if listened_on(port, mark)]
    return tuple(found)


def listened_on(port: int, mark: str) -> bool:
    """True when something that may be of the run with this mark listens on a port.

    A port that the kernel has chosen may meanwhile have gone to another process.
    """
    with suppress(psutil.Error):
        listeners = {
            one.pid
            for one in psutil.net_connections(kind="tcp")
            if one.status == psutil.CONN_LISTEN and one.laddr and one.laddr.port == port
        }
        return any(_may_have(pid, mark) for pid in listeners)
    return False


def _may_have(pid: int | None, mark: str) -> bool:
    """True unless a process is known not to have this mark in its environment."""
    try:
        return pid is None or psutil.Process(pid).environ().get(MARKER) == mark
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def line_of(where: Mapping[str, Any] | None) -> tuple[str, int] | None:
    """File and line of a place in a report."""
    return None if where is None else (where["file"], where["line"])


def _seconds(value: float | None) -> str:
    return "no mark" if value is None else f"{value:.2f} s"
