"""What a learner finds out about a live job in a terminal, without the instrument, and types in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ..model.wording import joined
from .toml_file import Text, Texts

FIELDS = ("rank", "call", "line")
"""What is typed in, in the order of the form."""

NO_RANK = "none"
"""Typed in as the rank where none differs from the others."""


class ByHand(Struct, frozen=True, forbid_unknown_fields=True):
    """A run of a lab's program that a learner starts in a terminal, and what is to be found there.

    Attributes:
        program: a program of the lab.
        question: what to find, as sentences.
        calls: names of functions, any of which is right as the call.
        lines: `file.py:N`, any of which is right as the line.
        explanation: why, as sentences; shown once it is found or revealed.
        rank: the rank; None where none differs from the others.
        knobs: values of the program's knobs that differ from the defaults.
    """

    program: Text
    question: Text
    calls: Texts
    lines: Texts
    explanation: Text
    rank: int | None = None
    knobs: dict[str, Text] = {}

    def __post_init__(self) -> None:
        for line in self.lines:
            if not re.fullmatch(r"[\w./-]+\.py:\d+", line):
                raise ValueError(f"lines: {line!r} is not FILE.py:NUMBER")

    @property
    def answer(self) -> str:
        """What is right, as a sentence."""
        rank = "no rank differs" if self.rank is None else f"rank {self.rank}"
        return f"{rank}, `{self.calls[0]}`, `{self.lines[0]}`."

    def right(self, entries: Mapping[str, str]) -> dict[str, bool]:
        """For each field that is not empty, whether what was typed in is right."""
        judges = {"rank": self._is_rank, "call": self._is_call, "line": self._is_line}
        return {name: judges[name](entries[name]) for name in FIELDS if entries.get(name)}

    def is_right(self, entries: Mapping[str, str]) -> bool:
        """True when every field is right."""
        judged = self.right(entries)
        return len(judged) == len(FIELDS) and all(judged.values())

    def feedback(self, entries: Mapping[str, str]) -> str:
        """What to make of an answer: field by field, and nothing of what would be right."""
        if self.is_right(entries):
            return f"Right. {self.explanation}"
        judged = self.right(entries)
        parts = {
            "Right": [name for name, right in judged.items() if right],
            "Not yet": [name for name, right in judged.items() if not right],
            "Empty": [name for name in FIELDS if name not in judged],
        }
        return " ".join(f"{what}: {joined(names)}." for what, names in parts.items() if names)

    def _is_rank(self, text: str) -> bool:
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if self.rank is None:
            return not numbers and NO_RANK in re.findall(r"[a-z]+", text.lower())
        return numbers == [self.rank]

    def _is_call(self, text: str) -> bool:
        return _function_name(text).lower() in [name.lower() for name in self.calls]

    def _is_line(self, text: str) -> bool:
        place = re.fullmatch(r"(?:line\s+)?(?:(\S+\.py)[:, ]+(?:line\s+)?)?(\d+)", text.strip().lower())
        if place is None:
            return False
        file, number = place.groups()
        right = (line.lower().rpartition(":") for line in self.lines)
        return any(number == n and (file is None or file.rpartition("/")[2] == of) for of, _, n in right)


def _function_name(text: str) -> str:
    """The function that a text names: the last part of a dotted name, without what follows it.

    A constructor is named after its class, so that `Model.__init__` and `Model(...)` are one.
    """
    dotted = re.match(r"[\w.]+", text.strip().strip("`"))
    parts: Sequence[str] = dotted[0].split(".") if dotted else [""]
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]
