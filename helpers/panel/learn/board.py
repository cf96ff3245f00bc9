"""The leader's page: who is where, from what the learners have shared."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from ipywidgets import HTML

from ...labs import sharing
from ...labs.sharing import ShareError, Standing
from ...labs.tables import Table
from ...model.wording import one_line
from ..widgets.controls import Framed, button, row
from ..widgets.native import Spoken
from . import learn_view
from .course import STEPS


class Board(Framed):
    """A row for each learner and lab, the newest first.

    Args:
        place: the folder that learners share in; the one that STUCK_RANKS_SHARE names when None.
    """

    def __init__(self, place: Path | None = None) -> None:
        self._place = place or sharing.folder()
        self._table, self._status = HTML(), Spoken()
        self._standings: list[Standing] = []
        renew = button("Refresh", "refresh", "Read the folder again", self.refresh)
        clear = button(
            "Clear the board", "trash", "Remove what is shared, for the next group", self.clear
        )
        super().__init__([row([renew, clear]), self._status, self._table])
        self.refresh()

    def refresh(self) -> None:
        """Read the folder again."""
        entries = list(sharing.shared(self._place)) if self._place else []
        self._standings = sorted(
            (entry for entry in entries if isinstance(entry, Standing)), key=lambda entry: -entry.at
        )
        damaged = [entry for entry in entries if isinstance(entry, str)]
        self._say(f"Not readable: {', '.join(damaged)}." if damaged else "")
        if self._place is None:
            self._say(f"Set {sharing.SHARE} to the folder that learners share in, and start again.")
        self._table.value = self._table_of(self._standings)._repr_html_()

    def clear(self) -> None:
        """Remove all that is shared."""
        try:
            count = sharing.clear(self._place) if self._place else 0
        except ShareError as problem:
            self._say(f"{problem}.")
            return
        self.refresh()
        self._say(f"{count} removed.")

    def _table_of(self, standings: Sequence[Standing]) -> Table:
        heads = ("name", "lab", *STEPS.values(), "revealed", "shared at")
        rows = tuple(
            (
                one_line(standing.name),
                one_line(standing.lab),
                *("✓" if step in standing.done else "○" for step in STEPS),
                str(standing.revealed),
                time.strftime("%H:%M", time.localtime(standing.at)),
            )
            for standing in standings
        )
        return Table(heads, rows)

    def _say(self, text: str) -> None:
        self._status.value = learn_view.note(text)

    def __repr__(self) -> str:
        names = {standing.name for standing in self._standings}
        return f"Board: {len(names)} learners, {len(self._standings)} labs"


def open_board() -> Board:
    """The leader's board of the folder that STUCK_RANKS_SHARE names."""
    return Board()
