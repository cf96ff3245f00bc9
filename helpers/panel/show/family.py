"""Every process of a snapshot, by the name that the panel gives it."""

from __future__ import annotations

from collections.abc import Iterator

from ...model.facts import ProcessView, Snapshot
from ...model.wording import by_number, child_name, rank_name


def family(snapshot: Snapshot) -> Iterator[tuple[str, ProcessView]]:
    """Launchers, then the ranks in order, each followed by its children.

    Yields:
        Each process with its name: `launcher`, `rank 0`, `DataLoader worker 0 of rank 1`.
    """
    for launcher in snapshot.launchers:
        yield "launcher", launcher
    for view in by_number(snapshot.ranks):
        name = rank_name(view)
        if view.process is not None:
            yield name, view.process
        for child in view.children:
            yield f"{child_name(child)} of {name}", child.process
