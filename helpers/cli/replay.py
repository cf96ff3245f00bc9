"""`replay`: the report of a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..model.facts import EXIT_CODES
from ..observe.recording import RecordingError, load
from ..report import report as reports
from ..session import report_of
from .arguments import UsageError, add_html
from .watch import write_page


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("replay", help="the report of a recorded run")
    verb.add_argument("file")
    add_html(verb)
    return verb


def run(options: argparse.Namespace) -> int:
    """Print the report; return the exit code of its verdict."""
    try:
        history = list(load(Path(options.file)).snapshots())
    except RecordingError as problem:
        raise UsageError(str(problem)) from None
    report = report_of(history)
    if options.html:
        write_page(options.html, report, history)
    print(reports.to_text(report).rstrip("\n"))
    return EXIT_CODES[report.verdict.outcome]
