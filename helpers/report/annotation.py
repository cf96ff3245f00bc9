"""A report -> the workflow command by which GitHub shows it at its line of the change."""

from __future__ import annotations

import os
from pathlib import Path

from ..model.facts import Report
from ..model.wording import one_line
from .parts import fits
from .text import headline


def annotation(report: Report, cwd: Path, workspace: Path) -> str:
    """`::error file=train.py,line=30,title=...::...`; empty for a job that neither failed nor hangs.

    The escapes are those of `packages/core/src/command.ts` in GitHub's actions/toolkit.

    Args:
        report: its line is that of the first cause.
        cwd: the job's working directory, which the report's files are relative to.
        workspace: the folder of the checkout, which the annotation's file is relative to.
    """
    verdict = report.verdict
    if verdict.outcome not in ("error", "hang"):
        return ""
    properties = {"title": headline(report)}
    file = os.path.relpath(cwd / verdict.where.file, workspace) if verdict.where else os.pardir
    if verdict.where is not None and not file.startswith(os.pardir):
        properties = {"file": file, "line": str(verdict.where.line), **properties}
    test = f"In {report.snapshot.job.test}." if report.snapshot.job.test else ""
    message = "\n".join(filter(None, map(one_line, (verdict.summary, test, fits(report)))))
    stated = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::error {stated}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
