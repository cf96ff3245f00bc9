"""What the ranks of one machine did on their way to each collective, without times of that machine."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .samples import Line

Ranks = frozenset[int]


class Numbered(msgspec.Struct, frozen=True):
    """By the numbers of the collectives of one group, which are the same on all machines.

    Attributes:
        width: how many numbers make a block: the first one those below it, and so on.
        blocks: number of a block -> ranks that had still to come to a collective of it -> at how many
            ticks. No ranks: all of this machine waited there.
    """

    width: int
    blocks: Mapping[int, Mapping[Ranks, int]]


class Pace(msgspec.Struct, frozen=True):
    """What the ranks of one machine did.

    Attributes:
        ticks: at which that is known of all of them; seconds: from the first to the last of them.
        groups: torch's own name of a group -> what they did by the numbers of its collectives.
        lines: rank -> line at which it did not wait for others -> at how many ticks.
    """

    ticks: int
    seconds: float
    groups: Mapping[str, Numbered]
    lines: Mapping[int, Mapping[Line, int]]
