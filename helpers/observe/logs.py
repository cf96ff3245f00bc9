"""What the processes of a job print: read as it comes, bounded in memory and on disk."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..launch.processes import is_launcher
from ..model.facts import Snapshot
from ..model.redaction import redacted

KEEP = 2000
"""Lines kept for each process."""

CHUNK = 1 << 20

BACKLOG = 64 << 20
"""Bytes that may wait to be read; of a process that prints faster than that, lines are left out."""

BEHIND = 1 << 20
"""Bytes that stay on disk although they have been read: an error is looked for in the end of a file."""

FREED_AT_ONCE = 8 << 20
"""Bytes after which what has been read is given back to the disk."""

TRIM_EVERY, TRIM_SHARE = 0.05, 0.005
"""Seconds between two looks at the sizes, in which a program can print 100 MB; the share of a core that
looking may take where there are many files."""

LONGEST = 1 << 20
"""Bytes kept of a line that has not ended yet; a carriage return starts it again, as on a terminal."""


class Logs:
    """Lines by label: `rank 0`, `rank 0 worker 1`, `launcher`, and `job` for a program of no rank."""

    def __init__(self) -> None:
        self._lines: dict[str, deque[str]] = {}
        self._offsets: dict[str, int] = {}
        self._freed: dict[str, int] = {}
        self._rest: dict[str, bytes] = {}
        self._lock = threading.Lock()  # what is being read is not freed

    def labels(self) -> list[str]:
        """The labels seen so far, ranks first."""
        return sorted(self._lines, key=_natural)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        """The last lines of one process."""
        return list(self._lines.get(label, ()))[-lines:]

    def read(
        self, folder: Path, root: int, snapshot: Snapshot, *, last: bool = False
    ) -> Iterator[tuple[str, str]]:
        """New lines as (label, line), oldest first within each process.

        Args:
            folder: the run directory.
            root: pid of the command, whose own output counts as `job` until it is a rank.
            snapshot: says which process is which rank.
            last: also give lines that have no end yet.
        """
        names = _labels(snapshot, root)
        for path in sorted((folder / "output").glob("*.log")):
            pid = int(path.stem) if path.stem.isdigit() else root
            label = names.get(pid, "job")
            for line in self._new_lines(path, last):
                self._lines.setdefault(label, deque(maxlen=KEEP)).append(line)
                yield label, line

    def _new_lines(self, path: Path, last: bool) -> list[str]:
        offset = self._offsets.get(path.name, 0)
        try:
            with self._lock, path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                waiting = size - offset
                left_out = waiting - CHUNK if waiting > BACKLOG else 0
                file.seek(offset + left_out)
                data = file.read(BACKLOG if last else CHUNK)
                self._offsets[path.name] = offset + left_out + len(data)
        except OSError:
            return []
        if not data and not (last and path.name in self._rest):
            return []
        text = self._rest.pop(path.name, b"") + data
        if left_out:
            text = b"... %d MB of output came too fast and are left out ...\n" % (left_out >> 20)
            text += data.partition(b"\n")[2]
        if last:
            text = text.rstrip(b"\n") + b"\n"
        complete, newline, rest = text.rpartition(b"\n")
        rest = rest.rpartition(b"\r")[2][-LONGEST:]
        if rest:
            self._rest[path.name] = rest
        lines = complete.decode("utf-8", "replace").split("\n") if newline else []
        return [redacted(line.rstrip("\r").rpartition("\r")[2]) for line in lines]

    @contextmanager
    def trimmed(self, folder: Path) -> Iterator[None]:
        """Keep the files of a run small, however fast they grow and however long a look takes."""
        done = threading.Event()

        def go_on() -> None:
            pause = TRIM_EVERY
            while not done.wait(pause):
                begun = time.thread_time()
                freed = self.trim(folder)
                took = 0.0 if freed else time.thread_time() - begun
                pause = max(TRIM_EVERY, took / TRIM_SHARE)

        thread = threading.Thread(target=go_on, name="trims the logs", daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def trim(self, folder: Path) -> bool:
        """Give back the disk space of what has been read, and of what came too fast to be read.

        Returns:
            Whether there was any.
        """
        freed = False
        with suppress(OSError), self._lock, os.scandir(folder / "output") as files:
            for file in files:
                start, size = self._freed.get(file.name, 0), file.stat().st_size
                end = max(self._offsets.get(file.name, 0) - BEHIND, size - BACKLOG)
                if end - start >= FREED_AT_ONCE and punch(Path(file), start, end):
                    self._freed[file.name], freed = end, True
        return freed


def _natural(label: str) -> tuple[bool, list[tuple[bool, int, str]]]:
    """Ranks first, numbers by value: `rank 2` before `rank 10`."""
    words = [(word.isdigit(), int(word) if word.isdigit() else 0, word) for word in label.split()]
    return not label.startswith("rank"), words


def _labels(snapshot: Snapshot, root: int) -> dict[int, str]:
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


_KEEP_SIZE, _PUNCH_HOLE = 1, 2
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE of linux/falloc.h."""


def punch(path: Path, start: int, end: int) -> bool:
    """Free the bytes from `start` to `end` of a file that others may be appending to.

    Its size stays what it is, and so do all offsets; what is freed reads as zeros.

    Returns:
        False where the system or its file system cannot do that, or the file is gone.
    """
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).fallocate
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
        fd = os.open(path, os.O_WRONLY)
        try:
            return bool(call(fd, _KEEP_SIZE | _PUNCH_HOLE, start, end - start) == 0)
        finally:
            os.close(fd)
    return False
