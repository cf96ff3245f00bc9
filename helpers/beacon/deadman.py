"""The `faulthandler` of this process: a dead man's switch for its beacon, and the stacks of a crash."""

from __future__ import annotations

import contextlib
import faulthandler
import time
from typing import Any, Optional

DUMP_AFTER = 2.0
"""Seconds after which `faulthandler` writes the stacks of a process whose beacon cannot run."""

RESTART_AFTER = 0.5
"""Seconds between two starts of the countdown: each ends a thread and starts one, and holds the
interpreter lock meanwhile."""


class Slot:
    """The one `dump_traceback_later` slot of a process: armed as a dead man's switch.

    It fires when the beacon's thread cannot run: while a C call holds the interpreter lock.
    From the job's first own use of the slot on, the slot is the job's.
    """

    def __init__(self) -> None:
        self.given_away = False
        self._armed: Optional[float] = None
        self._later = faulthandler.dump_traceback_later
        self._cancel = faulthandler.cancel_dump_traceback_later

    def arm(self, fd: int) -> None:
        """Restart the countdown, unless it has just begun; at its end all stacks are written to `fd`."""
        now = time.monotonic()
        if self.given_away or (self._armed is not None and now - self._armed < RESTART_AFTER):
            return
        # RuntimeError: no thread can be started, since memory or threads have run out.
        with contextlib.suppress(RuntimeError):
            self._later(DUMP_AFTER, file=fd)
            self._armed = now

    def disarm(self) -> None:
        """Stop the countdown."""
        if not self.given_away:
            self._cancel()
            self._armed = None

    def catch_crashes(self, fd: int) -> None:
        """Write the stacks of a crash (SIGSEGV, SIGABRT, ...) to `fd`, unless the job does so itself."""
        if not faulthandler.is_enabled():
            faulthandler.enable(file=fd)

    def yield_to_job(self) -> None:
        """Give the slot away at the job's first own call of either function."""

        def dump_traceback_later(*args: Any, **kwargs: Any) -> Any:
            self.given_away = True
            return self._later(*args, **kwargs)

        def cancel_dump_traceback_later() -> Any:
            self.given_away = True
            return self._cancel()

        faulthandler.dump_traceback_later = dump_traceback_later
        faulthandler.cancel_dump_traceback_later = cancel_dump_traceback_later
