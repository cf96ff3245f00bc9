"""What a look into a store has shown, and when to look into one. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..beacon import torch_names
from ..model.facts import ProcessView, RankView
from ..model.network import StoreView

FIRST_AFTER = 3.0
"""Seconds in the rendezvous before the first look."""

NOT_LISTED = (
    "which ranks have left an address in the store at {address}: no Python of the job that could be "
    "started from here has a torch that lists what is in a store"
)
"""What is not seen of a store that answers."""

NOT_THERE = "has nobody who listens there"
"""The problem with a store in recordings that do not say which it was."""


def store_view(address: str, host: str, answer: Mapping[str, Any]) -> StoreView:
    """What was found at an address.

    Args:
        host: name of the machine from which it was looked at.
        answer: as `store_probe.look` gives it.
    """
    keys = answer["keys"]
    numbers = (torch_names.rank_of_key(str(key)) for key in keys or ())
    ranks = tuple(sorted(number for number in numbers if number is not None))
    problem = "" if answer["reachable"] else answer.get("problem") or NOT_THERE
    return StoreView(address, host, problem, ranks, listed=keys is not None)


def addresses_to_look_at(ranks: Sequence[RankView], launchers: Iterable[ProcessView]) -> set[str]:
    """Where ranks or launchers have met nobody for a while, and no process seen here explains why."""
    addresses = {
        view.master
        for view in ranks
        if view.process is not None and view.state == "rendezvous" and view.process.still >= FIRST_AFTER
    }
    explained = all(view.process is not None for view in ranks) and any(
        view.state != "rendezvous" for view in ranks
    )
    if ranks:
        return {address for address in addresses if address is not None and not explained}
    return {
        launcher.rendezvous.address
        for launcher in launchers
        if launcher.rendezvous is not None and launcher.awaits_nodes and launcher.still >= FIRST_AFTER
    }
