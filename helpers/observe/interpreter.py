"""The Python in which a job runs torch: it is asked for what only torch can tell."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
import psutil

from ..job_files import ask

OURS = "STUCK_RANKS_"
"""Begins the names of the variables by which a process would count as one of the job's own."""


class Interpreter(msgspec.Struct, frozen=True):
    """A Python, and how it is started.

    Attributes:
        path: of the program.
        environment: what it needs to find its packages.
        owner: user and group whose program it is, where those are not ours.
    """

    path: str = sys.executable
    environment: Mapping[str, str] = msgspec.field(default_factory=lambda: dict(os.environ))
    owner: tuple[int, int] | None = None


def with_torch(processes: Iterable[psutil.Process]) -> Interpreter:
    """The Python of the first process that has loaded torch; our own where no such process is seen.

    Which libraries a process has loaded is known on Linux only.
    """
    for process in processes:
        try:
            if "/libtorch" in Path(f"/proc/{process.pid}/maps").read_text():
                return _of(process)
        except (psutil.Error, OSError):
            continue
    return Interpreter()


def _of(process: psutil.Process) -> Interpreter:
    """The Python that a process runs, as whoever started the process would start it."""
    environment = {name: value for name, value in process.environ().items() if not name.startswith(OURS)}
    owner = process.uids().effective, process.gids().effective
    ours = os.geteuid() == owner[0]
    return Interpreter(_path(process, environment), environment, None if ours else owner)


def _path(process: psutil.Process, environment: Mapping[str, str]) -> str:
    """Its program by the name that it was started by: a virtual environment's Python is a link.

    Followed to its end, the link leads to a Python without the environment's packages.
    """
    real = process.exe()
    cwd, (argv0, *_) = process.cwd(), process.cmdline() or [real]

    def started_by(real: str) -> str:
        inside = os.path.join(cwd, argv0) if os.sep in argv0 else None
        program = inside or shutil.which(argv0, path=environment.get("PATH"))
        return program if program and os.path.realpath(program) == os.path.realpath(real) else real

    return ask(started_by, real)
