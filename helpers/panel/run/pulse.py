"""Tells whether the kernel's event loop answers: while a cell blocks it, no click is handled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

HELD = 0.5
"""Seconds without an answer after which the loop counts as held."""


WARNING = " A cell without `await` is running: Stop and the other buttons answer when it ends."


class Pulse:
    """Pings the loop that handles the clicks.

    Clicks are handled on the loop that runs the cells (ipykernel 7.4), so a cell that does not await
    blocks them. The supervisor thread of a run, which can still update widgets, can say so.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._ping_at: float | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @property
    def is_blocked(self) -> bool:
        """True when the loop has not answered for `HELD` seconds. Asks again; for any thread."""
        if self._loop is None or self._loop.is_closed():
            return False
        if self._ping_at is None:
            self._ping_at = self._clock()
            self._loop.call_soon_threadsafe(self._answer)
        ping_at = self._ping_at
        return ping_at is not None and self._clock() - ping_at >= HELD

    @property
    def warning(self) -> str:
        """A sentence for the status line while clicks have to wait, else empty."""
        return WARNING if self.is_blocked else ""

    def _answer(self) -> None:
        self._ping_at = None
