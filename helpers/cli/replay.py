"""`replay`: the report of a recorded run."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..diagnose.diagnose import diagnose
from ..diagnose.settling import HISTORY
from ..model.facts import EXIT_CODES
from ..observe.recording import RecordingError, load
from ..report import report as reports
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
    verdict = diagnose(history[-HISTORY:], final=True)
    seen = (look.time for look in history if any(view.process for view in look.ranks))
    report = reports.build(
        verdict, history[-1], first_rank=next(seen, None), verdict_at=history[-1].time
    )
    if options.html:
        write_page(options.html, report, history)
    print(reports.to_text(report).rstrip("\n"))
    return EXIT_CODES[verdict.outcome]
