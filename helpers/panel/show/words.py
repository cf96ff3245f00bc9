"""Sentences that only the live view says. Plain text, not escaped yet."""

from __future__ import annotations

from ...diagnose.graph import Graph
from ...diagnose.matching import addresses
from ...model.clauses import grouped
from ...model.facts import Job, Snapshot
from ...model.waits import InStore
from ...model.wording import child_name, rank_name, spoken

MOST = 16
"""Ranks whose store keys are named."""


def hardware_line(job: Job) -> str:
    """`cpu, gloo, 2 ranks`."""
    ranks = [] if job.world_size is None else [ranks_text(job.world_size)]
    return ", ".join(filter(None, [job.hardware, *job.backends, *ranks]))


def ranks_text(count: int) -> str:
    """`1 rank` or `2 ranks`."""
    return f"{count} rank{'' if count == 1 else 's'}"


def states_line(snapshot: Snapshot) -> str:
    """`ranks 0 and 2 waiting, rank 1 running`, or that there is no rank yet."""
    states = grouped({view.rank: view.state for view in snapshot.ranks if view.rank is not None})
    clauses = [f"{spoken(ranks)} {state}" for state, ranks in states.items()]
    return ", ".join(clauses) or "no rank has started yet"


def rendezvous_line(snapshot: Snapshot) -> str:
    """`1 of 2 ranks have joined. rank 1 waits for the store key 'go'. Not yet: rank 0, importing.`

    Empty while the world size is not known.
    """
    world = snapshot.job.world_size
    if world is None:
        return ""
    joined = [view for view in snapshot.ranks if view.joined and view.rank is not None]
    sentences = [
        f"All {ranks_text(world)} have joined."
        if len(joined) >= world
        else f"{len(joined)} of {ranks_text(world)} joined."
    ]
    sentences += [
        f"{rank_name(view)} waits for the store key {wait.key!r}."
        for view in snapshot.ranks[:MOST]
        for wait in (view.process.blocking if view.process else ())
        if isinstance(wait, InStore) and wait.key
    ]
    doubles = [
        f"{child_name(child)} of {rank_name(view)} has joined too, as rank {child.joined_as_rank}."
        for view in snapshot.ranks
        for child in view.children
        if child.joined_as_rank is not None
    ]
    return " ".join([*sentences, *doubles, *_not_joined(snapshot), *_addresses(snapshot)])


def _not_joined(snapshot: Snapshot) -> list[str]:
    """Which ranks have not joined, grouped by state."""
    if len([view for view in snapshot.ranks if view.joined]) >= (snapshot.job.world_size or 0):
        return []
    views = (view for view in snapshot.ranks if not view.joined)
    states = grouped({view.rank: view.state for view in views if view.rank is not None})
    count = sum(len(ranks) for ranks in states.values()) + sum(view.joined for view in snapshot.ranks)
    clauses = [f"{spoken(ranks)} ({state})" for state, ranks in states.items()]
    unseen = (snapshot.job.world_size or 0) - count
    clauses += [f"{unseen} not seen yet"] if unseen > 0 else []
    return [f"Not yet: {', '.join(clauses)}."] if clauses else []


def _addresses(snapshot: Snapshot) -> list[str]:
    """The addresses at which ranks look for the store, when these are not the same."""
    ranks_by_address = addresses(Graph.of(snapshot).ranks)
    if len(ranks_by_address) < 2:
        return []
    clauses = [f"{spoken(ranks)} at {address}" for address, ranks in ranks_by_address.items()]
    return [f"They look for the store in {len(ranks_by_address)} places: {'; '.join(clauses)}."]
