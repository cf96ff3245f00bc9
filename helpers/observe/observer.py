"""Looks at one run become snapshots of it."""

from __future__ import annotations

from ..model.facts import Snapshot
from .history import History
from .look import Look
from .picture import Picture


class Observer(History):
    """Makes snapshots of looks. No I/O."""

    def take(self, look: Look) -> Snapshot:
        """Take in a look; return everything that is known now."""
        self.note(look)
        return self.snapshot()

    def snapshot(self) -> Snapshot:
        """Everything that is known after the newest look; answers that nobody needs are forgotten.

        It costs ten times as much as taking a look in.
        """
        assert self.newest is not None, "a look comes before a snapshot"
        snapshot = Picture(self, self.newest).snapshot()
        self.answers = {asks: answer for asks, answer in self.answers.items() if asks in self.wanted}
        return snapshot
