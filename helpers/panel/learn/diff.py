"""What changes from the broken program to the fixed one, and how both ran."""

from __future__ import annotations

import threading
from functools import partial

from ipywidgets import HTML, VBox
from markupsafe import Markup

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.tables import difference
from ...report.text import headline
from ..run.export import Finished
from ..show import view
from ..show.templates import html
from ..widgets.native import Picture
from .gate import Gate

BROKEN, FIXED = "broken", "fixed"


class DiffView(VBox):
    """The change as `lab.diff()` shows it, and below it the picture of the last run of each program.

    Nothing is shown before the fixed program has run and the gate lets the fix through.

    Args:
        lab: whose programs they are; a lab without both shows nothing.
        gate: of the lab.
        lock: held by whoever calls a method: no two threads may draw at once.
    """

    def __init__(self, lab: Lab, gate: Gate, lock: threading.RLock) -> None:
        self._lab, self._gate = lab, gate
        self._change = HTML()
        self._change.add_class("sr-diff")
        self._runs = {name: Picture(lock) for name in (BROKEN, FIXED)}
        super().__init__([self._change, *self._runs.values()])
        self.clear()

    def show_run(self, program: str, run: Finished) -> None:
        """Show how a program ran, unless it is neither of the two.

        Raises:
            OSError: a program cannot be read.
        """
        if program not in self._runs or not {BROKEN, FIXED} <= self._lab.programs.keys():
            return
        self._runs[program].show(partial(picture, program, run))
        self.show()

    def show(self) -> None:
        """Show the change if the fixed program has run and the fix may be shown.

        Raises:
            OSError: a program cannot be read.
        """
        if self._runs[FIXED].value and self._gate.shows_fix(MINE):
            change = difference(self._lab, BROKEN, FIXED)
            self._change.value = html("change", BROKEN, FIXED, Markup(change._repr_html_()))
            self.layout.display = None

    def clear(self) -> None:
        """Show nothing."""
        self.layout.display = "none"
        self._change.value = ""
        for run in self._runs.values():
            run.clear()


def picture(program: str, run: Finished, room: int) -> str:
    """One run: its outcome as a title, its lanes."""
    report = run.report
    drawn = view.lanes(run.snapshots, report.verdict, verdict_at=report.verdict_at, width=room)
    return html("picture", f"{program}: {headline(report)}", Markup(drawn))
