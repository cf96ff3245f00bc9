"""The processes of a run, found by the run's id or by who they were, never by name."""

from __future__ import annotations

import errno
import os
import random
import re
import socket
import sys
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress

import psutil

from . import guardian
from .run_folder import identity

GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL, and again for SIGKILL to take effect."""
TICK = 0.05
"""Seconds between two looks at what is left. `psutil.wait_procs` returns earlier when all have
gone, but waits for one that its parent has not reaped, and some containers' init is slow at it."""
CLOCK = 2.0
"""Seconds by which two readings of the start of one process may differ: psutil adds the time of boot,
which the kernel gives in whole seconds."""

PORTS = range(10_000, 29_000)
"""Those that `free_port` chooses from."""

LAUNCHERS = (
    (re.compile(r"(^|/)torchrun$|torch[./]distributed[./](run|launch)"), "torchrun"),
    (re.compile(r"(^|/)accelerate(-launch)?$|accelerate[./]commands"), "accelerate"),
    (re.compile(r"(^|/)deepspeed$"), "deepspeed"),
)
"""What the words that name a program have for a launcher (see `naming`), and the launcher's name."""

_WITH_VALUE = re.compile(r"-[A-Za-z]*?([cmWX])(.*)", re.DOTALL)
"""An option of Python that takes a value, in the same word or the next (python --help)."""

BOOKKEEPING = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""Modules of processes that `multiprocessing` starts for its own purposes."""


def carriers(run_id: str) -> list[psutil.Process]:
    """Every process that started with the run's id in its environment, where we may look."""
    processes = []
    marked = guardian.carriers(os.fsencode(f"STUCK_RANKS_ID={run_id}"))
    for pid in psutil.pids() if sys.platform != "linux" else marked:
        with suppress(psutil.Error, OSError):
            process = psutil.Process(pid)
            if pid in marked or process.environ().get("STUCK_RANKS_ID") == run_id:
                processes.append(process)
    return processes


def is_alive(process: psutil.Process) -> bool:
    """Whether it still runs: it has not ended; a process that is not reaped yet has."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def same_start(first: float, second: float) -> bool:
    """True for two readings of a start time that may belong to the same process."""
    return abs(first - second) < CLOCK


def same_process(pid: int, started: float) -> psutil.Process | None:
    """The living process of that `identity`, None when it has ended."""
    try:
        process = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    same = same_start(identity(pid)[1], started)
    return process if same and is_alive(process) else None


def families(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those of these processes, and of all that descends from them, that are alive."""
    members: dict[psutil.Process, None] = {}
    for process in processes:
        with suppress(psutil.Error):
            members |= dict.fromkeys([process, *process.children(recursive=True)])
    return [process for process in members if is_alive(process)]


def end_all(find: Callable[[], Iterable[psutil.Process]]) -> None:
    """End what `find` gives and what descends from it: CONT, TERM, KILL, in 2 seconds at most.

    This is for a run whose guardian is gone; `find` is called again until it gives nothing alive.
    """

    started = time.monotonic()
    terminated: set[psutil.Process] = set()
    while (living := families(find())) and (waited := time.monotonic() - started) < 2 * GRACE:
        for process in living:
            with suppress(psutil.Error):
                if waited >= GRACE:
                    process.kill()
                elif process not in terminated:
                    process.resume()
                    process.terminate()
        terminated.update(living)
        psutil.wait_procs(living, timeout=TICK)


def is_python(command: Sequence[str]) -> bool:
    """True when a command line starts a Python interpreter."""
    return bool(command) and os.path.basename(command[0]).startswith("python")


def naming(command: Sequence[str]) -> Sequence[str]:
    """The words of a command line that name the program: what follows them is the program's own.

    For Python it is the file, the module or the text that it runs; for others, which may start a
    launcher as `timeout` and `srun` do, the first four words.
    """
    if not is_python(command):
        return command[:4]
    words = iter(command[1:])
    for word in words:
        if not word.startswith("-"):
            return [word]
        if option := _WITH_VALUE.match(word):
            value = option[2] or next(words, "")
            if option[1] in "cm":
                return [value]
    return []


def launcher_in(words: Sequence[str]) -> str | None:
    """Name of the launcher that one of these words names; None where none does."""
    return next((name for pattern, name in LAUNCHERS if any(map(pattern.search, words))), None)


def is_launcher(command: Sequence[str]) -> bool:
    """True for the command line of a launcher that is known by name."""
    return launcher_in(naming(command)) is not None


def is_kernel(command: Sequence[str]) -> bool:
    """True for the command line of a notebook's kernel: `python -m ipykernel_launcher -f FILE`."""
    names = [os.path.basename(word).removesuffix(".py") for word in naming(command)]
    return is_python(command) and names in (["ipykernel_launcher"], ["ipykernel"])


def free_port() -> int:
    """A TCP port on which no process of this machine listens.

    It is none of those that Linux gives to whoever asks for any, from 32768 on by default: one of
    these may be another process's when it is used. Nor is it torch's default, 29500.

    Raises:
        OSError: none is free, or the machine has no loopback address.
    """
    for port in random.sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError as problem:
                if problem.errno != errno.EADDRINUSE:
                    raise
            else:
                return port
    raise OSError(errno.EADDRINUSE, f"no port from {PORTS[0]} to {PORTS[-1]} is free")


def port_owner(port: int, ours: Collection[int]) -> tuple[int, str] | None:
    """(pid, command line) of the process outside `ours` that listens on `port`, if it can be seen."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections(kind="tcp"):
            pid = connection.pid
            at = getattr(connection.laddr, "port", None)
            if connection.status != psutil.CONN_LISTEN or at != port or pid is None or pid in ours:
                continue
            with suppress(psutil.Error):
                return pid, " ".join(psutil.Process(pid).cmdline())
    return None
