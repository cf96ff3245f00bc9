"""`explain`: what a cause is, and what to do."""

from __future__ import annotations

import argparse

from .arguments import UsageError


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("explain", help="what a cause is, and what to do")
    verb.add_argument("cause", nargs="*", help="its name, or a word for it: oom, nccl timeout, ecc")
    return verb


def run(options: argparse.Namespace) -> int:
    """Print its page, or the list of all pages; return 0."""
    from ..diagnose.pages import UnknownCauseError, explained, overview

    try:
        print(explained(" ".join(options.cause)).rstrip("\n") if options.cause else overview())
    except UnknownCauseError as problem:
        raise UsageError(str(problem.args[0])) from None
    return 0
