"""`check`: what this machine has, how each lab runs on it, and how many learners it can take."""

from __future__ import annotations

import argparse

from .arguments import UsageError, guide


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser(
        "check",
        help="what is there on this machine, and what runs how",
        epilog="Exit code: 0 when everything required is there, else 1. The tool alone requires nothing "
        "of the guide. With --seats: 0 when every seat comes to its report.",
    )
    verb.add_argument(
        "--seats",
        type=count,
        metavar="N",
        help="run a lab N times at the same moment instead, as N pairs of learners do, and say how many "
        "come to the expected report and how long they take",
    )
    verb.add_argument("--lab", default="05", metavar="NAME", help="the lab that --seats runs (05)")
    return verb


def run(options: argparse.Namespace) -> int:
    """Print it; return 0 when everything required is there, or every seat comes to its report."""
    with guide():
        from ..labs import check, seats
        from ..labs.lab import LabError

        if options.seats is None:
            return check.main()
    if not check.has_guide():
        raise UsageError("--seats runs a lab, and the guide is not installed: see stuck-ranks check")
    try:
        return seats.main(options.lab, options.seats)
    except LabError as problem:
        raise UsageError(str(problem)) from None


def count(text: str) -> int:
    """A whole number, at least 1.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seats")
    return int(text)
