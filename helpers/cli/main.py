"""From the words of a command line to a verb, and from what goes wrong to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from ..report.files import discard
from . import attach, check, diagnose, explain, guide, lab, read
from .arguments import INTERRUPTED, LostFileError, Parser, UsageError

VERBS = (diagnose, attach, read, check, lab, guide, explain)
"""Each has `add(verbs)`, which declares its options, and `run(options)`, which returns the exit code.

What `run` needs is imported there: it takes a third of a second, for which no job is to wait."""

USAGE, FAULT = 64, 70


class _Version(argparse.Action):
    """Prints the version, which is looked up for nobody else: that takes time."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        print(f"stuck-ranks {version('stuck-ranks')}")
        parser.exit()


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The verb and its options; `command` is everything after `--`, which is never parsed.

    Raises:
        UsageError: they cannot be understood.
    """
    options, command = list(words), list[str]()
    if "--" in options:
        at = options.index("--")
        options, command = options[:at], options[at + 1 :]
    parser = Parser(prog="stuck-ranks", description="Say which rank, which call, which line, why.")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for verb in VERBS:
        verb.add(verbs).set_defaults(run=verb.run)
    return parser.parse_args(options, argparse.Namespace(command=command))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit code of the contract: 0 ok, 1 error, 2 hang, 3 still running, 64 wrong usage, 70 a
        fault of our own, 130 Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parse(words)
        return int(options.run(options))
    except UsageError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return USAGE
    except LostFileError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard(sys.stdout)
        return FAULT
    except Exception as fault:
        if os.environ.get("STUCK_RANKS_DEBUG"):
            raise
        print(
            f"stuck-ranks: a fault of its own: {type(fault).__name__}: {fault} "
            "(set STUCK_RANKS_DEBUG=1 for the traceback)",
            file=sys.stderr,
        )
        return FAULT
