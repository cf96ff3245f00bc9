"""What a report answers, and which of two answers claims less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NOBODY_KNOWS = ("none", "unknown")
"""Causes that name none."""


@dataclass(frozen=True)
class Answer:
    """Outcome, cause and culprits, as a report has them."""

    outcome: str
    proved: bool
    cause: str
    culprits: tuple[int, ...] = ()

    @classmethod
    def of(cls, report: Mapping[str, Any]) -> Answer:
        """The answer of a report; one that says nothing for none, where there was no job to look at."""
        if not report:
            return cls("running", False, "none")
        culprits = tuple(report["culprits"])
        return cls(report["outcome"], report["proved"], report["cause"], culprits)


def claims_no_more(answer: Answer, than: Answer) -> bool:
    """True for the same answer as another one, or for one that claims less.

    It may leave the outcome open (`running`), the proof, the cause (`unknown`, `none`) or the culprits;
    what it does claim is what the other one does. A job that has ended well, or that is seen to run, is
    never said to hang or to have failed.
    """
    return (
        answer.outcome in ("running", than.outcome)
        and (than.proved or not answer.proved)
        and answer.cause in (*NOBODY_KNOWS, than.cause)
        and answer.culprits in ((), than.culprits)
    )
