"""`diagnose`: run a command and say why it stops."""

from __future__ import annotations

import argparse

from ..session import Session
from .arguments import UsageError, add_html, add_json, add_patience, add_record, positive
from .watch import watch


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser(
        "diagnose",
        help="run a command and say why it stops",
        usage="stuck-ranks diagnose [options] -- COMMAND [ARG ...]",
    )
    add_json(verb)
    add_html(verb)
    verb.add_argument("--max-seconds", type=positive, metavar="N", help="end the job after N s")
    add_patience(verb, 30.0)
    verb.add_argument("--stop-on-suspicion", action="store_true", help="end on a suspicion")
    add_record(verb)
    verb.add_argument("--keep-running", action="store_true", help="let the job go on after the verdict")
    return verb


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    if not options.command:
        raise UsageError("no command is given: put it after `--`")
    session = Session(
        options.command,
        stdin="inherit",
        patience=options.patience,
        max_seconds=options.max_seconds,
        stop_on_suspicion=options.stop_on_suspicion,
        keep_running=options.keep_running,
    )
    return watch(session, options.json, options.html, options.record)
