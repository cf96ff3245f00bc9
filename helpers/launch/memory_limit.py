"""A limit on the memory of a whole job: by the kernel where possible, else by a monitor.

The kernel limits a control group. Where a process may make one depends on the machine: below its own
group (version 1), in a group that was given to its user (version 2), or through systemd. A process that
takes too much is killed. Version 1 alone can stall it instead, until another process gives memory back
(https://docs.kernel.org/admin-guide/cgroup-v1/memory.html, section 10).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import msgspec
import psutil

from ..model.facts import LimitView
from .control_group import PROC, ROOT, ControlGroup, group_parents, memory_groups, remove

MB = 10**6

EVERY = 0.1
"""Seconds between two looks of the monitor."""


class LimitError(Exception):
    """A limit cannot be enforced as asked; the text says why in one sentence."""


class Limit(msgspec.Struct, frozen=True):
    """How much memory a job may take.

    Attributes:
        megabytes: of all its processes together.
        stall: stall the processes that want more instead of killing one.
    """

    megabytes: int
    stall: bool = False


class Watched(Protocol):
    """What an enforcer needs of a `helpers.launch.launch.Launch`."""

    pid: int

    def processes(self) -> list[psutil.Process]:
        """The processes of the run that exist."""


class Enforcer(Protocol):
    """Enforces a limit for one run: `open`, then `watch`, then `close`."""

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


class OwnGroup:
    """A control group of our own.

    Args:
        parent: the group to make it in.
        limit: what its processes may take together.

    Attributes:
        group: its folder, once it is made.
        trial: what a shell inside does to show that it works.
    """

    trial = "true"

    def __init__(self, parent: ControlGroup, limit: Limit) -> None:
        self._parent, self._limit = parent, limit
        self._group: ControlGroup | None = None

    @property
    def group(self) -> Path | None:
        """Its folder, once it is made."""
        return self._group.folder if self._group is not None else None

    def open(self, name: str) -> tuple[str, ...]:
        """Make the group and set its limit; returns the words that start a command in it.

        Raises:
            OSError: this may not be done here. Nothing is left then.
        """
        self._group = self._parent.make(name, self._limit.megabytes * MB, stall=self._limit.stall)
        return self._group.enter()

    def watch(self, launch: Watched) -> None:
        """Nothing to do: the kernel counts."""

    def view(self) -> LimitView:
        """What the kernel has counted."""
        how = ", told not to kill" if self._limit.stall else ""
        source = f"the kernel, in a memory control group (version {self._parent.version}{how})"
        if self._group is None:
            return LimitView(self._limit.megabytes, source, 0)
        return LimitView(self._limit.megabytes, source, self._group.kills(), full=self._group.stalls())

    def close(self) -> None:
        """Remove the group, whose processes have ended."""
        if self._group is not None:
            remove(self._group.folder)


class Scope:
    """A scope of systemd's user manager, which removes it when its last process has ended.

    Args:
        systemd: the path of `systemd-run`.
        limit: what its processes may take together.
        root, proc: where control groups (version 2) and processes are mounted.
    """

    trial = 'grep -q "[0-9]" "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max"'
    group: Path | None = None

    def __init__(self, systemd: str, limit: Limit, root: Path, proc: Path) -> None:
        self._systemd, self._limit, self._root, self._proc = systemd, limit, root, proc
        self._groups: list[ControlGroup] = []
        self._kills = 0

    def open(self, name: str) -> tuple[str, ...]:
        """The words that start a command in a scope of this name.

        `OOMPolicy=continue` keeps systemd from ending the whole scope when one process is killed;
        scopes have it since systemd 253.
        """
        settings = (f"MemoryMax={self._limit.megabytes * MB}", "MemorySwapMax=0", "OOMPolicy=continue")
        options = [word for setting in settings for word in ("-p", setting)]
        start = (self._systemd, "--user", "--scope", "--quiet", "--collect", f"--unit={name}")
        return (*start, *options, "--")

    def watch(self, launch: Watched) -> None:
        """Remember where the kernel counts for the run."""
        self._groups = memory_groups(launch.pid, self._root, self._proc)

    def view(self) -> LimitView:
        """What the kernel has counted; the last that was read, once the scope has gone."""
        self._kills = max([self._kills, *(group.kills() for group in self._groups)])
        return LimitView(self._limit.megabytes, "the kernel, in a scope of systemd", self._kills)

    def close(self) -> None:
        """systemd does it."""


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
        source = f"a monitor that adds up the memory of all processes {1 / EVERY:.0f} times a second"
        unseen = f"memory that was taken for less than {EVERY} s: no control group could be had"
        return LimitView(self._limit.megabytes, source, self._kills, not_seen=unseen)

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
    """The largest process if all of them together are above the limit, in bytes; else None."""
    return max(sizes, key=lambda process: sizes[process]) if sum(sizes.values()) > limit else None


def memory(process: psutil.Process) -> int:
    """Bytes of a process, a page that n processes share counted as 1/n; all it has, where unknown.

    Expensive: 14 ms for a process of 0.9 GB, since the kernel walks through all its pages.
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


def enforcer(limit: Limit, root: Path = ROOT, proc: Path = PROC) -> Enforcer:
    """The enforcer for a limit here; each candidate is tried with a small command first.

    Args:
        limit: what to enforce.
        root, proc: where control groups and processes are mounted.

    Raises:
        LimitError: processes are to be stalled, and no group that does this can be made.
    """
    for candidate in candidates(limit, root, proc):
        if _works(candidate):
            return candidate
    if limit.stall:
        raise LimitError(
            "no memory control group of version 1 can be made here: only those stop without a kill"
        )
    return Monitor(limit)


def can_stall() -> bool:
    """Whether a limit that stalls processes is available here; tried with a small command."""
    try:
        enforcer(Limit(100, stall=True))
    except LimitError:
        return False
    return True


def candidates(limit: Limit, root: Path = ROOT, proc: Path = PROC) -> list[OwnGroup | Scope]:
    """Kernel mechanisms that may be available here, the one with the fewest conditions first.

    None can be spared: the monitor missed the peak of lab 03 in one run of six, current desktops have
    no version 1, and before systemd 253 a scope has no `OOMPolicy` (Debian 12, Ubuntu 22.04).
    """
    mechanisms: list[OwnGroup | Scope] = [
        OwnGroup(parent, limit)
        for parent in group_parents(root, proc)
        if parent.version == 1 or not limit.stall
    ]
    systemd = shutil.which("systemd-run")
    bus = Path(os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")) / "bus"
    if systemd and bus.exists() and (root / "cgroup.controllers").exists() and not limit.stall:
        mechanisms.append(Scope(systemd, limit, root, proc))
    return mechanisms


def _works(candidate: OwnGroup | Scope) -> bool:
    """True when a command runs under it, and is limited."""
    try:
        words = candidate.open(f"stuck-ranks-trial-{os.getpid()}-{threading.get_ident()}")
        done = subprocess.run(
            [*words, "sh", "-c", candidate.trial],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5.0,
            check=False,
        )
        return done.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        candidate.close()
