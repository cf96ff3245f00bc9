"""The part of a panel that shows a run: status, verdict, picture, details."""

from __future__ import annotations

import threading
import time

from ipywidgets import HTML, HBox, VBox

from ..show import view
from ..show.details import Details
from ..widgets.native import Spoken
from .moment import Moment

REDRAW = 1.0
"""Seconds between two drawings of the lanes at least.

SVG in a core widget is good enough: of 64 ranks it has 130 kB, which took Python 6 ms to draw and
Chromium 29 ms to read, lay out and paint, on two cores. Only not at every update.
"""

SHARE = 0.1
"""Of its time the panel spends on drawing the lanes at most; with many ranks it draws less often."""


class Screen(VBox):
    """Shows one run. A widget sends only what has changed.

    Args:
        lock: held by whoever calls a method: no two threads may draw at once.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._reveal = True
        self._moment: Moment | None = None
        self._told, self._beside, self._verdict = Spoken(), HTML(), Spoken()
        self._lanes, self._advice = HTML(), HTML()
        self._details = Details(lock)
        status = HBox([self._told, self._beside])
        status.add_class("sr-status")
        super().__init__([status, self._verdict, self._lanes, self._advice, self._details])
        self.clear("Ready.")

    @property
    def status(self) -> str:
        """The sentence in the status line."""
        return self._status_text

    @property
    def reveal(self) -> bool:
        """False while the verdict is held back: shown is what was seen, not what follows from it.

        Setting it shows the run anew at once. It stays as it is from run to run.
        """
        return self._reveal

    @reveal.setter
    def reveal(self, shown: bool) -> None:
        if shown != self._reveal:
            self._reveal = shown
            if self._moment is not None:
                self.show(self._moment, redraw=True)

    def say(self, text: str, beside: str = "") -> None:
        """Put a sentence into the status line.

        Args:
            text: what is read out when it changes.
            beside: what changes all the time, shown after it and not read out.
        """
        self._status_text = " ".join(filter(None, (text, beside)))
        self._told.value, self._beside.value = view.status_line(text), view.status_line(beside)

    def clear(self, status: str) -> None:
        """Show nothing but a status line."""
        self._moment = None
        self._due = 0.0
        self._verdict.value = self._lanes.value = self._advice.value = ""
        self._details.clear()
        self.say(status)

    def show(self, moment: Moment, *, redraw: bool = False) -> None:
        """Show a run as it is now; the picture once a second at most, unless told to or at the end."""
        self._moment = moment
        now, report = moment.newest.time, moment.report
        self._verdict.value = self._said(moment)
        self._advice.value = view.advice(report) if report and self.reveal else ""
        if redraw or report is not None or now >= self._due:
            begun = time.perf_counter()
            self._lanes.value = view.lanes(
                moment.snapshots,
                moment.verdict if report else None,
                verdict_at=report.verdict_at if report else None,
                until=moment.until,
                reveal=self.reveal,
            )
            self._due = now + max(REDRAW, (time.perf_counter() - begun) / SHARE)
        self._details.show(moment, reveal=self.reveal)

    def _said(self, moment: Moment) -> str:
        if not self.reveal:
            return view.held_back() if moment.report else ""
        return view.final_verdict(moment.report) if moment.report else view.live_verdict(moment.verdict)
