"""Who is waited for where the ranks are on several machines, by the numbers of their collectives.

No clocks of two machines are compared. What is the same on all of them is the way from the end of one
collective to the end of the next: there, each rank first acts and then waits. So the ticks of a machine
in some collectives are put in that order, most ranks acting first, and laid along those of the others by
their share of the whole: at its end, whoever still acts is waited for.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..beacon.ticks import TICK
from ..model.frames import Frame
from ..model.pace import Numbered, Pace, Ranks
from ..model.samples import Line
from ..model.slow import Slow, SlowKind
from .accounting import MOST_RANKS
from .activity import SAME_LINE
from .windows import BLOCKS, Windows

MOST_BLOCKS = 2 * BLOCKS
"""Blocks of collectives: as few as tell a spread, since ticks of two machines are at other moments, and
a few of them make a difference that is none."""

QUANTILE = 5.408
"""Of Student's distribution with seven degrees of freedom, 99.95 %: chance has two sides here."""


def slow(paces: Sequence[Pace], number: int) -> Slow | None:
    """Who was waited for; None where nobody stands out, or ranks are missing.

    Args:
        paces: of the machines; number: of all ranks.
    """
    members = {rank for pace in paces for rank in pace.lines}
    if not 2 <= len(members) == number <= MOST_RANKS:
        return None
    windows = Windows()
    begun, chance = 0, random.Random(0)
    for counts in _blocks(paces):
        ticks = max(sum(counter.values()) for counter in counts)
        for ranks, times in _coupled(counts, ticks, chance):
            windows.note(ranks if len(ranks) < number else Ranks(), TICK * begun, ticks=times)
        begun += ticks
    outstanding = windows.outstanding(number, QUANTILE)
    if outstanding is None:
        return None
    ranks, share = outstanding
    shares = {rank: _shares(pace, rank) for pace in paces for rank in pace.lines}
    where, kind, asleep = _place(ranks, shares)
    seconds = share * max(pace.seconds for pace in paces)
    return Slow(tuple(sorted(ranks)), share, kind, seconds, where, asleep)


def _blocks(paces: Sequence[Pace]) -> Iterator[list[Counter[Ranks]]]:
    """What each machine did in some collectives, the same ones on all of them, the oldest first.

    They are those of the group with the most collectives, of the groups that all machines have.
    """
    common = set.intersection(*(set(pace.groups) for pace in paces))
    group = max(sorted(common), key=lambda name: _length(paces[0].groups[name]), default=None)
    if group is None:
        return
    numbered = [pace.groups[group] for pace in paces]
    width = max(machine.width for machine in numbered)
    while _length(numbered[0]) > MOST_BLOCKS * width:
        width *= 2
    widened = [_widened(machine, width) for machine in numbered]
    for block in sorted(set.intersection(*map(set, widened))):
        yield [blocks[block] for blocks in widened]


def _length(numbered: Numbered) -> int:
    """How many collectives there are."""
    return numbered.width * (max(numbered.blocks) - min(numbered.blocks) + 1)


def _widened(numbered: Numbered, width: int) -> dict[int, Counter[Ranks]]:
    blocks: dict[int, Counter[Ranks]] = {}
    for block, counted in numbered.blocks.items():
        blocks.setdefault(block * numbered.width // width, Counter()).update(counted)
    return blocks


def _coupled(
    counts: Sequence[Mapping[Ranks, int]], ticks: int, chance: random.Random
) -> Iterator[tuple[Ranks, int]]:
    """Ranks that act at the same part of the way to a collective, and for how many of the ticks.

    Args:
        chance: decides which of two sets of as many ranks comes first: any rule would couple some ranks
            of two machines time and again.
    """
    laid = [list(_laid(counter, ticks, chance)) for counter in counts]
    begin = 0
    for end in sorted({end for track in laid for end, _ in track} - {0}):
        acting = (next(ranks for track_end, ranks in track if track_end >= end) for track in laid)
        yield Ranks().union(*acting), end - begin
        begin = end


def _laid(
    counted: Mapping[Ranks, int], ticks: int, chance: random.Random
) -> Iterator[tuple[int, Ranks]]:
    """The sets of ranks, the largest first, each with the tick at which it ends."""
    whole, until = sum(counted.values()), 0
    sets = sorted(counted, key=sorted)
    for ranks in sorted(sets, key=lambda ranks: (-len(ranks), chance.random())):
        until += counted[ranks]
        yield round(until * ticks / whole), ranks


def _shares(pace: Pace, rank: int) -> dict[Line, float]:
    """The shares of its time for which a rank was at its lines."""
    return {line: times / pace.ticks for line, times in pace.lines[rank].items()}


def _place(
    ranks: Ranks, shares: Mapping[int, Mapping[Line, float]]
) -> tuple[Frame | None, SlowKind, bool]:
    """Where slow ranks spend more time than others, what takes it there, and whether that is sleep."""
    mean = _mean([lines for rank, lines in shares.items() if rank in ranks])
    rest = _mean([lines for rank, lines in shares.items() if rank not in ranks])
    more = {where: share - rest.get(where, 0.0) for where, share in mean.items()}
    where = max(more, key=lambda where: more[where], default=None)
    if where is None:
        return None, "unknown", False
    lines = [(line, share) for rank in ranks for line, share in shares[rank].items() if line[0] == where]
    (_, kind, asleep), _ = max(lines, key=lambda item: item[1])
    if kind == "compute" and rest.get(where, 0.0) > SAME_LINE * mean[where]:
        kind = "data"
    return where, kind, asleep


def _mean(shares: Sequence[Mapping[Line, float]]) -> dict[Frame, float]:
    """The share of the time at each line, whatever takes it there."""
    mean: dict[Frame, float] = {}
    for lines in shares:
        for (frame, _, _), share in lines.items():
            mean[frame] = mean.get(frame, 0.0) + share / len(shares)
    return mean
