"""The control groups that count a process's memory: found, read, made and removed.

The kernel has two interfaces, versions 1 and 2, and a machine may have both mounted. See
https://docs.kernel.org/admin-guide/cgroup-v1/memory.html and
https://docs.kernel.org/admin-guide/cgroup-v2.html.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

ROOT, PROC = Path("/sys/fs/cgroup"), Path("/proc")
"""Where control groups and processes are mounted."""

UNLIMITED = 2**60
"""Version 1 says a number near 2**63 where there is no limit, version 2 says `max`."""

ENTER = 'echo $$ > "$0" && exec "$@"'
"""A shell that enters a group and then becomes the command: same pid, same environment."""


class ControlGroup(NamedTuple):
    """A control group that counts memory.

    Attributes:
        version: 1 or 2 of the kernel's interface.
        folder: its files.
        mount: the folder of the topmost group.
    """

    version: int
    folder: Path
    mount: Path

    def above(self) -> list[ControlGroup]:
        """This group and those around it, from the inside out."""
        folders = [self.folder, *self.folder.parents]
        if self.mount not in folders:
            return [self]
        inside = folders[: folders.index(self.mount) + 1]
        return [ControlGroup(self.version, folder, self.mount) for folder in inside]

    def kills(self) -> int:
        """How often the kernel has killed in it for memory; 0 where it cannot be read."""
        return self._counters().get("oom_kill", 0)

    def stalls(self) -> bool:
        """Whether it is full and the kernel stalls processes instead of killing one (version 1)."""
        counted = self._counters()
        return bool(counted.get("oom_kill_disable") and counted.get("under_oom"))

    def room(self) -> int | None:
        """Bytes that this group still allows, without those around it; None without a limit."""
        names = ("memory.max", "memory.current")
        if self.version == 1:
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        limit, used = (_text(self.folder / name).strip() for name in names)
        if limit.isdigit() and used.isdigit() and int(limit) < UNLIMITED:
            return max(0, int(limit) - int(used))
        return None

    def can_hold_limits(self) -> bool:
        """Whether groups with a limit can be made in it, and our processes moved into them."""
        if self.version == 2:
            limits = "memory" in _text(self.folder / "cgroup.subtree_control").split()
        else:
            limits = (self.folder / "memory.limit_in_bytes").exists()
        return limits and all(os.access(f, os.W_OK) for f in (self.folder, self.folder / "cgroup.procs"))

    def make(self, name: str, size: int, *, stall: bool) -> ControlGroup:
        """Make a group with a limit inside this one.

        Args:
            name: of its folder.
            size: bytes that its processes may have together, swap included.
            stall: tell the kernel not to kill (version 1).

        Raises:
            OSError: this may not be done here. Nothing is left then.
        """
        group = ControlGroup(self.version, self.folder / name, self.mount)
        if self.version == 2:
            settings, swap = {"memory.max": str(size)}, ("memory.swap.max", "0")
        else:
            settings = {"memory.limit_in_bytes": str(size), "memory.oom_control": str(int(stall))}
            swap = ("memory.memsw.limit_in_bytes", str(size))
        group.folder.mkdir()
        try:
            for file, text in settings.items():
                (group.folder / file).write_text(text)
        except OSError:
            remove(group.folder)
            raise
        with suppress(OSError):  # a kernel that does not count swap has no such file
            (group.folder / swap[0]).write_text(swap[1])
        return group

    def enter(self) -> tuple[str, ...]:
        """The words before a command that make it start in this group."""
        return ("/bin/sh", "-c", ENTER, str(self.folder / "cgroup.procs"))

    def _counters(self) -> dict[str, int]:
        file = "memory.oom_control" if self.version == 1 else "memory.events"
        pairs = [line.split() for line in _text(self.folder / file).splitlines()]
        return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def memory_groups(pid: int | str = "self", root: Path = ROOT, proc: Path = PROC) -> list[ControlGroup]:
    """The groups that count a process's memory: at most one of each version, version 2 first.

    Inside a container /proc may name a path that only the host has: then it is the topmost group.
    """
    groups = []
    for line in _text(proc / str(pid) / "cgroup").splitlines():
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controllers == "":
            version, mount = 2, root
        elif "memory" in controllers.split(","):
            version, mount = 1, root / "memory"
        else:
            continue
        folder = mount / path.strip("/")
        groups.append(ControlGroup(version, folder if folder.is_dir() else mount, mount))
    return sorted(groups, key=lambda group: -group.version)


def group_parents(root: Path = ROOT, proc: Path = PROC) -> list[ControlGroup]:
    """The groups in which this process may make groups with a limit, for processes of its own.

    Version 2: the nearest group around our own that hands the memory controller on. Version 1: our own.
    """
    groups = []
    for group in memory_groups("self", root, proc):
        around = group.above() if group.version == 2 else [group]
        groups += [parent for parent in around if parent.can_hold_limits()][:1]
    return groups


def remove(folder: Path) -> None:
    """Remove a group, as soon as the kernel has forgotten the last of its processes."""
    for _ in range(40):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.05)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
