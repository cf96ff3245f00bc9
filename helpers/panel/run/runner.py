"""Starts and stops the panel's one run. Knows no widgets; callable from any thread.

A click must return at once, but a run may only start when nothing of the previous one is left. So
each run has a thread of its own that first waits for the end of the previous run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from ...observe.logs import Logs
from ...session import Ended, Event, Session


class NotStartedError(Exception):
    """A run was stopped before its first process started."""


class Run:
    """One run, from the click to its report.

    Attributes:
        session: resolves to the session once its command has started; fails with `LaunchError`
            when the command cannot start, and with `NotStartedError` when it was stopped first.
    """

    def __init__(
        self,
        make: Callable[[], Session],
        on_event: Callable[[Run, Logs, Event], None],
        on_failure: Callable[[Run, Exception], None],
        after: Callable[[], None] | None = None,
    ) -> None:
        self.session: Future[Session] = Future()
        self._make = make
        self._on_event = on_event
        self._on_failure = on_failure
        self._after = after
        self._stopped = threading.Event()
        self._over = threading.Event()

    def begin(self, previous: Run | None) -> None:
        """Start in a thread of its own, after the end of `previous`. Returns at once."""
        if previous is not None:
            previous.stop()
        threading.Thread(target=self._follow, args=(previous,), name="panel run", daemon=True).start()

    def stop(self) -> None:
        """Ask for the end of the run. Returns at once; idempotent."""
        self._stopped.set()
        if self.session.done() and self.session.exception() is None:
            self.session.result().stop()

    def wait(self) -> None:
        """Return when nothing of the run is left."""
        self._over.wait()

    @property
    def stopping(self) -> bool:
        """True once `stop` was called."""
        return self._stopped.is_set()

    def _follow(self, previous: Run | None) -> None:
        try:
            if previous is not None:
                previous.wait()
            session = self._start()
            # A session is over a moment before it tells so; `after` must not overtake that.
            self._on_event(self, session.logs, Ended(session.wait()))
        except Exception as error:  # shown in the panel, and handed to whoever awaits the start
            self._on_failure(self, error)
            if not self.session.done():
                self.session.set_exception(error)
        finally:
            if self._after is not None:
                self._after()
            self._over.set()

    def _start(self) -> Session:
        if self.stopping:
            raise NotStartedError("The run was stopped before it started.")
        session = self._make()
        session.subscribe(lambda event: self._on_event(self, session.logs, event))
        session.start()
        self.session.set_result(session)
        if self.stopping:
            session.stop()
        return session
