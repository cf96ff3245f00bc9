"""How often the panel may send: live updates at a steady rhythm, room kept for the last one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

PER_SECOND = 5
"""The panel sends at most this many updates in any second."""


class Pace:
    """Counts updates against a clock.

    Of the `PER_SECOND` updates, one is kept back for the end of the run, which is always shown.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._sent: deque[float] = deque(maxlen=PER_SECOND - 1)

    def may_send(self) -> bool:
        """Return True, and count an update, when a live update may be sent now."""
        now = self._clock()
        if self._sent and now - self._sent[-1] < 1 / PER_SECOND:
            return False
        if len(self._sent) == PER_SECOND - 1 and now - self._sent[0] < 1:
            return False
        self._sent.append(now)
        return True
