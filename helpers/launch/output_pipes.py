"""The pipes into which the processes of a run print: FIFOs in the run directory, read here.

The command has the FIFO `job`. A Python process takes a spare one when it starts, by renaming `spare-N`
to `PID-N` (`beacon/output.py`). Spare ones are open for reading before any process can take them, so
nothing that a process prints is lost, however soon it ends. The beacon of a process, and the guardian
for the command, keep a second reader: no process is ended by SIGPIPE when this one is gone.
"""

from __future__ import annotations

import fcntl
import os
import select
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

COMMAND = "job"
"""The FIFO of the command itself, and of all that it starts which is no Python."""

SPARE = 64
"""FIFOs that wait for a process, as far as there are descriptors for them (`_spare`)."""

CAPACITY = 1 << 20
"""Bytes that the pipe of a process that prints much may hold, and that are read at once; 64 KiB is the
kernel's own size, and this is what it allows any user (`fs.pipe-max-size`)."""

_GREW = 1 << 16


class OutputPipes:
    """Reads what the processes of one run print.

    Args:
        folder: the folder of the FIFOs, which is made.

    Raises:
        OSError: it cannot be made, or no descriptor is free.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._poller = select.poll()
        self._numbers: dict[int, str] = {}
        self._pids: dict[str, int] = {}
        self._next = 0
        self._changed = 0
        self._waking: tuple[int, ...] = os.pipe()
        self._poller.register(self._waking[0], select.POLLIN)
        folder.mkdir()
        self._add(COMMAND, COMMAND)

    def read(self, seconds: float) -> Iterator[tuple[int | None, bytes]]:
        """What has been printed, in pieces, once there is any.

        Args:
            seconds: how long to wait for it at most; `wake` ends that.

        Yields:
            The pid of the process, None for the command, and the bytes.
        """
        ready = [descriptor for descriptor, _ in self._poller.poll(seconds * 1000)]
        for woken in {*ready}.intersection(self._waking):
            ready.remove(woken)
            os.read(woken, CAPACITY)
        if len(ready) > 1:  # in the order of the last writing
            ready.sort(key=lambda descriptor: os.fstat(descriptor).st_mtime_ns)
        if self._folder_has_changed() or any(map(self._is_unknown, ready)):
            self.take_stock()
        for descriptor in ready:
            try:
                data = os.read(descriptor, CAPACITY)
            except BlockingIOError:
                continue
            if data:
                yield self._pids.get(self._numbers[descriptor]), data
            else:
                self._remove(descriptor)
            if len(data) == _GREW:
                with suppress(OSError, AttributeError):  # not Linux, or too many pipes of this user
                    fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, CAPACITY)

    def wake(self) -> None:
        """Let a `read` of another thread return at once."""
        for waker in self._waking[1:]:
            os.write(waker, b"!")

    def take_stock(self) -> None:
        """Find out which processes have taken a FIFO, and make new spare ones.

        `read` does so where the folder has changed, as before its first time.
        """
        spare = 0
        for name in os.listdir(self._folder):
            owner, _, number = name.partition("-")
            if owner.isdigit():
                self._pids[number] = int(owner)
            spare += owner == "spare"
        with suppress(OSError):  # no descriptor is free: a process then prints where its parent does
            for _ in range(spare, _spare()):
                self._next += 1
                self._add(f"spare-{self._next}", str(self._next))

    def close(self) -> None:
        """Read no more."""
        for descriptor in (*self._numbers, *self._waking):
            os.close(descriptor)
        self._numbers.clear()
        self._waking = ()

    def _is_unknown(self, descriptor: int) -> bool:
        number = self._numbers[descriptor]
        return number != COMMAND and number not in self._pids

    def _folder_has_changed(self) -> bool:
        try:
            changed = self._folder.stat().st_mtime_ns
        except OSError:  # the run directory has been removed
            return False
        self._changed, before = changed, self._changed
        return changed != before

    def _add(self, name: str, number: str) -> None:
        path = self._folder / name
        staged = path.with_name(f"new-{name}")
        os.mkfifo(staged, 0o600)
        descriptor = os.open(staged, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._numbers[descriptor] = number
        self._poller.register(descriptor, select.POLLIN)
        os.rename(staged, path)  # none can be taken before it is open

    def _remove(self, descriptor: int) -> None:
        """Forget a FIFO that no process has open any more."""
        self._poller.unregister(descriptor)
        os.close(descriptor)
        number = self._numbers.pop(descriptor)
        pid = self._pids.pop(number, None)
        with suppress(OSError):
            (self._folder / (COMMAND if pid is None else f"{pid}-{number}")).unlink()


def _spare() -> int:
    """How many spare FIFOs there are to be: an eighth of the descriptors that this process may open."""
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return SPARE if limit == resource.RLIM_INFINITY else max(1, min(SPARE, limit // 8))
