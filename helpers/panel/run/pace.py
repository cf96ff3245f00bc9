"""How often a live panel is updated, and how often its picture is drawn again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

PER_SECOND = 5
"""The panel is updated at most this often in any second, the update at the end of the run included."""

SHARE = 0.1
"""The part of the time that may go into drawing.

Tables cost little. The picture of two or of 64 ranks takes 0.03 s at most (27 kB of SVG), so it is drawn
three times a second; that of 16,384 ranks takes 0.8 s, so it is drawn every eight seconds.
"""


class Pace:
    """Decides which samples are shown. The end of a run always is, so one update is kept for it.

    Args:
        clock: monotonic seconds.

    Attributes:
        picture: whether the update that has begun may draw the picture.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.picture = True
        self._clock = clock
        self._begun: deque[float] = deque(maxlen=PER_SECOND - 1)
        self._rest_until = 0.0

    def begin(self) -> bool:
        """Return True, and count an update, when one may begin now."""
        now = self._clock()
        if len(self._begun) == self._begun.maxlen and now - self._begun[0] < 1:
            return False
        self._begun.append(now)
        self.picture = now >= self._rest_until
        return True

    def end(self) -> None:
        """The update that has begun is done; what it cost decides when the next picture is due."""
        begun = self._begun[-1]
        self._rest_until = max(self._rest_until, begun + (self._clock() - begun) / SHARE)
