"""Tracebacks that rich draws as boxes -> the lines that Python prints of one.

`╭── Traceback (most recent call last) ──╮`, rows of `│ FILE:LINE in NAME │`, which may be broken, and of
code, `│ ❱ LINE │ CODE │` for the line itself, `╰──╯`, and the exception below (rich 9 to 14,
rich/traceback.py).
"""

from __future__ import annotations

import re

from ..observe.tracebacks import TRACEBACK

BOX = ("╭", "│", "╰")
"""How the lines of a box begin."""

_HEAD = re.compile(r"╭─.*Traceback \(most recent call last\)")
_ROW = re.compile(r"│ ?(?P<row>.*?)\s*│?\s*$")
_PLACE = re.compile(r"(?P<file>\S.*?):(?P<line>\d+) in (?P<name>\S+)$")
_MARKED = re.compile(r"❱ +\d+ (?P<code>.*)")
_GUIDES = re.compile(r"^[│ ]+")
"""The lines that rich draws for each step of indentation."""


class RichBox:
    """The boxes of one writer, as their lines come."""

    def __init__(self) -> None:
        self._inside = False
        self._place = ""

    def unboxed(self, text: str) -> str | None:
        """A line as Python would print it; None for one that Python does not print."""
        row = _ROW.match(text)
        if row is None:
            self._inside = _HEAD.match(text) is not None
            self._place = ""
            return TRACEBACK if self._inside else None if text.startswith("╰") else text
        content = row["row"]
        if marked := _MARKED.match(content):
            self._inside = True
            return f"    {_GUIDES.sub('', marked['code'])}"
        self._place = f"{self._place} {content}".strip() if content[:1].strip() else ""
        if place := _PLACE.match(self._place):
            self._inside, self._place = True, ""
            return f'  File "{place["file"]}", line {place["line"]}, in {place["name"]}'
        return None if self._inside else text
