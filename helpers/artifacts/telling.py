"""The lines of a text that say most of why a job has ended, for a reader who knows more than we do."""

from __future__ import annotations

import re
from collections.abc import Collection

from .patterns import PATTERNS
from .writers import Line

MOST = 5
"""Lines that are shown."""

ALARMING = 4
"""The weight from which on a line tells of a failure."""

SOON = 12
"""Lines that may stand at the end of a text, after the one that tells of its failure."""

SHAPES = 64
"""Lines that are remembered while a text is read: the first ones of each weight, and the last."""

AROUND = 40
"""Letters before and after what tells, by which two lines are the same but for their numbers."""

_FRAME = re.compile(
    r'\s*File ".+", line \d+|Exception raised from '
    r"|frame #\d+: |#\d+ +0x|Traceback \(most recent call last\):$"
)
"""A line of a stack, which tells nothing without the line that names the failure."""

_WEIGHTS = (
    (
        6,
        r"\b(?:FATAL|Fatal|PANIC|panic|Segmentation fault|core dumped|[Kk]illed|oom|OOM|[Oo]ut of memory"
        r"|died|EXITCODE|exit(?:ed|s)? (?:with )?(?:return )?code|CANCELLED|Xid|ECC|Evicted|[Ss]talled"
        r"|terminated|closing signal)\b",
    ),
    (5, r"^[\w.]*(?:Error|Exception|Interrupt)\b(?!: -?[\d.]+$)"),
    (5, r"(?:Error|Exception): (?!-?[\d.]+$)|\[(?:rank)?\d*\]?.*\bE\d{3,4} "),
    (
        4,
        r"\b(?:ERROR|[Ee]rror|CRITICAL|[Ff]ailed|[Ff]ailure|[Aa]bort(?:ed|ing)?|[Rr]efused|WARN)\b|\[E\b",
    ),
    (
        3,
        r"[Tt]imed? ?out|[Tt]imeout|[Uu]nreachable|[Dd]isconnect|closed by|[Ss]tuck|[Hh]ang|[Dd]eadlock",
    ),
    (1, r"[Ww]arn|[Rr]etry|[Ss]low"),
)
_PATTERNS = tuple((weight, re.compile(pattern)) for weight, pattern in _WEIGHTS)
_MESSAGES = tuple(row for row in PATTERNS.values() if row.needles)
_ANY = re.compile("|".join(pattern for _, pattern in _WEIGHTS))

ALARM = re.compile(rb"\b(?:FATAL|Fatal|[Kk]illed|ERROR|CRITICAL|[Ff]ailed|[Aa]borted|died|[Ss]talled)\b")
"""What most lines that tell of a failure have, to be looked for in a long text."""

_NUMBERS = re.compile(r"\d+")


_RETRIED = re.compile(r"\b[Rr]etry(?:ing)?\b")
"""What a line says of a failure that is not the last word."""

_WELL = re.compile(r"\b(?:[Ff]inished|[Cc]ompleted?|[Dd]one|[Ss]uccess\w*)\b")
"""What a job prints that has ended well."""


class Telling:
    """The most telling lines of a text as it is read."""

    def __init__(self) -> None:
        self._by_shape: dict[str, tuple[int, Line]] = {}
        self._last: Line | None = None
        self._since: list[int] = []

    def take(self, line: Line) -> None:
        """The next line."""
        if not line.text.strip() or _FRAME.match(line.text):
            return
        self._last = line
        weight, at = 0, 0
        if _ANY.search(line.text):
            matches = ((weight, pattern.search(line.text)) for weight, pattern in _PATTERNS)
            weight, at = next(((weight, match.start()) for weight, match in matches if match), (0, 0))
        if weight >= ALARMING and not _RETRIED.search(line.text):
            self._since = [line.number]
        elif self._since and _WELL.search(line.text):
            self._since = []
        elif self._since:
            self._since.append(line.number)
        shape = _NUMBERS.sub("#", line.text[max(0, at - AROUND) : at + AROUND])
        if weight and shape not in self._by_shape and len(self._by_shape) < SHAPES:
            self._by_shape[shape] = weight, line

    def alarming(self, outlived: Collection[int]) -> bool:
        """True where a text ends soon after a line that tells of a failure.

        Args:
            outlived: numbers of lines whose failure nothing has come of.
        """
        return 0 < len(self._since) <= SOON and self._since[0] not in outlived

    def lines(self, outlived: Collection[int]) -> list[tuple[int, str]]:
        """Number of a line, and the line, in their order: the most telling, else the last one."""
        candidates = [(w, line) for w, line in self._by_shape.values() if line.number not in outlived]
        heaviest = sorted(candidates, key=lambda candidate: (-candidate[0], candidate[1].number))[:MOST]
        by_number = {line.number: line.raw for _, line in heaviest}
        if self._last is not None and not by_number:
            by_number[self._last.number] = self._last.raw
        return sorted(by_number.items())


def excerpt(text: str, letters: int) -> str:
    """A part of a line, of so many letters at most: its beginning, or from what tells on."""
    of_messages = [match.start() for row in _MESSAGES if (match := row.search(text))]
    starts = of_messages or [
        match.start() for _, pattern in _PATTERNS if (match := pattern.search(text))
    ]
    at = min(starts, default=0)
    return text[at if at > letters - AROUND else 0 :][:letters]
