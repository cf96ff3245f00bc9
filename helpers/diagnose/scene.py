"""What the causes look at: one snapshot, its wait-for graph and its events."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec

from ..model.clauses import grouped
from ..model.facts import ProcessView, RankView, Snapshot
from ..model.frames import Frame, is_in
from ..model.waits import InCollective, Wait
from ..model.wording import spoken, stack_of
from .aborted_calls import AbortedCall, aborted_calls, exclusions
from .events import Event, events, left_to_starter
from .graph import Graph
from .matching import SAME_SIZE
from .parting.divergence import Divergence
from .parting.history import Desync, find_desyncs
from .parting.relative import has_passed

MOST_PLACES = 16
"""Where ranks are in more places than this, none of them is odd: all disagree."""


class Facts(msgspec.Struct, frozen=True, dict=True):
    """One moment of a job, prepared for the causes.

    Attributes:
        patience: seconds after which what has neither moved nor used CPU is assumed never to do so;
            infinite: nothing is assumed, and what is found is proved.
    """

    snapshot: Snapshot
    patience: float = math.inf

    @cached_property
    def graph(self) -> Graph:
        """The wait-for graph of the snapshot."""
        return Graph.of(self.snapshot, self.patience)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Failing ends, the most telling first."""
        return tuple(event for event in self._ends if event not in self.dismissed)

    @cached_property
    def dismissed(self) -> tuple[Event, ...]:
        """Ends of ranks that no rank waits for, and of which their starter has to say what they mean."""
        return tuple(
            event
            for event in self._ends
            if left_to_starter(self.snapshot, event) and not self.graph.needing(event.ranks)
        )

    @cached_property
    def _ends(self) -> tuple[Event, ...]:
        """All failing ends, whatever their starters make of them."""
        return events(self.snapshot)

    @cached_property
    def desyncs(self) -> tuple[Desync, ...]:
        """Where the calls of ranks have come apart, of each group in which they have."""
        issued = {rank: view.process.issued for rank, view in self.graph.ranks.items() if view.process}
        return find_desyncs(issued)

    @cached_property
    def aborted(self) -> dict[int, AbortedCall]:
        """The calls in which ranks were at a failure, of those whose call is known."""
        return aborted_calls(self.graph.ranks, self.first)

    @cached_property
    def excluded(self) -> dict[int, Divergence]:
        """The ranks that their number keeps from the call that has failed first, with the condition."""
        return exclusions(self.graph.ranks, self.aborted, self.first)

    @property
    def first(self) -> Event | None:
        """The event that the others follow from, if any has happened."""
        return self.events[0] if self.events else None

    @cached_property
    def ended_unseen(self) -> tuple[int, ...]:
        """The ranks that had ended, nobody saw how, when the first rank known to fail got a SIGTERM.

        That is how a launcher ends the ranks that are left, once one has failed.
        """
        event = self.first
        if event is None or event.by_signal is None or not (event.consequence and event.own):
            return ()
        return tuple(
            rank
            for rank, view in sorted(self.dead.items())
            if view.process and view.process.end_unseen and (view.process.ended or 0.0) <= event.time
        )

    def saying(self, pattern: re.Pattern[str]) -> dict[int, Event]:
        """The ranks that have failed with such a message, in order, each with its most telling event."""
        matches = [event for event in self.events if event.error and pattern.search(event.error.message)]
        by_rank = {event.rank: event for event in reversed(matches) if event.rank is not None}
        return dict(sorted(by_rank.items()))

    @cached_property
    def unseen(self) -> tuple[int, ...]:
        """The ranks that are out of sight."""
        return tuple(sorted(self.graph.unseen))

    @property
    def all_seen(self) -> bool:
        """True when no rank is out of sight."""
        return bool(self.graph.ranks) and not self.unseen

    @property
    def follows_from_unseen(self) -> bool:
        """True where the first failure follows from another one, and ranks may be out of sight."""
        sized = self.snapshot.timed or self.snapshot.job.world_size is not None
        return self.first is not None and self.first.consequence and not (self.all_seen and sized)

    @cached_property
    def stuck(self) -> frozenset[int]:
        """Ranks that nothing can wake any more."""
        return self.graph.stuck

    @cached_property
    def alive(self) -> dict[int, RankView]:
        """Ranks whose process runs."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and v.process.alive}

    @cached_property
    def dead(self) -> dict[int, RankView]:
        """Ranks whose process has ended."""
        return {r: v for r, v in self.graph.ranks.items() if v.process and not v.process.alive}

    @cached_property
    def runs_module_again(self) -> bool:
        """True where a child of `multiprocessing` runs the user's module from the top once more."""
        views = self.graph.ranks.values()
        children = [child.process for view in views for child in view.children]
        family = [*(view.process for view in views if view.process is not None), *children]
        # multiprocessing/spawn.py, 3.11 to 3.14
        return any(is_in(stack_of(process), "_fixup_main_from_path") for process in family)

    def processes(self, ranks: Sequence[int]) -> list[ProcessView]:
        """The processes of `ranks`, of those that have one."""
        views = [self.graph.ranks[rank] for rank in ranks]
        return [view.process for view in views if view.process is not None]

    def waits(self, rank: int) -> tuple[Wait, ...]:
        """What a rank is blocked in."""
        return self.graph.waits(rank)

    def where(self, ranks: Sequence[int]) -> Frame | None:
        """The line of the first of `ranks` that has one."""
        for rank in ranks:
            view = self.graph.ranks.get(rank)
            if view is not None and view.process is not None and view.process.where is not None:
                return view.process.where
        return None


def texts(failures: Mapping[int, Event]) -> tuple[str, ...]:
    """`ranks 0 and 1: RuntimeError: ...`, for each text that ranks have failed with."""
    by_text = grouped({rank: event.text for rank, event in failures.items()})
    return tuple(f"{spoken(ranks)}: {text}" for text, ranks in by_text.items())


def odd_ones(facts: Facts, places: Mapping[int, object]) -> tuple[int, ...]:
    """The stuck ranks that have to change for the others to go on: the fewest of them.

    Ranks in the same place go together. They are the ones in one place, or in two, without which all
    others would go on; where several choices are equally small, those of all of them. Otherwise all.

    Args:
        places: where each stuck rank is, and where others have been, as far as they differ.
    """
    classes: dict[object, set[int]] = {}
    for rank, place in places.items():
        classes.setdefault(place, set()).add(rank)
    together = list(classes.values())
    if len(together) <= MOST_PLACES:
        for number in (1, 2):
            choices = [set[int]().union(*chosen) for chosen in itertools.combinations(together, number)]
            enough = [
                ranks
                for ranks in choices
                if facts.stuck <= facts.graph.freed_by(facts.graph.free | ranks)
            ]
            fewest = min(map(len, enough), default=0)
            if enough:
                odd = set[int]().union(*(ranks for ranks in enough if len(ranks) == fewest))
                return tuple(sorted(odd & facts.stuck)) or tuple(sorted(facts.stuck & places.keys()))
    return tuple(sorted(facts.stuck & places.keys()))


def passed_unnumbered(facts: Facts, calls: Mapping[int, Wait]) -> tuple[int, int] | None:
    """A rank that has run the line at which another one waits, and that one, if no call has a number.

    They may have met there, which makes their next calls differ but is no mismatch: gloo lets a rank go
    on where the other one has brought a tensor of another size.
    """
    if any(not isinstance(wait, InCollective) or wait.seq is not None for wait in calls.values()):
        return None
    one_of_each = {wait.where: rank for rank, wait in sorted(calls.items(), reverse=True)}.values()
    stacks = {rank: process.stack[::-1] for rank in one_of_each for process in facts.processes((rank,))}
    pairs = itertools.permutations(sorted(stacks), 2)
    in_one = ((a, b) for a, b in pairs if calls[b].op in SAME_SIZE and has_passed(stacks[a], stacks[b]))
    return next(in_one, None)


def minority(places: Mapping[int, object]) -> tuple[int, ...]:
    """The ranks outside the strict majority of `places`; all of them when there is none."""
    groups = grouped(places)
    largest = max(groups.values(), key=len, default=[])
    if len(groups) > 1 and 2 * len(largest) > len(places):
        return tuple(sorted(rank for ranks in groups.values() if ranks is not largest for rank in ranks))
    return tuple(sorted(places))
