"""Programs of real-life size: the lines that are right."""

from __future__ import annotations

from collections.abc import Sequence


def lines_of(name: str, lines: Sequence[int | str]) -> set[tuple[str, int]]:
    """File and line of each; a number is a line of the program itself, a text is `FILE:LINE`."""
    places = (line if isinstance(line, str) else f"{name}.py:{line}" for line in lines)
    return {(file, int(number)) for file, _, number in (place.rpartition(":") for place in places)}
