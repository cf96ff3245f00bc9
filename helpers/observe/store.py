"""Looks at the job's store while ranks wait in the rendezvous and no process seen here explains why."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ..model.facts import RankView
from .store_probe import Probe, StoreView

FIRST_AFTER = 3.0
"""Seconds in the rendezvous before the first look."""

AGAIN_AFTER = 10.0
"""Seconds between two looks."""


class StoreWatch:
    """Keeps the newest view of the store; looks only where the processes seen do not tell all."""

    def __init__(self) -> None:
        self.view: StoreView | None = None
        self._probe: Probe | None = None
        self._next = 0.0

    def look(self, ranks: Iterable[RankView]) -> StoreView | None:
        """Start a look where one is due, and return the newest view."""
        views = list(ranks)
        addresses = {
            view.master
            for view in views
            if view.process is not None
            and view.state == "rendezvous"
            and view.process.still >= FIRST_AFTER
        }
        if self._probe is not None:
            found = self._probe.result()
            if found is not None:
                self.view = found
                self.close()
        elif (
            len(addresses) == 1
            and (
                any(view.process is None for view in views)
                or all(view.state == "rendezvous" for view in views)
            )
            and time.monotonic() >= self._next
        ):
            self._next = time.monotonic() + AGAIN_AFTER
            self._probe = Probe(str(next(iter(addresses))))
        return self.view

    def close(self) -> None:
        """End a look that is going on."""
        if self._probe is not None:
            self._probe.close()
            self._probe = None
