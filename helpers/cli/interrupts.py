"""The signals that a command line gets: noted, so that they are acted on where nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType

from ..launch.guardian import PASSED

ASK_TO_END = frozenset((signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM))
"""The signals that ask a job to end; the others that are passed to it say something else."""

ONCE = 0.2
"""Seconds within which a second signal is the first one, sent twice: to the process and to its group, as
`timeout` of the coreutils does."""

LEAVES = 5.0
"""Seconds that a report may take after the second signal that asks to end: a job is ended in two."""


class Received:
    """A signal.

    Attributes:
        time: `time.monotonic()` when it came.
        earlier: how often an end had been asked for before.
    """

    # No NamedTuple: a job would wait 3 ms until it is made.
    def __init__(self, number: int, time: float, earlier: int) -> None:
        self.number, self.time, self.earlier = number, time, earlier

    @property
    def asks(self) -> bool:
        """True where it asks for the end."""
        return self.number in ASK_TO_END


class Signals:
    """The signals that have come so far; iterating over them waits for the next, until `end`.

    Attributes:
        received: all of them, in order.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self._new: SimpleQueue[Received | None] = SimpleQueue()

    def __iter__(self) -> Iterator[Received]:
        return iter(self._new.get, None)

    def add(self, signal: Received) -> None:
        """Take one, in a handler of signals: `SimpleQueue.put` may interrupt itself."""
        self.received.append(signal)
        self._new.put(signal)

    def end(self) -> None:
        """Let whoever iterates come to its end."""
        self._new.put(None)


@contextmanager
def noted() -> Iterator[Signals]:
    """Take signals as they come, until the context ends.

    One that was ignored at the start stays ignored, as `nohup` wants it. A second one that asks to end
    leaves within `LEAVES` seconds, whatever blocks, and a third one at once.
    """
    signals = Signals()

    def note(number: int, _: FrameType | None) -> None:
        now = time.monotonic()
        earlier = [signal for signal in signals.received if signal.asks]
        if number in ASK_TO_END and earlier and now - earlier[-1].time < ONCE:
            return
        signals.add(Received(number, now, len(earlier)))
        if number in ASK_TO_END and earlier:
            timer = threading.Timer(LEAVES if len(earlier) == 1 else 0.0, os._exit, (128 + number,))
            timer.daemon = True
            timer.start()  # the guardian ends the job then

    before = {n: signal.getsignal(n) for n in PASSED if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, note)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
