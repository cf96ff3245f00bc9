"""The threads of a rank that an exception has ended, by what Python prints of them. No I/O."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from ..model.wording import one_line

_HEAD = re.compile(r"Exception in thread .+:$")
"""What `threading.excepthook` prints first, with the name of the thread (Python 3.8 to 3.14)."""

_PLACE = re.compile(r'  File "([^"]+)", line (\d+)')
_TRACEBACK = "Traceback (most recent call last):"

LONGEST = 120
"""Characters of an exception that are told."""


def thread_errors(lines: Sequence[str]) -> Iterator[str]:
    """`ValueError: record 7 (data.py:9)`, the exception of each.

    Args:
        lines: what a rank has printed.
    """
    for number, line in enumerate(lines):
        if _HEAD.search(line) and _TRACEBACK in lines[number + 1 : number + 2]:
            yield from _exception(lines[number + 2 :])


def _exception(lines: Sequence[str]) -> Iterator[str]:
    """That of a traceback with its innermost line, unless it is cut off."""
    at = ""
    for line in lines:
        place = _PLACE.match(line)
        if place is not None:
            at = f" ({os.path.basename(place[1])}:{place[2]})"
        elif line and not line.startswith(" "):
            yield f"{one_line(line)[:LONGEST]}{at}"
            return
