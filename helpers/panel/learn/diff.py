"""What changes from one program to another, and how both ran."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path

from ipywidgets import HTML, HBox, VBox

from ...labs.side_by_side import side_by_side
from ...model.facts import Report, Snapshot
from ...report.text import headline
from ...report.timeline import timeline
from ..run.export import Finished

WIDTH = 520
"""Pixels of each of the two pictures."""


class DiffView(VBox):
    """Two programs side by side, and below them the picture of the last run of each.

    Nothing is shown before the new program has run: it would give away what to change.

    Args:
        files: the file of each program by its name, the old one first; nothing is shown without two.
    """

    def __init__(self, files: Mapping[str, Path]) -> None:
        self._files = dict(files)
        self._programs = HTML()
        self._runs: dict[str, HTML] = {name: HTML() for name in files}
        below = HBox(list(self._runs.values()))
        below.add_class("sr-runs")
        super().__init__([self._programs, below])
        self.forget()

    def show_run(self, program: str, run: Finished) -> None:
        """Show how a program ran; a program that is neither of the two is left out.

        Raises:
            OSError: a program cannot be read.
        """
        if program not in self._runs or len(self._files) < 2:
            return
        self._runs[program].value = picture(program, run.report, run.snapshots)
        if program == list(self._files)[-1]:
            old, new = self._files.values()
            texts = [path.read_text(encoding="utf-8", errors="replace") for path in (old, new)]
            self._programs.value = side_by_side(texts[0], texts[1], (old.name, new.name))
            self.layout.display = None

    def forget(self) -> None:
        """Show nothing."""
        self.layout.display = "none"
        for part in (self._programs, *self._runs.values()):
            part.value = ""


def picture(program: str, report: Report, snapshots: tuple[Snapshot, ...]) -> str:
    """One run, small: its outcome as a title, its lanes."""
    drawn = timeline(snapshots, report.verdict, width=WIDTH, verdict_at=report.verdict_at)
    title = f"{escape(program)}: {escape(headline(report))}"
    return f"<figure><figcaption><strong>{title}</strong></figcaption>{drawn}</figure>"
