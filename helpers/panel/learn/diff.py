"""What changes from the broken program to the fixed one, and how both ran."""

from __future__ import annotations

from ipywidgets import HTML, HBox, VBox
from markupsafe import Markup

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.tables import difference
from ...report.text import headline
from ...report.timeline import timeline
from ..run.export import Finished
from ..show.templates import html
from .gate import Gate

BROKEN, FIXED = "broken", "fixed"

WIDTH = 520
"""Pixels of each of the two pictures."""


class DiffView(VBox):
    """The change as `lab.diff()` shows it, and below it the picture of the last run of each program.

    Nothing is shown before the fixed program has run and the gate lets the fix through.

    Args:
        lab: whose programs they are; a lab without both shows nothing.
        gate: of the lab.
    """

    def __init__(self, lab: Lab, gate: Gate) -> None:
        self._lab, self._gate = lab, gate
        self._change = HTML()
        self._change.add_class("sr-diff")
        self._runs = {name: HTML() for name in (BROKEN, FIXED)}
        below = HBox(list(self._runs.values()))
        below.add_class("sr-runs")
        super().__init__([self._change, below])
        self.clear()

    def show_run(self, program: str, run: Finished) -> None:
        """Show how a program ran, unless it is neither of the two.

        Raises:
            OSError: a program cannot be read.
        """
        if program not in self._runs or not {BROKEN, FIXED} <= self._lab.programs.keys():
            return
        self._runs[program].value = picture(program, run)
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
        for part in (self._change, *self._runs.values()):
            part.value = ""


def picture(program: str, run: Finished) -> str:
    """One run, small: its outcome as a title, its lanes."""
    report = run.report
    drawn = timeline(run.snapshots, report.verdict, width=WIDTH, verdict_at=report.verdict_at)
    return html("picture", f"{program}: {headline(report)}", Markup(drawn))
