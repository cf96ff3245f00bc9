"""One question about a run, and what is said of an answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec


class Asked(msgspec.Struct, frozen=True):
    """One question about a run.

    Attributes:
        choices: the possible answers, in an order that gives nothing away.
        right: the choices that are right.
        why: what the instrument saw, as a sentence.
        several: True when every right choice has to be named, False when one is enough.
        instead: wrong choice -> what would have been seen if it were right, as a sentence.
    """

    text: str
    choices: tuple[str, ...]
    right: frozenset[str]
    why: str
    several: bool = False
    instead: Mapping[str, str] = msgspec.field(default_factory=dict)

    def is_right(self, answer: Collection[str]) -> bool:
        """True when these choices are the answer."""
        return set(answer) == self.right if self.several else bool(answer) and set(answer) <= self.right

    def feedback(self, answer: Collection[str]) -> str:
        """A sentence about an answer that begins with right, partly or no."""
        if self.is_right(answer):
            return "Right."
        truth = (" and " if self.several else " or ").join(c for c in self.choices if c in self.right)
        clauses = (self.instead.get(choice, "") for choice in self.choices if choice in answer)
        mark = "Partly" if self.right & set(answer) else "No"
        return " ".join([f"{mark}: {truth}.", *filter(None, clauses)])
