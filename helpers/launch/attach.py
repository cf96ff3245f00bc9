"""Look at a job that is already running, without a beacon and without touching it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from .launch import AT_ONCE, Ending
from .processes import BOOKKEEPING, is_alive, is_launcher

PATIENCE_ATTACHED = 10.0
"""Seconds that a running job is watched, at most, before a rank that does not move is a suspicion."""

_PYTHON = re.compile(r"python[\d.]*$")
_SPAWNED = re.compile(r"multiprocessing[./](spawn|forkserver|resource_tracker)")
_SAME_JOB = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "TORCHELASTIC_RUN_ID")
_RANK = ("RANK", "LOCAL_RANK")


class AttachError(Exception):
    """The process cannot be looked at; the text says why in one sentence."""


class Attached:
    """A job that was started elsewhere; nothing here changes it.

    Attributes:
        pid: its outermost process, a launcher or the program itself.
        command: the command line of that process.
        started: `time.time()` when that process was started.
        cwd: the working directory of the process that was asked for.
    """

    folder = output = None
    session = 0

    def __init__(
        self,
        pid: int,
        command: tuple[str, ...],
        started: float,
        cwd: Path,
        roots: Sequence[psutil.Process],
    ) -> None:
        self.pid, self.command, self.started, self.cwd = pid, command, started, cwd
        self.run_id = f"process {pid}"
        self._roots = roots

    def poll(self) -> int | None:
        """None: only its parent learns how it ends."""
        return None

    def reaped(self) -> dict[int, int]:
        """Nothing, for the same reason."""
        return {}

    def processes(self) -> list[psutil.Process]:
        """Its processes that exist now."""
        members = dict.fromkeys(self._roots)
        for process in self._roots:
            with suppress(psutil.Error):
                members |= dict.fromkeys(process.children(recursive=True))
        ours = _this_and_above()
        if psutil.Process() in members:
            ours |= {process.pid for process in psutil.Process().children(recursive=True)}
        return [process for process in members if process.pid not in ours and is_alive(process)]

    def sessions(self) -> dict[int, int]:
        """None: nothing of it is ended."""
        return {}

    def signal(self, number: int, received: float) -> None:
        """Nothing: signals to the instrument are its own."""

    def stop(self, ending: Ending = AT_ONCE) -> None:
        """Nothing: the job goes on."""

    def close(self) -> None:
        """Nothing: the job goes on."""


def find_job(pid: int) -> Attached:
    """The job that process `pid` belongs to: up to its launcher, down to its workers.

    Raises:
        AttachError: there is no such process, it may not be looked at, or no Python is in it.
    """
    target = _readable(pid)
    root = _outermost(target)
    members = [root, *_lost_ranks(target, root)]
    with suppress(psutil.Error):
        job = Attached(root.pid, tuple(root.cmdline()), root.create_time(), Path(target.cwd()), members)
        if any(_is_python(process) for process in job.processes()):
            return job
        raise AttachError(f"process {pid} ({_name(target)}) runs no Python, and nothing below it does")
    raise AttachError(f"process {pid} has just ended")


def find_jobs() -> list[Attached]:
    """The jobs that this user runs on this machine now, oldest first.

    A process belongs to one if it is a known launcher, or a Python that has a rank's variables or has
    loaded torch. The launchers and programs above this process are none of them.
    """
    jobs: list[Attached] = []
    covered = _this_and_above()
    for process in psutil.process_iter():
        if process.pid not in covered and _belongs_to_a_job(process):
            with suppress(AttachError):
                job = find_job(process.pid)
                covered |= {job.pid, *(member.pid for member in job.processes())}
                jobs.append(job)
    return sorted(jobs, key=lambda job: job.started)


def _belongs_to_a_job(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        if process.uids().real != os.getuid():
            return False
        if is_launcher(process.cmdline()):
            return True
        return _is_python(process) and (bool(_rank_variables(process)) or _has_torch(process))
    return False


def _has_torch(process: psutil.Process) -> bool:
    """Whether torch's library is in its memory; False where the system has no `/proc`."""
    maps = Path(f"/proc/{process.pid}/maps")
    return maps.is_file() and "/libtorch" in maps.read_text(encoding="utf-8", errors="replace")


def _readable(pid: int) -> psutil.Process:
    if pid == os.getpid():
        raise AttachError(f"process {pid} is this command itself; give a process of the job")
    try:
        process = psutil.Process(pid)
        if not is_alive(process):
            raise AttachError(f"process {pid} has ended; only its parent has not noticed yet")
        owner = process.username()
        process.environ()
        process.cwd()
    except psutil.NoSuchProcess:
        raise AttachError(f"there is no process {pid}") from None
    except (psutil.AccessDenied, PermissionError):
        cure = f"run this as {owner} or as root" if os.geteuid() else "it needs CAP_SYS_PTRACE"
        raise AttachError(f"process {pid} of {owner} may not be looked at: {cure}") from None
    return process


def _outermost(process: psutil.Process) -> psutil.Process:
    """The launcher above a process of the job, or the program that has started it."""
    ours = _this_and_above()
    with suppress(psutil.Error, OSError):
        while (parent := process.parent()) is not None and parent.pid not in ours:
            if not _belongs_to(process, parent):
                break
            process = parent
    return process


def _belongs_to(process: psutil.Process, parent: psutil.Process) -> bool:
    """True when `parent` is part of the job that `process` is part of."""
    command, above = process.cmdline(), parent.cmdline()
    if is_launcher(above) or any(name in word for word in above for name in BOOKKEEPING):
        return True
    variables, parent_variables = _rank_variables(process), _rank_variables(parent)
    if not _is_python(parent) or is_launcher(command):
        return bool(variables) and variables == parent_variables
    return bool(variables) or command == above or bool(_SPAWNED.search(" ".join(command)))


def _lost_ranks(target: psutil.Process, root: psutil.Process) -> Iterator[psutil.Process]:
    """Ranks of the same job that are not below its outermost process: a loop in a shell, orphans."""
    tree = {root.pid}
    with suppress(psutil.Error):
        tree |= {process.pid for process in root.children(recursive=True)}
    wanted = _same_job(target)
    if not wanted.get("MASTER_PORT"):
        return
    ranks = {_rank_variables(proc).get("RANK") for proc in map(psutil.Process, tree) if is_alive(proc)}
    ours = _this_and_above()
    for process in psutil.process_iter():
        if process.pid in tree or process.pid in ours or _same_job(process) != wanted:
            continue
        rank = _rank_variables(process).get("RANK")
        if rank is not None and rank not in ranks and _is_python(process):
            yield process


def _same_job(process: psutil.Process) -> Mapping[str, str]:
    return _variables(process, _SAME_JOB)


def _rank_variables(process: psutil.Process) -> Mapping[str, str]:
    return _variables(process, _RANK)


def _variables(process: psutil.Process, names: tuple[str, ...]) -> Mapping[str, str]:
    with suppress(psutil.Error, OSError):
        environment = process.environ()
        return {name: environment[name] for name in names if name in environment}
    return {}


def _is_python(process: psutil.Process) -> bool:
    with suppress(psutil.Error, OSError):
        return bool(_PYTHON.search((process.cmdline() or [""])[0]))
    return False


def _name(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline()[:3]) or process.name()
    return "ended"


def _this_and_above() -> set[int]:
    """This process and its ancestors, which are never part of the job."""
    this = psutil.Process()
    return {process.pid for process in (this, *this.parents())}
