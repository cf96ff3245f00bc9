"""What the verbs share: options, the values that they take, and what goes wrong with them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from ..report.files import UnwritableError, check_writable

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


class UsageError(Exception):
    """The command line cannot be carried out; the text says why in one sentence."""


class LostFileError(Exception):
    """A file could not be written in the end; what it would have held has been printed."""


class Parser(argparse.ArgumentParser):
    """A parser that raises what it finds wrong instead of printing a page and exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        raise UsageError(f"{message} (see {self.prog} --help)")


@contextmanager
def guide() -> Iterator[None]:
    """Import here what belongs to the guide, which the tool alone is installed without.

    Raises:
        UsageError: a package that it needs is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as absent:
        raise UsageError(
            f"this belongs to the guide, and {absent.name} is not installed here: run `make lab` in a "
            "checkout of Stuck Ranks, or install `stuck-ranks[labs]`"
        ) from None


def add_json(verb: argparse.ArgumentParser) -> None:
    """The option for the report as JSON."""
    verb.add_argument(
        "--json", type=writable, metavar="FILE", help="write the report as JSON; - is stdout"
    )


def add_html(verb: argparse.ArgumentParser) -> None:
    """The option for the report as a page."""
    verb.add_argument(
        "--html", type=writable, metavar="FILE", help="write the report as a page with its picture"
    )


def add_brief(verb: argparse.ArgumentParser) -> None:
    """The option for a report to paste."""
    verb.add_argument("--brief", action="store_true", help="print at most eight lines, to paste")


def add_record(verb: argparse.ArgumentParser) -> None:
    """The option for a recording."""
    verb.add_argument(
        "--record",
        type=recordable,
        metavar="FILE",
        help="write every look, for `read`; into a FOLDER/, which is made, as HOST-ID.rec",
    )


def add_patience(verb: argparse.ArgumentParser, seconds: float) -> None:
    """The option for the seconds after which a rank is a suspect."""
    verb.add_argument(
        "--patience",
        type=positive,
        default=seconds,
        metavar="S",
        help=f"seconds without CPU or movement after which a rank is suspect ({seconds:.0f})",
    )


def positive(text: str) -> float:
    """A number greater than 0.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return value


def pid(text: str) -> int:
    """The number of a process.

    Raises:
        argparse.ArgumentTypeError: it is not.
    """
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a process id")
    return int(text)


def recordable(text: str) -> Path:
    """A file that can be written, or a folder in which files can be made.

    A name that ends in a slash is a folder, which is made: several nodes may be given it at once, and
    as a file they would overwrite each other's.

    Raises:
        UsageError: it is neither.
    """
    path = Path(text)
    if text.endswith(os.sep):
        try:
            path.mkdir(exist_ok=True)
        except OSError as problem:
            raise UsageError(f"the folder {text} cannot be made: {problem.strerror}") from None
    writable(str(path / "new.rec") if os.path.isdir(path) else text)
    return path


def writable(text: str) -> str:
    """A file that can be written, or `-`.

    Raises:
        UsageError: it cannot.
    """
    if text != "-":
        try:
            check_writable(text)
        except UnwritableError as problem:
            raise UsageError(str(problem)) from None
    return text
