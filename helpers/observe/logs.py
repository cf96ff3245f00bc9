"""What the processes of a job have printed lately: a bounded copy, which drops and counts."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from ..launch.processes import is_launcher
from ..model.facts import Snapshot
from ..model.redaction import redacted

KEEP = 2000
"""Lines that are given of each process at most."""

OWN, ALL = 1 << 18, 1 << 26
"""Bytes kept of a process, and of all together: of those that have printed nothing for longest, nothing
is kept then."""

END = 20_000
"""Bytes in which the last words of a process are looked for."""


class _Kept:
    """The end of what a process has printed, and how many lines before it are dropped."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.dropped = 0

    def add(self, data: bytes) -> None:
        self.data += data[-OWN:]
        surplus = len(self.data) - OWN
        if surplus > OWN // 4:  # moving the rest each time would cost more than reading it
            surplus = self.data.find(b"\n", surplus) + 1 or surplus
            self.dropped += self.data.count(b"\n", 0, surplus)
            del self.data[:surplus]
        self.dropped += data.count(b"\n", 0, max(0, len(data) - OWN))


class Logs:
    """Output by the names of processes: `rank 0`, `rank 0 worker 1`, `launcher`; else `job`.

    Written by one thread and read by any.

    Args:
        root: pid of the command.
    """

    def __init__(self, root: int = 0) -> None:
        self.root = root
        self._kept: dict[int, _Kept] = {}
        self._size = 0
        self._names: Mapping[int, str] = {}
        self._lock = threading.Lock()

    def add(self, pid: int | None, data: bytes) -> None:
        """Keep what a process has printed; None is the command."""
        pid = self.root if pid is None else pid
        with self._lock:
            kept = self._kept.pop(pid, None) or _Kept()
            self._kept[pid] = kept  # the last one is the one that has printed last
            before = len(kept.data)
            kept.add(data)
            self._size += len(kept.data) - before
            while self._size > ALL:
                self._size -= len(self._kept.pop(next(iter(self._kept))).data)

    def take(self, snapshot: Snapshot) -> None:
        """Learn which process is which rank."""
        self._names = _names(snapshot, self.root)

    def label(self, pid: int | None) -> str | None:
        """The name of a process, None for one that no look has shown yet."""
        return self._names.get(self.root if pid is None else pid)

    def labels(self) -> list[str]:
        """The names of those that have printed something, ranks first."""
        with self._lock:
            return sorted({self._names.get(pid, "job") for pid in self._kept}, key=_natural)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        """The last lines of one name, without what may be a secret, as a terminal would show them."""
        with self._lock:
            kept = [kept for pid, kept in self._kept.items() if self._names.get(pid, "job") == label]
            data, dropped = b"".join(one.data for one in kept), sum(one.dropped for one in kept)
        if not data:
            return []
        text = data.removesuffix(b"\n").decode("utf-8", "replace").split("\n")
        newest = [redacted(line.rstrip("\r").rpartition("\r")[2]) for line in text[-lines:]]
        if dropped and lines >= len(text):
            newest[0] = f"... {dropped} lines before these are not kept ..."
        return newest

    def end(self, pid: int) -> str:
        """The last words of a process; of the command where the process had no pipe of its own."""
        with self._lock:
            kept = self._kept.get(pid) or self._kept.get(self.root)
            return "" if kept is None else kept.data[-END:].decode("utf-8", "replace")


def _natural(label: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Ranks first, numbers by value: `rank 2` before `rank 10`."""
    words = [(word.isdigit(), int(word) if word.isdigit() else 0, word) for word in label.split()]
    return not label.startswith("rank"), words


def _names(snapshot: Snapshot, root: int) -> dict[int, str]:
    found = {}
    alone = snapshot.job.world_size in (None, 1)
    for view in snapshot.ranks:
        if view.process is None:
            continue
        unnamed = view.rank is None or (alone and view.local_rank is None and not view.joined)
        name = "job" if unnamed else f"rank {view.rank}"
        found[view.process.pid] = name
        for child in view.children:
            number = "" if child.worker_id is None else f" {child.worker_id}"
            kind = "worker" if child.process.kind == "dataloader-worker" else "child"
            found[child.process.pid] = f"{name} {kind}{number}"
    for launcher in snapshot.launchers:
        is_program = launcher.pid == root and not is_launcher(launcher.command)
        found[launcher.pid] = "job" if is_program else "launcher"
        if launcher.wraps is not None:
            found[launcher.pid] = f"rank {launcher.wraps}"
    return found
