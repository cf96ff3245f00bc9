"""What the sources of a program tell: the text, that it was edited, and what values they name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from helpers.observe.look import AnyQuestion
from helpers.observe.source import Sources, literals


def asking(answer: Any) -> Sources:
    def ask(question: AnyQuestion) -> Any:
        return answer

    return Sources("/job", ask)


ANSWERS = [
    ("not asked yet, or not to be read", None, ""),
    ("as an earlier version has recorded it", "step()", "step()"),
    ("older than the process", ["step()", 99.0], "step()"),
    ("changed since the process was started", ["step()", 101.0], ""),
]


@pytest.mark.parametrize(("title", "answer", "text"), ANSWERS, ids=[row[0] for row in ANSWERS])
def test_the_text_of_what_runs(title: str, answer: Any, text: str) -> None:
    sources = asking(answer)
    own = sources.of(100.0, {})
    assert own.text("train.py") == text
    assert sources.edited == ({"train.py"} if "changed" in title else set())


def test_plain_values_are_read_back() -> None:
    said = {"a": "1", "b": "-2.5", "c": "True", "d": "None", "e": "'x'", "f": "nan", "g": "-inf"}
    found = literals(said)
    assert math.isnan(float(str(found.pop("f"))))
    assert found == {"a": 1, "b": -2.5, "c": True, "d": None, "e": "x", "g": -math.inf}


@pytest.mark.parametrize("said", ["", "open('x')", "[1]", "(1,)", "1 +", "b'x'", "x", "1j"])
def test_what_is_no_plain_value_is_left_out(said: str) -> None:
    assert literals({"name": said}) == {}
