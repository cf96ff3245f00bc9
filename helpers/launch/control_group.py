"""One control group with a limit on memory: made, entered, read and removed."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from ..model.facts import LimitView

MB = 10**6

ENTER = 'echo $$ > "$0" && exec "$@"'
"""A shell that goes into a group and then becomes the command: same pid, same environment."""


class Started(Protocol):
    """A run that has started."""

    pid: int


class Group:
    """A control group of our own.

    Args:
        parent: the group to make it in.
        version: 1 or 2 of the kernel's interface.
        size: bytes that its processes may have together, swap included.
        freeze: tell the kernel not to kill (version 1).

    Attributes:
        group: its folder, once it is made.
        trial: what a shell inside does to show that it works.
    """

    trial = "true"

    def __init__(self, parent: Path, version: int, size: int, *, freeze: bool = False) -> None:
        self._parent, self._version, self._size, self._freeze = parent, version, size, freeze
        self.group: Path | None = None

    def open(self, name: str) -> tuple[str, ...]:
        """Make the group and set its limit; returns the words that put a command into it.

        Raises:
            OSError: this may not be done here. Nothing is left then.
        """
        self.group = self._parent / name
        self.group.mkdir()
        try:
            for file, text in self._settings().items():
                if file.endswith(("memsw.limit_in_bytes", "swap.max")):
                    with suppress(OSError):  # a kernel that does not count swap
                        (self.group / file).write_text(text)
                else:
                    (self.group / file).write_text(text)
        except OSError:
            self.close()
            raise
        return ("/bin/sh", "-c", ENTER, str(self.group / "cgroup.procs"))

    def watch(self, launch: Started) -> None:
        """Nothing to do: the kernel counts."""

    def view(self) -> LimitView:
        """What the kernel has counted."""
        file = "memory.oom_control" if self._version == 1 else "memory.events"
        counted = counters(self.group / file) if self.group is not None else {}
        how = ", told not to kill" if self._freeze else ""
        return LimitView(
            self._size // MB,
            f"the kernel, in a memory control group (version {self._version}{how})",
            counted.get("oom_kill", 0),
            full=bool(counted.get("oom_kill_disable") and counted.get("under_oom")),
        )

    def close(self) -> None:
        """Remove the group, whose processes have ended."""
        if self.group is not None:
            remove(self.group)

    def _settings(self) -> Mapping[str, str]:
        if self._version == 2:
            return {"memory.max": str(self._size), "memory.swap.max": "0"}
        return {
            "memory.limit_in_bytes": str(self._size),
            "memory.memsw.limit_in_bytes": str(self._size),
            "memory.oom_control": str(int(self._freeze)),
        }


class Scope:
    """A scope of systemd's user manager, which removes it when its last process has ended.

    Args:
        systemd: the path of `systemd-run`.
        root, proc: where control groups (version 2) and processes are mounted.
        size: bytes that its processes may have together.
    """

    trial = 'grep -q "[0-9]" "/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/memory.max"'

    def __init__(self, systemd: str, root: Path, proc: Path, size: int) -> None:
        self._systemd, self._root, self._proc, self._size = systemd, root, proc, size
        self._events: Path | None = None
        self._kills = 0
        self.group: Path | None = None

    def open(self, name: str) -> tuple[str, ...]:
        """The words that put a command into a scope of this name.

        `OOMPolicy=continue` keeps systemd from ending the whole scope when one process is killed.
        """
        settings = (f"MemoryMax={self._size}", "MemorySwapMax=0", "OOMPolicy=continue")
        options = [word for setting in settings for word in ("-p", setting)]
        start = (self._systemd, "--user", "--scope", "--quiet", "--collect", f"--unit={name}")
        return (*start, *options, "--")

    def watch(self, launch: Started) -> None:
        """Remember where the kernel counts for the run."""
        own = group_of(self._proc / str(launch.pid) / "cgroup", self._root, 2)
        self._events = own / "memory.events" if own is not None else None

    def view(self) -> LimitView:
        """What the kernel has counted; the last that was read, once the scope has gone."""
        if self._events is not None:
            self._kills = counters(self._events).get("oom_kill", self._kills)
        return LimitView(self._size // MB, "the kernel, in a scope of systemd", self._kills)

    def close(self) -> None:
        """systemd does it."""


def group_parents(root: Path, proc: Path) -> list[tuple[int, Path]]:
    """Where this process may make groups that limit memory: version and folder.

    Version 2: the nearest group around our own that hands the memory controller on and whose
    processes we may move. Version 1: our own group.
    """
    found = []
    own = group_of(proc / "self" / "cgroup", root, 2)
    around = [own, *own.parents] if own is not None else []
    for folder in around[: around.index(root) + 1] if root in around else []:
        handed_on = _text(folder / "cgroup.subtree_control").split()
        if "memory" in handed_on and _ours(folder):
            found.append((2, folder))
            break
    own = group_of(proc / "self" / "cgroup", root / "memory", 1)
    if own is not None and (own / "memory.limit_in_bytes").exists() and _ours(own):
        found.append((1, own))
    return found


def remove(group: Path) -> None:
    """Remove a control group, as soon as the kernel has forgotten the last of its processes."""
    for _ in range(40):
        try:
            group.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def group_of(file: Path, root: Path, version: int) -> Path | None:
    """The group that a /proc/PID/cgroup names; the root where only the host knows the path."""
    for line in _text(file).splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers if version == 2 else "memory" in controllers.split(","):
            folder = root / path.strip("/")
            return folder if folder.is_dir() else root
    return None


def _ours(folder: Path) -> bool:
    return os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK)


def counters(file: Path) -> dict[str, int]:
    """What the kernel counts in one of a group's files; empty where it cannot be read."""
    pairs = [line.split() for line in _text(file).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
