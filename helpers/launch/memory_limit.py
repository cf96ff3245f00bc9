"""A limit on the memory of a whole job: by the kernel where it can be had, else by a monitor.

The kernel limits a control group. Where a process may make one depends on the machine: below its own
group (version 1), in a group that was given to its user (version 2), or through systemd. A group that
the kernel is told not to kill in (version 1 only) stops each process that wants more, until another one
gives memory back. See https://docs.kernel.org/admin-guide/cgroup-v1/memory.html (section 10) and
https://docs.kernel.org/admin-guide/cgroup-v2.html.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

from ..model.facts import LimitView
from .control_group import MB, Group, Scope, group_parents

EVERY = 0.1
"""Seconds between two looks of the monitor."""


class LimitError(Exception):
    """A limit cannot be enforced as asked; the text says why in one sentence."""


@dataclass(frozen=True)
class Limit:
    """How much memory a job may take.

    Attributes:
        megabytes: of all its processes together.
        freeze: stop the processes that want more, in place of killing one.
    """

    megabytes: int
    freeze: bool = False


class Watched(Protocol):
    """What a monitor needs of a `helpers.launch.launch.Launch`."""

    pid: int

    def processes(self) -> list[psutil.Process]:
        """The processes of the run that exist."""


class Enforcer(Protocol):
    """Who enforces a limit, for one run: `open`, then `watch`, then `close`."""

    def open(self, name: str) -> tuple[str, ...]:
        """Prepare for a run of this name; returns the words that go before its command."""

    @property
    def group(self) -> Path | None:
        """The control group to remove after the run, if there is one."""

    def watch(self, launch: Watched) -> None:
        """The run has started."""

    def view(self) -> LimitView:
        """What has come of it so far."""

    def close(self) -> None:
        """Nothing of the run is left; idempotent."""


class Monitor:
    """Adds up the memory of all processes, and kills the largest above the limit.

    Slurm's accounting does the same where it polls (`JobAcctGatherFrequency`, `OverMemoryKill`).
    Pages that processes share count once (PSS), where the kernel says so.
    """

    group: Path | None = None

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._kills = 0
        self._over = threading.Event()

    def open(self, _: str) -> tuple[str, ...]:
        """Nothing to prepare."""
        return ()

    def watch(self, launch: Watched) -> None:
        """Look at the processes of the run until `close`."""
        threading.Thread(target=self._look, args=(launch,), name="memory", daemon=True).start()

    def view(self) -> LimitView:
        """How many processes it has killed."""
        said = f"a monitor that adds up the memory of all processes {1 / EVERY:.0f} times a second"
        unseen = f"memory that was taken for less than {EVERY} s: no control group could be had"
        return LimitView(self._limit.megabytes, said, self._kills, not_seen=unseen)

    def close(self) -> None:
        """Look no more."""
        self._over.set()

    def _look(self, launch: Watched) -> None:
        while not self._over.wait(EVERY):
            limit, processes = self._limit.megabytes * MB, launch.processes()
            if sum(map(resident, processes)) <= limit:
                continue
            largest = too_large({process: memory(process) for process in processes}, limit)
            if largest is None or self._over.is_set():
                continue
            with suppress(psutil.Error):
                largest.kill()
                self._kills += 1
                psutil.wait_procs([largest], timeout=1.0)


def too_large(sizes: Mapping[psutil.Process, int], limit: int) -> psutil.Process | None:
    """The largest process when all of them together are above the limit, in bytes; else None."""
    return max(sizes, key=lambda process: sizes[process]) if sum(sizes.values()) > limit else None


def memory(process: psutil.Process) -> int:
    """Bytes of a process, a page that n processes share counted as 1/n; all it has, where unknown.

    Dear: 14 ms for a process of 0.9 GB, since the kernel walks through all its pages.
    """
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return resident(process)


def resident(process: psutil.Process) -> int:
    """Bytes of a process, shared pages included; 0 when it has ended."""
    with suppress(psutil.Error):
        return int(process.memory_info().rss)
    return 0


def enforcer(limit: Limit, root: Path = Path("/sys/fs/cgroup"), proc: Path = Path("/proc")) -> Enforcer:
    """Who can enforce a limit here; each candidate is tried with a small command first.

    Args:
        limit: what to enforce.
        root, proc: where control groups and processes are mounted.

    Raises:
        LimitError: nobody can.
    """
    for one in candidates(limit, root, proc):
        if _works(one):
            return one
    if limit.freeze:
        raise LimitError(
            "no memory control group of version 1 can be made here: only those stop without a kill"
        )
    return Monitor(limit)


def can_freeze() -> bool:
    """Whether a limit that stops processes can be had here; tried with a small command."""
    try:
        enforcer(Limit(100, freeze=True))
    except LimitError:
        return False
    return True


def candidates(limit: Limit, root: Path, proc: Path) -> list[Group | Scope]:
    """What of the kernel's may be there, the one with the fewest conditions first."""
    parents = group_parents(root, proc)
    found: list[Group | Scope] = [
        Group(parent, version, limit.megabytes * MB, freeze=limit.freeze)
        for version, parent in parents
        if version == 1 or not limit.freeze
    ]
    systemd = shutil.which("systemd-run")
    bus = Path(os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "bus"
    if systemd and bus.exists() and (root / "cgroup.controllers").exists() and not limit.freeze:
        found.append(Scope(systemd, root, proc, limit.megabytes * MB))
    return found


def _works(one: Group | Scope) -> bool:
    """True when a command runs under it, and is limited."""
    try:
        words = one.open(f"stuck-ranks-trial-{os.getpid()}-{threading.get_ident()}")
        done = subprocess.run(
            [*words, "sh", "-c", one.trial],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5.0,
            check=False,
        )
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        one.close()
