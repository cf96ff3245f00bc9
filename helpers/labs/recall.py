"""Which questions of earlier labs a lab begins with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from .lab import Lab
from .questions import Number, Question

QUESTIONS = 2
"""How many questions a lab begins with."""


def recalled(lab: Lab, labs: Sequence[Lab]) -> tuple[Question, ...]:
    """Questions of earlier labs on the path, the nearest lab first; the same in every run.

    A question must be answered from what it shows or by a number. The first of a lab comes back in the
    lab after it, the second in the one after that; after one lab, its third comes as well.

    Args:
        lab: what is about to begin.
        labs: all labs of the guide, in any order.

    Returns:
        At most `QUESTIONS`; none for the first lab.
    """
    earlier = sorted(
        (peer for peer in labs if peer.file.place < lab.file.place),
        key=lambda peer: -peer.file.place,
    )
    banks = [
        [_of(peer, question) for question in peer.quiz if _asks_to_read(question)][distance::QUESTIONS]
        for distance, peer in enumerate(earlier)
    ]
    rounds = itertools.zip_longest(*banks)
    chosen = [question for questions in rounds for question in questions if question is not None]
    return tuple(chosen[:QUESTIONS])


def _of(lab: Lab, question: Question) -> Question:
    """The question, with the number of its lab: its words are those of that lab."""
    return replace(question, question=f"Lab {lab.name.partition('_')[0]}: {question.question}")


def _asks_to_read(question: Question) -> bool:
    return bool(question.dump) or isinstance(question, Number)
