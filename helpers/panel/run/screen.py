"""The part of a panel that shows a run: status, verdict, picture, details."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

from ipywidgets import HTML, HBox, VBox

from ...diagnose.pages import page
from ...labs.stage import Stage
from ...model.facts import Report
from ...report.slow import shares
from ..show import view
from ..widgets.file_link import FileLink
from ..widgets.native import Picture, Spoken
from .details import Details
from .moment import Moment


class Screen(VBox):
    """Shows one run. A widget sends only what has changed.

    Args:
        lock: held by whoever calls a method: no two threads may draw at once.
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._stage = Stage.FIX
        self._moment: Moment | None = None
        self._status, self._beside, self._verdict = Spoken(), HTML(), Spoken()
        self._lanes, self._advice, self._page = Picture(lock), HTML(), FileLink()
        self._details = Details(lock)
        status = HBox([self._status, self._beside])
        status.add_class("sr-status")
        shown = [status, self._verdict, self._lanes, self._advice, self._page, self._details]
        super().__init__(shown)
        self.clear("Ready.")

    @property
    def status(self) -> str:
        """The sentence in the status line."""
        return self._status_text

    @property
    def stage(self) -> Stage:
        """How much of the verdict may be shown; what was seen is shown at every stage.

        Setting it draws the run again at once. It keeps its value from run to run.
        """
        return self._stage

    @stage.setter
    def stage(self, stage: Stage) -> None:
        if stage != self._stage:
            self._stage = stage
            if self._moment is not None:
                self.show(self._moment)

    def say(self, text: str, beside: str = "") -> None:
        """Put a sentence into the status line.

        Args:
            text: what is read out when it changes.
            beside: what changes all the time, shown after it and not read out.
        """
        self._status_text = " ".join(filter(None, (text, beside)))
        self._status.value, self._beside.value = view.status_line(text), view.status_line(beside)

    def clear(self, status: str) -> None:
        """Show nothing but a status line."""
        self._moment = None
        self._verdict.value = self._advice.value = ""
        self._lanes.clear()
        self._page.hide()
        self._details.clear()
        self.say(status)

    def show(self, moment: Moment, *, picture: bool = True) -> None:
        """Show a run as it is now; without `picture` the one that is shown stays."""
        self._moment = moment
        report = moment.report
        self._verdict.value = self._verdict_html(moment)
        if picture:
            self._lanes.show(partial(self._picture, moment, self._stage))
        self._advise(report)
        slow = view.who_is_waited_for(moment.verdict, self._stage)
        self._details.show(moment, slow, reveal=self._stage >= Stage.CULPRITS)

    @staticmethod
    def _picture(moment: Moment, stage: Stage, room: int) -> str:
        report = moment.report
        return view.lanes(
            moment.snapshots,
            moment.verdict if report else None,
            verdict_at=report.verdict_at if report else None,
            until=moment.until,
            reveal=stage >= Stage.STATEMENT,  # it is read out with the sentence of the verdict
            width=room,
            shares=shares(moment.verdict),
        )

    def _advise(self, report: Report | None) -> None:
        """Say what to do, with the page of the cause where the notebook can lead to it."""
        self._advice.value = view.advice(report, self._stage) if report else ""
        fault = report.verdict.cause if report and self._stage is Stage.FIX else "none"
        file = page(fault).file if fault != "none" else None
        if file and Path.cwd().is_relative_to(file.parents[3]):
            self._page.show("More about this cause:", file)
        else:
            self._page.hide()

    def _verdict_html(self, moment: Moment) -> str:
        if moment.report:
            return view.final_verdict(moment.report, self._stage)
        return view.live_verdict(moment.verdict, self._stage)
