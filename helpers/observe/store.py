"""What the job's store holds, and when to look into it. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..beacon import torch_names
from ..model.facts import RankView

FIRST_AFTER = 3.0
"""Seconds in the rendezvous before the first look."""


@dataclass(frozen=True)
class StoreView:
    """What a store holds.

    Attributes:
        reachable: False when nothing listens at its address.
        keys: names of the keys that are set.
    """

    reachable: bool
    keys: tuple[str, ...] = ()

    @property
    def joined(self) -> tuple[int, ...]:
        """Ranks whose gloo address is in the store: they have come to the default process group."""
        found = {torch_names.rank_of_key(key) for key in self.keys}
        return tuple(sorted(rank for rank in found if rank is not None))


def address_to_look_at(ranks: Sequence[RankView]) -> str | None:
    """Where ranks have been in the rendezvous for a while, and no process seen here explains why."""
    addresses = {
        view.master
        for view in ranks
        if view.process is not None and view.state == "rendezvous" and view.process.still >= FIRST_AFTER
    }
    explained = all(view.process is not None for view in ranks) and any(
        view.state != "rendezvous" for view in ranks
    )
    return addresses.pop() if len(addresses) == 1 and not explained else None
