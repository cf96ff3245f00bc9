"""What every live panel does: hold one run, follow it, stop it, clear it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

from ipywidgets import HTML, HBox, ToggleButton

from ...model.facts import Report
from ...observe.logs import Logs
from ...observe.recording import Tape
from ...report.history import History
from ...report.source_lines import Sources
from ...session import Ended, Event, Sample, Session
from ..show import view, words
from ..widgets.controls import Framed
from ..widgets.dock import Dock
from .export import ExportBar, Finished
from .moment import Moment
from .pace import Pace
from .pulse import Pulse
from .runner import Run
from .screen import Screen


class RunPanel(Framed):
    """A panel with one run at a time.

    Clicks arrive on whatever thread the kernel chooses and events on the run's supervisor thread;
    one lock orders them. No method waits for a process.

    The parts `_header`, `_screen` and `_export` are made here; a panel lays them out among its own.

    Args:
        title: the first line.
        hardware: what is known of it before the first run.
        clock: monotonic seconds, for the rhythm of updates.
        tab: the title, short enough for a tab.
    """

    def __init__(
        self,
        title: str,
        hardware: str = "",
        clock: Callable[[], float] = time.monotonic,
        *,
        tab: str = "",
    ) -> None:
        super().__init__()
        self.add_class("sr-panel")
        self._title, self._tab_title = title, tab or title
        self._lock = threading.RLock()
        self._pace, self._pulse = Pace(clock), Pulse(clock)
        self._run: Run | None = None
        self._name = ""
        self._active = False
        self._clearing = False
        self._history, self._sources = History(), Sources(None)
        self._tape = Tape()
        self._title_line = HTML(view.header(title, hardware))
        big = ToggleButton(description="Big screen", icon="expand", tooltip="Larger, for a projector")
        big.observe(lambda change: self._enlarge(change["new"]), "value")
        self._header = HBox([self._title_line, big])
        self._header.add_class("sr-head")
        self._screen = Screen(self._lock)
        self._export = ExportBar()

    def _ipython_display_(self) -> None:
        Dock(self, self._title, self._tab_title, self.stop)._ipython_display_()

    @property
    def status(self) -> str:
        """The sentence in the status line."""
        return self._screen.status

    @property
    def finished(self) -> Finished | None:
        """The run that has ended last, until the next one starts; None where there is none."""
        return self._export.run

    def stop(self) -> None:
        """Ask for the end of the run and return at once; the status line says when it is over."""
        with self._lock:
            run = self._run
            if run is None or not self._active:
                self._screen.say("Nothing is running.")
                return
            self._screen.say("stopping...")
        run.stop()

    def reset(self) -> None:
        """Stop the run and clear the display and the results. Returns at once."""
        with self._lock:
            run = self._run
            self._clearing = self._active
            self._clear("stopping..." if self._active else "Ready.")
        if run is not None:
            run.stop()

    def _enlarge(self, big: bool) -> None:
        (self.add_class if big else self.remove_class)("sr-big")

    def _clear(self, status: str) -> None:
        self._history = History()
        self._screen.clear(status)
        self._export.offer(None)

    def _say(self, text: str) -> None:
        with self._lock:
            self._screen.say(text)

    def _begin(
        self, name: str, make: Callable[[], Session], after: Callable[[], None] | None = None
    ) -> Run:
        """Start a run and return at once.

        Args:
            name: how the status line calls it.
            make: makes its session, once nothing of the previous run is left.
            after: called when nothing of this run is left.
        """

        tape = Tape()

        def start() -> Session:
            session = make()
            self._sources = Sources(session.cwd)
            session.record(tape)
            return session

        with self._lock:
            previous, run = self._run, Run(start, self._on_event, self._on_failure, after)
            self._run, self._name, self._active, self._clearing = run, name, True, False
            self._tape = tape
            self._clear(f"Starting {name}.")
        run.begin(previous)
        return run

    def _on_event(self, run: Run, logs: Logs, event: Event) -> None:
        with self._lock:
            if run is not self._run or not self._active:
                return
            if isinstance(event, Ended):
                self._end(run, event.report, logs)
                self._active = False
            elif isinstance(event, Sample) and not self._clearing:
                self._history.add(event.snapshot)
                if self._pace.begin():
                    self._follow(run, event, logs)
                    self._pace.end()

    def _follow(self, run: Run, sample: Sample, logs: Logs) -> None:
        self._title_line.value = view.header(self._title, words.hardware_line(sample.snapshot.job))
        if not run.stopping:
            beside = f"{sample.snapshot.time:.0f} s: {words.states_line(sample.snapshot)}"
            self._screen.say(f"Running {self._name}.{self._pulse.warning}", beside)
        moment = Moment(self._history.snapshots, sample.verdict, logs, self._sources)
        self._screen.show(moment, picture=self._pace.picture)

    def _end(self, run: Run, report: Report, logs: Logs) -> None:
        if self._clearing:
            self._clear("Ready. Nothing of the last run is left.")
            return
        self._title_line.value = view.header(self._title, words.hardware_line(report.snapshot.job))
        if not self._history.snapshots or self._history.snapshots[-1].time < report.snapshot.time:
            self._history.add(report.snapshot)
        snapshots = self._history.snapshots
        self._screen.show(Moment(snapshots, report.verdict, logs, self._sources, report))
        finished = Finished(
            name=f"{self._title}: {self._name}",
            report=report,
            snapshots=tuple(snapshots),
            logs=logs,
            sources=self._sources,
            recording=self._tape.recording,
        )
        self._export.offer(finished)
        self._take(finished)
        self._screen.say(
            "stopped; no process is left behind"
            if run.stopping
            else f"The run of {self._name} has finished; no process is left behind."
        )

    def _take(self, finished: Finished) -> None:
        """What a panel does with a run that has just ended and is shown. Called under the lock."""

    def _on_failure(self, run: Run, error: Exception) -> None:
        with self._lock:
            if run is self._run:
                self._active = False
                self._clear(str(error))

    async def _finished(self, run: Run) -> Report:
        """Wait for the end of a run and show it; an interrupted cell stops its run."""
        try:
            session = await asyncio.shield(asyncio.wrap_future(run.session))
            report = await session.result()
        except asyncio.CancelledError:
            run.stop()
            raise
        self._on_event(run, session.logs, Ended(report))
        return report
