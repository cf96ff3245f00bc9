"""Where things lie in a timeline: seconds to x, lanes to y; and how numbers and texts are written."""

from __future__ import annotations

from functools import cached_property
from html import escape

import msgspec

from ..model.frames import Frame
from ..model.wording import one_line, place_in

LINE = 18
"""Pixels of a line of text."""

HEADING = 22
"""Pixels of a heading above a lane."""

CHILD = 17
"""Height of the lane of a worker."""

LETTERS = 13
"""Pixels of the letters of every text: what a reader needs on a laptop beside a notebook."""

CHARACTER = 7.3
"""Pixels of a character of that size, on average."""

BAR = 62
"""Width of a bar right of a lane."""

CROSS = 9
"""Pixels from the end of a process to the name of its failure."""

_XML_LACKS = str.maketrans({"\ufffe": "?", "\uffff": "?"})


class Area(msgspec.Struct, frozen=True, dict=True):
    """Where things lie: seconds to x, lanes to y, in pixels.

    Attributes:
        begin, end: seconds at the left and at the right of the lanes.
        now: seconds of the newest snapshot.
        width, left, right: of the picture, and of what is left (their names) and right of the lanes.
        top: y of the first lane.
        children: for each lane, True when it is a child's.
        headed: for each lane, True when a line of text is above it.
        timed: False where seconds mean nothing, and are not shown.
    """

    begin: float
    now: float
    end: float
    width: int
    left: int
    right: int
    top: int
    children: tuple[bool, ...]
    headed: tuple[bool, ...]
    timed: bool = True

    @property
    def plot(self) -> float:
        """Width of the lanes."""
        return self.width - self.left - self.right

    @property
    def seconds(self) -> float:
        """From the left to the right."""
        return self.end - self.begin

    @cached_property
    def heights(self) -> tuple[float, float]:
        """Height of the lane of a rank, and the gap between lanes."""
        return (24, 6) if sum(not child for child in self.children) <= 8 else (19, 3)

    @cached_property
    def tops(self) -> tuple[float, ...]:
        """Upper edge of every lane, and of what comes below them."""
        edges: list[float] = []
        below: float = self.top
        for index, headed in enumerate(self.headed):
            edges.append(below + HEADING * headed)
            below = edges[-1] + self.height(index) + self.heights[1]
        return (*edges, below)

    def height(self, index: int) -> float:
        """Height of a lane."""
        return CHILD if self.children[index] else self.heights[0]

    def middle(self, index: int) -> float:
        """Y of the middle of a lane."""
        return self.tops[index] + self.height(index) / 2

    def x(self, time: float) -> float:
        """Where a time lies; one outside the area at its nearer edge."""
        share = (min(max(time, self.begin), self.end) - self.begin) / self.seconds
        return self.left + share * self.plot


class Pin(msgspec.Struct, frozen=True):
    """A moment marked by a vertical line with a label above the lanes; `look` is its class."""

    time: float
    label: str
    look: str


def text(string: str, most: int = 2000) -> str:
    """Text of the job for the picture: one line, cut after `most` characters, escaped."""
    line = one_line(string).translate(_XML_LACKS)
    return escape(line if len(line) <= most else line[: most - 1] + "…")


def spot(frame: Frame | None) -> str:
    """` at train.py:41 validate`, a long path from its end; nothing for no frame."""
    place = place_in(frame).translate(_XML_LACKS)
    return f" at {place if len(place) <= 60 else '…' + place[-59:]}" if place else ""


def room(label: str) -> float:
    """Pixels that the name of a failure takes, from the end of the process on."""
    return CROSS + len(label) * CHARACTER + 5 if label else 0.0


def box(x: float, y: float, wide: float, high: float) -> str:
    """The outline of a rectangle as path data."""
    return f"M{px(x)} {px(y)}h{px(wide)}v{px(high)}h{px(-wide)}z"


def px(value: float) -> str:
    """A coordinate with one digit at most."""
    digits = f"{value:.1f}"
    return digits.removesuffix(".0") if digits != "-0.0" else "0"
