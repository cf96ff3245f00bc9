"""What `read` says of a text in a file of its own."""

from __future__ import annotations

from pathlib import Path

from helpers.artifacts.artifacts import read
from helpers.report.report import Report
from helpers.session import report_of_artifacts

Told = tuple[str, str, tuple[int, ...]]


def report(folder: Path, text: str, name: str = "job.log") -> Report:
    """The report on a file of a folder, and on what else is in that."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return report_of_artifacts(read([str(folder)]))[0]


def found(folder: Path, text: str, name: str = "job.log") -> Told:
    """Outcome, cause and culprits of it."""
    verdict = report(folder, text, name).verdict
    return verdict.outcome, verdict.cause, verdict.culprits
