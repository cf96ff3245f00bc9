"""How often a live panel is updated."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

PER_SECOND = 5
"""The panel is updated at most this often in any second, the update at the end of the run included."""

SHARE = 0.25
"""The part of the time that may go into drawing; a panel of many ranks is updated less often."""


class Pace:
    """Decides whether a sample is drawn. The end of a run always is, so one update is kept for it.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun: deque[float] = deque(maxlen=PER_SECOND - 1)
        self._next = 0.0

    def begin(self) -> bool:
        """Return True, and count an update, when one may begin now."""
        now = self._clock()
        full = len(self._begun) == self._begun.maxlen and now - self._begun[0] < 1
        if full or now < self._next:
            return False
        self._begun.append(now)
        return True

    def end(self) -> None:
        """The update that has begun last is done; rest as long as its cost asks for."""
        begun = self._begun[-1]
        self._next = begun + (self._clock() - begun) / SHARE
