"""`attach`: say why a running job hangs, and leave it as it is."""

from __future__ import annotations

import argparse

from .arguments import UsageError, add_brief, add_html, add_json, add_patience, add_record, pid, positive
from .interrupts import noted


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("attach", help="say why a running job hangs; leave it as it is")
    verb.add_argument("pid", type=pid, help="its launcher, or any of its ranks")
    add_json(verb)
    add_html(verb)
    add_patience(verb, 10.0)
    verb.add_argument(
        "--for",
        dest="least",
        type=positive,
        default=0.0,
        metavar="S",
        help="watch it so long at least: 20 show for which rank the others wait",
    )
    add_record(verb)
    add_brief(verb)
    return verb


def run(options: argparse.Namespace) -> int:
    """Watch the job for some seconds; return the exit code."""
    from ..launch.attach import AttachError
    from ..session import Session
    from .watch import Forms, watch

    with noted() as signals:
        try:
            session = Session.attach(options.pid, patience=options.patience, least=options.least)
        except AttachError as problem:
            raise UsageError(str(problem)) from None
        return watch(session, signals, Forms(options.json, options.html, options.brief), options.record)
