"""Where ranks parted, as HTML: the lines of each way side by side, and the values that decided it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from itertools import pairwise

import msgspec
from jinja2 import Environment, StrictUndefined

from ..model.frames import Frame
from ..model.parting import Branch, Parting
from ..model.redaction import Source
from ..model.wording import one_line, place, printable, sentence, spans
from .parts import way_text

AROUND = 1
"""Lines that are shown before and after one that matters."""

LONGEST = 120
"""Characters of a line that are shown."""

_PAGE = Environment(
    autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
).from_string(files(__package__).joinpath("parted.html").read_text(encoding="utf-8"))


class Line(msgspec.Struct, frozen=True):
    """A line of a source; without a number where some are left out.

    Attributes:
        mark: what it is: `statement`, `rank`, or nothing.
    """

    number: int | None
    text: str = ""
    mark: str = ""


class Side(msgspec.Struct, frozen=True):
    """One way that ranks have taken, and the lines that show it."""

    title: str
    file: str
    lines: tuple[Line, ...]


def parted_html(parting: Parting | None) -> str:
    """Nothing where no statement is known. Everything that comes from the job is escaped."""
    if parting is None or parting.where is None:
        return ""
    ranks = sorted({rank for way in parting.branches for rank in way.ranks})
    values = [
        (one_line(name), [one_line(by_rank.get(rank, "")) for rank in ranks], name in parting.differ)
        for name, by_rank in parting.values.items()
    ]
    return _PAGE.render(
        where=place(parting.where),
        source=one_line(Source(parting.source)),
        sides=[_side(parting, parting.where, way) for way in parting.branches],
        ranks=[spans([rank]) for rank in ranks],
        values=values,
    ).strip()


def _side(parting: Parting, statement: Frame, way: Branch) -> Side:
    title = sentence(way_text(parting, way))
    if way.at is None:
        return Side(title, "", ())
    together = (way.at.file, way.at.function) == (statement.file, statement.function)
    marks = {way.at.line: "rank", **({statement.line: "statement"} if together else {})}
    return Side(title, one_line(way.at.file), tuple(_lines(way.at.text, marks)))


def _lines(text: str, marks: dict[int, str]) -> Iterator[Line]:
    """The marked lines with some around them, without the indentation that all have."""
    lines = text.splitlines()
    shown = sorted(
        {
            number
            for mark in marks
            for number in range(mark - AROUND, mark + AROUND + 1)
            if 0 < number <= len(lines)
        }
    )
    excerpt = [lines[number - 1] for number in shown]
    indent = min((len(line) - len(line.lstrip()) for line in excerpt if line.strip()), default=0)
    for before, number in pairwise([None, *shown]):
        if before is not None and number is not None and number > before + 1:
            yield Line(None)
        if number is not None:
            line = printable(Source(lines[number - 1][indent:].expandtabs(4).rstrip()))
            yield Line(number, line[:LONGEST].replace("\n", " "), marks.get(number, ""))
