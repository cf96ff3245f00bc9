"""What is said of several ranks: one clause for those of which the same is said, and for no others."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

from .facts import ProcessView
from .wording import doing, joined, place, plural, spoken

T = TypeVar("T", bound=Hashable)

MOST_CLAUSES = 3
"""Clauses of a sentence; where ranks are in more states and places than that, the others are counted."""


_LONG_FLOAT = re.compile(r"-?\d+\.\d{7,}(?:e[-+]?\d+)?")


class Predicate(NamedTuple):
    """What is said of one rank, and of several: `waits for rank 0`, `wait for rank 0`."""

    singular: str
    plural: str


def verb(singular: str, plural: str, rest: str) -> Predicate:
    """`verb("waits", "wait", "for rank 0")`."""
    return Predicate(f"{singular} {rest}", f"{plural} {rest}")


def same(text: str) -> Predicate:
    """What is said of one rank as of several: `ended with exit code 3`."""
    return Predicate(text, text)


def standing(process: ProcessView | None, then: str = "") -> Predicate:
    """`is asleep at prep.py:12`, `was never started`.

    Args:
        then: what follows, such as a relative clause.
    """
    if process is None:
        return verb("was", "were", "never started")
    if not process.alive:
        return same(f"ended{then}")
    at = f" at {place(process.where)}" if process.where is not None else ""
    return verb("is", "are", f"{doing(process)}{at}{then}")


def grouped(by_rank: Mapping[int, T]) -> dict[T, list[int]]:
    """What is said -> the ranks of which it is, in the order of the lowest rank."""
    groups: dict[T, list[int]] = {}
    for rank in sorted(by_rank):
        groups.setdefault(by_rank[rank], []).append(rank)
    return groups


def values_of(name: str, values: Mapping[int, str]) -> str:
    """`loss is 2.0 on rank 0, 1.0 on rank 1`; long numbers are rounded where they still differ then."""
    short = {r: f"{float(v):.6g}" if _LONG_FLOAT.fullmatch(v) else v for r, v in values.items()}
    shown = short if len({*short.values()}) == len({*values.values()}) else values
    return f"{name} is " + ", ".join(f"{v} on {spoken(ranks)}" for v, ranks in grouped(shown).items())


def clauses(predicates: Mapping[int, Predicate]) -> str:
    """`rank 1 is in recv at a.py:3 and ranks 2-4 are asleep at b.py:9`.

    Of more than `MOST_CLAUSES` those of the most ranks are told, and `12 other ranks are in 5 other
    states or places` follows.
    """
    groups = grouped(predicates)
    shown = sorted(groups, key=lambda what: -len(groups[what]))[:MOST_CLAUSES]
    parts = every_clause({rank: what for rank, what in predicates.items() if what in shown})
    rest = [rank for what, ranks in groups.items() if what not in shown for rank in ranks]
    if rest:
        number = len(groups) - len(shown)
        where = f"in {number} other states or places" if number > 1 else "in another state or place"
        parts.append(f"{len(rest)} other {plural(rest, 'rank is', 'ranks are')} {where}")
    return joined(parts)


def every_clause(predicates: Mapping[int, Predicate]) -> list[str]:
    """The clauses one by one, however many there are."""
    groups = grouped(predicates)
    return [f"{spoken(ranks)} {plural(ranks, *what)}" for what, ranks in groups.items()]
