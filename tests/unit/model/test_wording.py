"""How a line of code is named."""

from __future__ import annotations

import pytest

from helpers.model.frames import Frame, cell_name
from helpers.model.wording import place, place_in

PLACES = [
    ("in a file", Frame("train.py", 41, "validate"), "train.py:41", "train.py:41 validate"),
    ("at its top", Frame("train.py", 41, "<module>"), "train.py:41", "train.py:41 <module>"),
    ("in a cell", Frame("cell [2]", 12, "f"), "cell [2], line 12", "cell [2], line 12, in f"),
    ("at its top", Frame("cell [2]", 12, "<module>"), "cell [2], line 12", "cell [2], line 12"),
    ("in one of two", Frame("cell [2 or 5]", 1, "<module>"), *["cell [2 or 5], line 1"] * 2),
    ("in an unknown one", Frame("cell [?]", 1, "<module>"), *["cell [?], line 1"] * 2),
    ("in a file so named", Frame("cell [2].py", 1, "f"), "cell [2].py:1", "cell [2].py:1 f"),
    ("nowhere", None, "an unknown line", ""),
]


@pytest.mark.parametrize(("title", "frame", "at", "inside"), PLACES)
def test_a_place(title: str, frame: Frame | None, at: str, inside: str) -> None:
    assert (place(frame), place_in(frame)) == (at, inside)


@pytest.mark.parametrize("numbers", [[], [2], [2, 5]])
def test_the_name_of_a_cell_is_known_as_one(numbers: list[int]) -> None:
    assert Frame(cell_name(numbers), 1, "f").in_cell
