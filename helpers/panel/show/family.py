"""Every process of a snapshot under the name that the panel calls it by. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ...model.facts import ProcessView, Snapshot
from ...model.wording import by_number, child_name, rank_name


@dataclass(frozen=True)
class Member:
    """One process.

    Attributes:
        name: `rank 0`, `DataLoader worker 0 of rank 1`, `launcher`.
        rank: the rank that it is or belongs to; None for a launcher and where it is unknown.
    """

    name: str
    process: ProcessView
    rank: int | None = None


def family(snapshot: Snapshot) -> Iterator[Member]:
    """Launchers, then the ranks in order, each followed by its children."""
    for launcher in snapshot.launchers:
        yield Member("launcher", launcher)
    for view in by_number(snapshot.ranks):
        name = rank_name(view)
        if view.process is not None:
            yield Member(name, view.process, view.rank)
        for child in view.children:
            yield Member(f"{child_name(child)} of {name}", child.process, view.rank)
