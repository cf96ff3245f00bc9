"""What a job has left, in a notebook: the report of it, and the picture."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from ipywidgets import HTML

from ...artifacts.artifacts import Artifacts, read
from ...report.report import to_text
from ...session import report_of_artifacts
from ..show import view, words
from ..widgets.controls import Framed
from .replay import ReplayPanel


class AftermathPanel(Framed):
    """Shows what the files of a job tell.

    Args:
        title: where they were found.
        artifacts: what they hold.

    Attributes:
        report: everything that is known.

    Raises:
        NothingError: none of the files tells of a rank.
        RecordingError: a recording cannot be replayed.
    """

    def __init__(self, title: str, artifacts: Artifacts) -> None:
        self.report, snapshots = report_of_artifacts(artifacts)
        parts = [
            view.header(title, words.hardware_line(self.report.snapshot.job)),
            view.status_line(summary(artifacts)),
            view.final_verdict(self.report),
            view.lanes(snapshots, self.report.verdict),
            view.advice(self.report),
            view.final_ranks(self.report, "Ranks, as they were left"),
        ]
        super().__init__([HTML(part) for part in parts])

    def __repr__(self) -> str:
        return to_text(self.report)


def summary(artifacts: Artifacts) -> str:
    """`Read: Flight Recorder dump (4), log (1), recording (2).`"""
    files = {(account.kind, account.file) for account in artifacts.accounts}
    kinds = Counter(kind for kind, _ in sorted(files))
    kinds["recording"] = len(artifacts.recordings)
    return "Read: " + ", ".join(f"{kind} ({number})" for kind, number in kinds.items() if number) + "."


def open_artifacts(*paths: str | Path) -> AftermathPanel | ReplayPanel:
    """The report of a job that is dead or elsewhere; of a single recording, the run as it was.

    Args:
        paths: dumps, logs and recordings, or folders of them.

    Raises:
        MissingError: one of them cannot be read.
        NothingError: none of them tells of a rank.
        RecordingError: a recording cannot be replayed.
    """
    names = [str(path) for path in paths]
    artifacts = read(names)
    if artifacts.are_one_run:
        return ReplayPanel(artifacts.run())
    return AftermathPanel(", ".join(names), artifacts)
