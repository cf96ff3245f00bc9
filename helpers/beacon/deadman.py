"""The `faulthandler` of this process: a dead man's switch for its beacon, and the stacks of a crash."""

from __future__ import annotations

import contextlib
import faulthandler
from typing import Any

DUMP_AFTER = 1.5
"""Seconds after which `faulthandler` writes the stacks of a process whose beacon cannot run."""


class Slot:
    """The one `dump_traceback_later` slot of a process: armed as a dead man's switch.

    It fires when the beacon's thread cannot run: while a C call holds the interpreter lock.
    From the job's first own use of the slot on, the slot is the job's.
    """

    def __init__(self) -> None:
        self.given_away = False
        self._later = faulthandler.dump_traceback_later
        self._cancel = faulthandler.cancel_dump_traceback_later

    def arm(self, fd: int) -> None:
        """Restart the countdown; when it runs out, every stack is written to `fd`."""
        if not self.given_away:
            # RuntimeError: no thread can be started, since memory or threads have run out.
            with contextlib.suppress(RuntimeError):
                self._later(DUMP_AFTER, file=fd)

    def disarm(self) -> None:
        """Stop the countdown."""
        if not self.given_away:
            self._cancel()

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
