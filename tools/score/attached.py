"""Starts the hanging jobs of a collection by themselves, attaches to each, and compares the reports.

A job hangs when no process of it has used the processor for some seconds: it is not asked, since a job
that nobody watches leaves no marks.
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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from helpers.launch.processes import free_port

from .jobs import FILE, Job
from .trial import MARKER, ROOT, Check, foreign_process, lines_of_ranks, statement

STARTS, RESTS, EVERY = 120.0, 3.0, 0.2
"""Seconds in which a job has to come to its hang, for which it has to rest, and between two looks."""

USED = 0.2
"""Seconds of processor time that a process at rest may use in `RESTS` seconds: the threads of gloo and
of the store poll, which took 0.1 s on a slow machine."""

PATIENCE = "5"

EMPTY: Mapping[str, str] = {}


@dataclass(frozen=True)
class Attached:
    """What `attach` made of one job.

    Attributes:
        report: the JSON report; empty when there is none.
        took: seconds that it took.
    """

    job: Job
    report: Mapping[str, Any]
    exit_code: int | None
    took: float

    def checks(self) -> tuple[Check, ...]:
        """Outcome, cause, culprits, the lines of the ranks, and the statement where one is named."""
        job, report = self.job, self.report
        found = [
            Check("outcome", "outcome", job.outcome, report.get("outcome")),
            Check("cause", "cause", job.cause, report.get("cause")),
        ]
        if job.culprits is not None:
            found.append(Check("culprits", "culprits", job.culprits, tuple(report.get("culprits", ()))))
        parted = statement(job, report)
        if parted.seen is not None:
            found.append(parted)
        return (*found, *lines_of_ranks(job, report))


def run(job: Job, comes: Callable[[int], None] | None = None) -> Attached:
    """Start a job, attach to it when it has come to where it hangs, and end it.

    Args:
        comes: waits for another moment of the job, told the pid of its command.

    Raises:
        TimeoutError: it does not come to rest.
    """
    with workplace() as folder, resting(job, folder, comes=comes) as process:
        return _attach(job, process.pid, folder / "report.json")


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder for a run, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="trial-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextmanager
def resting(
    job: Job,
    folder: Path,
    more: Mapping[str, str] = EMPTY,
    log: Path | None = None,
    comes: Callable[[int], None] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """A job that has come to its hang, by itself; all of it has ended afterwards.

    Args:
        more: variables of its environment; log: what it prints goes there; comes: as for `run`.

    Raises:
        TimeoutError: it does not come to rest.
    """
    (folder / "tmp").mkdir()
    shutil.copytree(job.folder, folder / "place", ignore=shutil.ignore_patterns(FILE, "__pycache__"))
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "TMPDIR": str(folder / "tmp"),
        "OMP_NUM_THREADS": "1",
        MARKER: uuid.uuid4().hex,
        **more,
    }
    with foreign_process(job, folder / "place", environment) as (_, said):
        command = job.command.format(port=free_port(), taken_port=said, beside=said)
        with _started(command, folder / "place" / job.within, environment, log) as process:
            (comes or wait_for_rest)(process.pid)
            yield process


def _attach(job: Job, pid: int, file: Path) -> Attached:
    begun = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "helpers", "attach"),
            *("--json", str(file), "--patience", PATIENCE, str(pid)),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    report = json.loads(file.read_text()) if file.exists() else {}
    return Attached(job, report, done.returncode, time.monotonic() - begun)


@contextmanager
def _started(
    command: str, place: Path, environment: Mapping[str, str], log: Path | None
) -> Iterator[subprocess.Popen[bytes]]:
    """A command that runs by itself; all of it has ended afterwards."""
    silence, keep_open = os.pipe()
    output = os.open(log or os.devnull, os.O_WRONLY | os.O_CREAT, 0o600)
    process = subprocess.Popen(
        shlex.split(command),
        cwd=place,
        env=environment,
        stdin=silence,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for one in _carriers(environment[MARKER]):
            with suppress(psutil.Error):
                one.kill()
        process.wait()
        for one in (silence, keep_open, output):
            os.close(one)


def _carriers(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARKER) == mark:
                yield process


def wait_for_rest(pid: int) -> None:
    """Wait until no process of a job has used the processor for `RESTS` seconds."""
    root = psutil.Process(pid)
    end = time.monotonic() + STARTS
    since, used = time.monotonic(), _used([root])
    while time.monotonic() - since < RESTS:
        if time.monotonic() > end:
            raise TimeoutError("the job does not come to rest")
        time.sleep(EVERY)
        now = _used([root, *root.children(recursive=True)])
        if any(seconds - used.get(process, 0.0) > USED for process, seconds in now.items()):
            since, used = time.monotonic(), now


def _used(processes: Iterable[psutil.Process]) -> dict[psutil.Process, float]:
    found = {}
    for process in processes:
        with suppress(psutil.Error):
            times = process.cpu_times()
            found[process] = times.user + times.system
    return found
