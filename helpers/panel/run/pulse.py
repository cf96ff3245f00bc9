"""Tells whether the kernel's event loop answers: while a cell blocks it, no click is handled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

HELD = 0.5
"""Seconds without an answer after which the loop counts as held."""


SAID = " A cell without `await` is running: Stop and the other buttons answer when it ends."


class Pulse:
    """Pings the loop that handles the clicks.

    Clicks are handled on the loop that runs the cells (ipykernel 7.4), so a cell that does not await
    blocks them. The supervisor thread of a run, which can still update widgets, can say so.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: float | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None

    @property
    def held(self) -> bool:
        """True when the loop has not answered for `HELD` seconds. Asks again; for any thread."""
        if self._loop is None or self._loop.is_closed():
            return False
        if self._asked is None:
            self._asked = self._clock()
            self._loop.call_soon_threadsafe(self._answer)
        asked = self._asked
        return asked is not None and self._clock() - asked >= HELD

    @property
    def said(self) -> str:
        """A sentence for the status line while clicks have to wait, else empty."""
        return SAID if self.held else ""

    def _answer(self) -> None:
        self._asked = None
