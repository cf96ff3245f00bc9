"""Passes on what the processes of a job print, at its own pace, whatever the looks at the job do."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Protocol

from ..launch.output_pipes import OutputPipes
from .logs import Logs

TICK, REST = 0.05, 0.25
"""Seconds that it waits for output before it looks after what it holds, and where it holds nothing: a
process that has taken a pipe, and prints nothing, wakes nobody."""

NAMED, HELD = 0.4, 1 << 16
"""Seconds after which, and bytes above which, output is passed on although it is not known whose it is:
that shows at the next look."""


class Sink(Protocol):
    """Where output goes."""

    def write(self, pid: int | None, label: str, data: bytes) -> None:
        """Take what a process has printed; None is the command.

        It may block: then the job is held up, as by a pipe that is not read.
        """


class Relay:
    """A thread that reads the pipes of a run; use it as a context manager.

    Args:
        pipes: of the run.
        logs: keep the bounded copy; they name the processes.
        sink: gets every byte, in the order of each process; None for nowhere.
    """

    def __init__(self, pipes: OutputPipes, logs: Logs, sink: Sink | None) -> None:
        self._pipes, self._logs, self._sink = pipes, logs, sink
        self._queue: deque[tuple[float, int | None, bytes]] = deque()
        self._size = 0
        self._final, self._passed, self._closed = (threading.Event() for _ in range(3))
        self._thread = threading.Thread(target=self._run, name="relays output", daemon=True)

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._final.set()
        self._closed.set()
        self._pipes.wake()
        self._thread.join()

    def finish(self, timeout: float) -> None:
        """Pass on what has been printed so far; what is printed from now on is read and dropped.

        Args:
            timeout: seconds to wait for that: a sink may block.
        """
        self._final.set()
        self._pipes.wake()
        self._passed.wait(timeout)

    def _run(self) -> None:
        final = False
        while not final:
            final = self._final.is_set()
            for pid, data in self._pipes.read(0 if final else TICK if self._queue else REST):
                self._logs.add(pid, data)
                if self._sink is not None:
                    self._queue.append((time.monotonic(), pid, data))
                    self._size += len(data)
            self._hand_over(everything=final)
        self._passed.set()
        while not self._closed.is_set():
            for _ in self._pipes.read(REST):
                pass

    def _hand_over(self, everything: bool) -> None:
        """Pass on the oldest pieces: nothing overtakes one of a process that is not known yet."""
        while self._queue and self._sink is not None:
            since, pid, data = self._queue[0]
            label = self._logs.label(pid)
            waits = label is None and time.monotonic() - since < NAMED and self._size < HELD
            if waits and not everything:
                return
            self._queue.popleft()
            self._size -= len(data)
            self._sink.write(pid, label or "job", data)
