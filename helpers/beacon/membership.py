"""The members of a process group, in as few words as a record has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, List

if TYPE_CHECKING:
    from .record import Members

MOST_LISTED = 64
"""Members that are listed one by one: each rank tells of all its groups, again and again."""

MOST_RANKS = 1 << 17
"""Above the number of ranks of any job: such a number is none of a rank, but damage."""


def members(ranks: Iterable[int]) -> Members:
    """The members of a group, in order, in few words."""
    listed = sorted(ranks)
    if len(listed) > MOST_LISTED:
        span = (listed[0], listed[-1] + 1, listed[1] - listed[0])
        if listed == list(range(*span)):
            return {"ranks": [], "span": span}
    return {"ranks": listed}


def ranks_of(membership: Members) -> List[int]:
    """The members that a group or a call tells, no more than any job has."""
    return list(range(*membership["span"])[:MOST_RANKS]) if "span" in membership else membership["ranks"]
