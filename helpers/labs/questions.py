"""What a `lab.toml` asks of a learner after the runs, and what it says to each answer."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..model.wording import sentence
from .toml_file import Text, Texts, one_of


class _Question(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    """A question about what a lab shows.

    Attributes:
        dump: raw output of a real run that it is about; empty where it is about none.
        explanation: why the right answer is right.
    """

    question: Text
    explanation: Text
    dump: str = ""


class Choice(_Question, frozen=True, kw_only=True, tag="choice"):
    """A question with answers to choose from.

    Attributes:
        right: the right one of the answers.
        wrong: on each of the other answers, in their order: what would be seen if it were right.
    """

    answers: Annotated[tuple[Text, ...], Meta(min_length=2)]
    right: Text
    wrong: Texts

    def __post_init__(self) -> None:
        one_of("right", self.right, self.answers)
        if len(self.wrong) != len(self.answers) - 1:
            raise ValueError("`wrong` must hold a sentence on each answer that is not right")

    def is_right(self, answer: str | None) -> bool:
        """True for the right answer."""
        return answer == self.right

    def feedback(self, answer: str) -> str:
        """What to make of an answer: a sentence that begins with right or no."""
        if self.is_right(answer):
            return f"Right. {self.explanation}"
        wrong_answers = [choice for choice in self.answers if choice != self.right]
        return f"No. {self.wrong[wrong_answers.index(answer)]} Try another answer."


class Near(Struct, frozen=True, forbid_unknown_fields=True):
    """A wrong number that a learner may well come to, and what would be seen if it were right."""

    value: float
    said: Text


class Number(_Question, frozen=True, kw_only=True, tag="number"):
    """A question whose answer is a number.

    Attributes:
        least: the smallest number that is right.
        most: the largest; as `least` when None, so that one number alone is right.
        near: wrong numbers that have a sentence of their own.
        otherwise: what to say to any other number.
    """

    least: float
    most: float | None = None
    near: tuple[Near, ...] = ()
    otherwise: Text

    def __post_init__(self) -> None:
        if self.most is not None and self.most < self.least:
            raise ValueError("`most` is below `least`")
        for near in self.near:
            if self._covers(near.value):
                raise ValueError(f"near: {near.value:g} is a right answer")

    def is_right(self, answer: str | None) -> bool:
        """True for a number in the range."""
        number = None if answer is None else number_in(answer)
        return number is not None and self._covers(number)

    def feedback(self, answer: str) -> str:
        """What to make of an answer: a sentence that begins with right or no."""
        number = number_in(answer)
        if number is None:
            return "Type a number."
        if self._covers(number):
            return f"Right. {self.explanation}"
        close = (near.said for near in self.near if near.value == number)
        return f"No. {next(close, self.otherwise)} Try another number."

    def _covers(self, number: float) -> bool:
        return self.least <= number <= (self.least if self.most is None else self.most)


Question = Choice | Number


def number_in(text: str) -> float | None:
    """The finite number that Python reads in a text; None where it reads none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


CLAIM_ANSWERS = ("true", "partly", "false", "not established")
"""What a learner can make of a claim."""

_FITS = {
    "confirmed here": "true",
    "partly true": "partly",
    "refuted here": "false",
    "not established": "not established",
    "needs a GPU": "not established",
}
"""The answer that fits each verdict."""


class Claim(Struct, frozen=True, forbid_unknown_fields=True):
    """One claim of the source document, what became of it, and what shows that.

    Attributes:
        asked: whether the learner judges it before the table is unfolded.
    """

    claim: Text
    verdict: Literal["confirmed here", "partly true", "refuted here", "not established", "needs a GPU"]
    shown_by: Text
    asked: bool = False

    def feedback(self, answer: str) -> str:
        """What to make of an answer, one of `CLAIM_ANSWERS`: right or no, the verdict, what shows it."""
        mark = "Right" if answer == _FITS[self.verdict] else "No"
        return f"{mark}. {sentence(self.verdict)}. {self.shown_by}"
