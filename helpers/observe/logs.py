"""What the processes of a job have printed lately: a bounded copy, which drops and counts."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping

from ..launch.processes import is_launcher
from ..model.facts import Snapshot
from ..model.redaction import redacted
from ..model.secret_shapes import BEGIN_OF_KEY, HIDDEN, LINE_OF_KEY

KEEP = 2000
"""Lines that are given of each process at most."""

OWN, ALL = 1 << 18, 1 << 26
"""Bytes kept of a process, and of all together: of those that have printed nothing for longest, nothing
is kept then."""

NEWEST = 100
"""Lines of a rank in which those are looked for that only it has printed."""

END = 20_000
"""Bytes in which the last words of a process are looked for."""


class _Output:
    """The end of what a process has printed.

    Attributes:
        data: its bytes; fresh: how many of them, at the end, are not among `lines` yet.
        lines: the last whole ones, as they are shown.
        count: of all lines that were ever whole.
        in_key: whether the newest of `lines` is of a private key that goes on.
    """

    def __init__(self) -> None:
        self.data = bytearray()
        self.fresh = 0
        self.lines: deque[str] = deque(maxlen=KEEP)
        self.count = 0
        self.in_key = False

    def add(self, data: bytes) -> None:
        self.count += data.count(b"\n")
        self.data += data[-OWN:]
        self.fresh += len(data)
        if len(self.data) > OWN + OWN // 4:  # moving the rest each time would cost more than reading it
            del self.data[: self.data.find(b"\n", len(self.data) - OWN) + 1 or len(self.data) - OWN]
        self.fresh = min(self.fresh, len(self.data))

    def shown(self, fresh: bytes) -> list[str]:
        """The last lines, as they are shown, with what there is of one that has not ended.

        Args:
            fresh: what `take_fresh` has given.
        """
        *whole, rest = fresh.split(b"\n")
        for line in whole:
            self.take_line(line)
        return [*self.lines, self.show_rest(rest)] if rest else [*self.lines]

    def take_line(self, line: bytes) -> None:
        """Take in the next whole line, as it is shown."""
        text = _as_shown(line)
        of_key = self.in_key and LINE_OF_KEY.fullmatch(text) is not None
        self.lines.append(HIDDEN if of_key else redacted(text))
        self.in_key = of_key or BEGIN_OF_KEY.search(text) is not None

    def show_rest(self, rest: bytes) -> str:
        """What there is of a line that has not ended: what it will be is not known yet."""
        return HIDDEN if self.in_key else redacted(_as_shown(rest))

    def take_fresh(self) -> bytes:
        """Whole lines that are not shown yet, and what follows them."""
        fresh = bytes(self.data[len(self.data) - self.fresh :])
        self.fresh = len(fresh) - fresh.rfind(b"\n") - 1
        return fresh


class Logs:
    """Output by the names of processes: `rank 0`, `rank 0 worker 1`, `launcher`; else `job`.

    Written by one thread and read by any.

    Args:
        root: pid of the command.
    """

    def __init__(self, root: int = 0) -> None:
        self.root = root
        self._outputs: dict[int, _Output] = {}
        self._size = 0
        self._names: Mapping[int, str] = {}
        self._lock, self._reading = threading.Lock(), threading.Lock()

    def add(self, pid: int | None, data: bytes) -> None:
        """Keep what a process has printed; None is the command."""
        pid = self.root if pid is None else pid
        with self._lock:
            output = self._outputs.pop(pid, None) or _Output()
            self._outputs[pid] = output  # the last one is the one that has printed last
            before = len(output.data)
            output.add(data)
            self._size += len(output.data) - before
            while self._size > ALL:
                self._size -= len(self._outputs.pop(next(iter(self._outputs))).data)

    def take(self, snapshot: Snapshot) -> None:
        """Learn which process is which rank."""
        self._names = _names(snapshot, self.root)

    def label(self, pid: int | None) -> str | None:
        """The name of a process, None for one that no look has shown yet."""
        return self._names.get(self.root if pid is None else pid)

    def labels(self) -> list[str]:
        """The names of those that have printed something, ranks first."""
        with self._lock:
            return sorted({self._names.get(pid, "job") for pid in self._outputs}, key=_natural)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        """The last lines of one name, without what may be a secret, as a terminal would show them."""
        with self._reading:
            with self._lock:
                pids = [pid for pid in self._outputs if self._names.get(pid, "job") == label]
                outputs = [self._outputs[pid] for pid in pids]
                fresh = [output.take_fresh() for output in outputs]
                count = sum(output.count for output in outputs)
            newest: list[str] = []
            for output, text in zip(outputs, fresh, strict=True):
                newest += output.shown(text)
        dropped = count - sum(len(output.lines) for output in outputs)
        if not dropped or lines + 1 < len(newest):
            return newest[-lines:]
        dropped += max(0, len(newest) - lines + 1)
        return [f"... {dropped} lines before these are not kept ...", *newest[1 - lines :]]

    def newest(self, pid: int) -> list[str] | None:
        """The newest lines of a process; None of one that has printed nothing into a pipe of its own."""
        with self._reading:
            with self._lock:
                output = self._outputs.get(pid)
                fresh = b"" if output is None else output.take_fresh()
            return None if output is None else output.shown(fresh)[-NEWEST:]

    def end(self, pid: int) -> str:
        """The last words of a process; of the command where the process had no pipe of its own."""
        with self._lock:
            output = self._outputs.get(pid) or self._outputs.get(self.root)
            return "" if output is None else output.data[-END:].decode("utf-8", "replace")


def _as_shown(line: bytes) -> str:
    """A line as a terminal would show it."""
    return line.decode("utf-8", "replace").rstrip("\r").rpartition("\r")[2]


def _natural(label: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Ranks first, numbers by value: `rank 2` before `rank 10`."""
    words = [(word.isdigit(), int(word) if word.isdigit() else 0, word) for word in label.split()]
    return not label.startswith("rank"), words


def _names(snapshot: Snapshot, root: int) -> dict[int, str]:
    names = {}
    alone = snapshot.job.world_size in (None, 1)
    for view in snapshot.ranks:
        if view.process is None:
            continue
        unnamed = view.rank is None or (alone and view.local_rank is None and not view.joined)
        name = "job" if unnamed else f"rank {view.rank}"
        names[view.process.pid] = name
        for child in view.children:
            number = "" if child.worker_id is None else f" {child.worker_id}"
            kind = "worker" if child.process.kind == "dataloader-worker" else "child"
            names[child.process.pid] = f"{name} {kind}{number}"
    for launcher in snapshot.launchers:
        is_program = launcher.pid == root and not is_launcher(launcher.command)
        names[launcher.pid] = "job" if is_program else "launcher"
        if launcher.wraps is not None:
            names[launcher.pid] = f"rank {launcher.wraps}"
    return names
