"""Replays a recorded run: at any speed, from any second, without the job or its hardware."""

from __future__ import annotations

import threading
from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from pathlib import Path

from ipywidgets import HTML

from ...diagnose.diagnose import diagnose
from ...diagnose.settling import HISTORY
from ...model.facts import Verdict
from ...observe.recording import Recording, load
from ...report.history import History
from ...report.source_lines import Sources
from ...session import report_of
from ..show import view, words
from ..widgets.controls import Framed
from .export import ExportBar, Finished
from .moment import Moment
from .player import Player, Wait
from .screen import Screen


class RecordedLogs:
    """What the processes had printed at the end of a recorded run."""

    def __init__(self, recording: Recording) -> None:
        self._lines = {label: list(lines) for label, lines in recording.logs.items()}

    def labels(self) -> list[str]:
        """Names of the processes, in the order of the recording."""
        return list(self._lines)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        """The last lines of one process."""
        return self._lines.get(label, [])[-lines:]


class ReplayPanel(Framed):
    """Shows a recording as the run was shown live, labelled as a recording.

    Args:
        recording: with at least one look.
        wait: as for `Player`.
    """

    def __init__(self, recording: Recording, wait: Wait | None = None) -> None:
        history = History()
        for snapshot in recording.snapshots():
            history.add(snapshot)
        self._snapshots = tuple(history.snapshots)
        self._patience = recording.watched.patience
        self._report = report_of(self._snapshots, self._patience, attached=recording.watched.attached)
        self._times = [snapshot.time for snapshot in self._snapshots]
        self._logs = RecordedLogs(recording)
        self._sources = Sources(None, recording.sources)
        self._lock = threading.RLock()
        self._verdict = lru_cache(maxsize=None)(self._diagnose)
        self._screen = Screen(self._lock)
        self._player = Player(self._times, self._lock, self._show, wait)
        self._export = ExportBar()
        job = self._snapshots[-1].job
        title = recording.name or " ".join(job.command)
        super().__init__(
            [
                HTML(view.header(title, words.hardware_line(job))),
                HTML(view.recorded(label(recording))),
                self._player,
                self._screen,
                self._export,
            ]
        )
        self._show()
        self._export.offer(
            Finished(
                name=title,
                report=self._report,
                snapshots=self._snapshots,
                logs=self._logs,
                sources=self._sources,
                recording=lambda: recording,
                provenance=dict(recording.made),
            )
        )

    @property
    def second(self) -> float:
        """The second of the run that is shown."""
        return self._player.second

    def seek(self, second: float) -> None:
        """Show the run as it was at a second of it."""
        self._player.seek(second)

    def _show(self) -> None:
        with self._lock:
            index = max(0, bisect_right(self._times, self.second) - 1)
            last = index == len(self._times) - 1
            self._screen.show(
                Moment(
                    self._snapshots[: index + 1],
                    self._report.verdict if last else self._verdict(index),
                    self._logs,
                    self._sources,
                    self._report if last else None,
                    until=self._times[-1],
                )
            )
            self._screen.say("Recording,", f"second {self._times[index]:.1f} of {self._times[-1]:.1f}.")

    def _diagnose(self, index: int) -> Verdict:
        """The verdict at a snapshot before the last, from the same window as in a live run."""
        return diagnose(
            self._snapshots[max(0, index + 1 - HISTORY) : index + 1], patience=self._patience
        )

    def __repr__(self) -> str:
        return f"A recording of {self._times[-1] - self._times[0]:.0f} s: Play, Speed, Second"


def label(recording: Recording) -> str:
    """`Recording of 2026-11-21 08:04 UTC: x86_64, 2 CPU cores; Linux ...; torch 2.13.0`."""
    provenance = dict(recording.made)
    date, machine, system = (provenance.pop(name, "") for name in ("date", "machine", "system"))
    versions = ", ".join(f"{name} {version}" for name, version in provenance.items())
    facts = "; ".join(part for part in (machine, system, versions) if part)
    return f"Recording of {_spoken(date)}: {facts or 'nothing is known of the machine'}"


def _spoken(date: str) -> str:
    try:
        return f"{datetime.fromisoformat(date):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return "a day that is not known"


def open_recording(path: str | Path) -> ReplayPanel:
    """A recorded run, as its panel showed it.

    Args:
        path: of a file that `Save as Recording` or `stuck-ranks diagnose --record` has written.

    Raises:
        RecordingError: the file cannot be read as a recording, or holds no look.
    """
    return ReplayPanel(load(Path(path)))
