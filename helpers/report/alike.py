"""Ranks that are alike share a row: in the live table, the picture, the panel and the report."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from ..model.facts import RankView
from ..model.wording import by_number, node_name, rank_name, spans

MOST = 16
"""Rows of a live view, and ranks up to which each has a row of its own."""

Likeness = Callable[[RankView], tuple[Hashable, ...]]
"""What ranks of a row have in common, from what tells them apart most to what does so least."""


class Alike(msgspec.Struct, frozen=True, dict=True):
    """Ranks that share a row.

    Attributes:
        views: at least one.
        on: the node that they run on, or how many; empty for a job on one node.
    """

    views: tuple[RankView, ...]
    on: str = ""

    @cached_property
    def ranks(self) -> tuple[int | None, ...]:
        """Their numbers; None where one is not known."""
        return tuple(view.rank for view in self.views)

    @property
    def alone(self) -> RankView | None:
        """The rank that has the row to itself."""
        return self.views[0] if len(self.views) == 1 else None

    @property
    def name(self) -> str:
        """`rank 17`, `16,383 ranks`."""
        return rank_name(self.alone) if self.alone else f"{len(self.views):,} ranks"

    @property
    def heading(self) -> str:
        """What the name leaves open: `node 2 (host n2)`, `ranks 0-16, 18-16383 on 2,048 nodes`."""
        if self.alone:
            return self.on
        return f"ranks {spans(self.ranks)}" + (f" on {self.on}" if self.on else "")


def one_by_one(
    views: Sequence[RankView], likeness: Likeness, culprits: Collection[int] = ()
) -> list[Alike]:
    """The rows of a live view: a row for each rank while there are few, else as `together`.

    Ranks that are out of sight share a row: nothing is known of them that could tell them apart.
    """
    if sum(view.state != "unseen" for view in views) > MOST:
        return together(views, likeness, culprits, most=MOST)
    return together(views, lambda view: (view.state != "unseen" and id(view),), most=MOST + 1)


def together(
    views: Sequence[RankView], likeness: Likeness, culprits: Collection[int] = (), *, most: int
) -> list[Alike]:
    """Rows of ranks that are alike, node by node and in the order of their numbers.

    Rows are divided by one fact of their likeness after the other as long as there is room, those that
    fall into the fewest parts first: 16,384 ranks, each at a line of its own, stay one row.

    Args:
        culprits: never in a row with others.
        most: rows, 2 at least.
    """
    several = on_several_nodes(views)
    culprits = frozenset(culprits)
    ordered = sorted(by_number(views), key=_node) if several else by_number(views)
    entries = [(n, view, (view.rank in culprits, *likeness(view))) for n, view in enumerate(ordered)]
    rows = [entries] if entries else []
    for level in range(1, 1 + max((len(key) for *_, key in entries), default=0)):
        divided = sorted(((_divided(row, level), row) for row in rows), key=lambda pair: len(pair[0]))
        rows = []
        for rest, (parts, row) in zip(reversed(range(len(divided))), divided, strict=True):
            rows += parts if len(rows) + len(parts) + rest <= most else [row]
    rows.sort(key=lambda row: row[0][0])
    groups = [tuple(view for _, view, _ in row) for row in rows]
    return [Alike(group, _on(group) if several else "") for group in groups]


def on_several_nodes(views: Iterable[RankView]) -> bool:
    """True when ranks were seen on more than one node."""
    return len({view.node for view in views if view.process}) > 1


Value = TypeVar("Value", bound=Hashable)

_Entry = tuple[int, RankView, tuple[Hashable, ...]]


def _divided(row: Sequence[_Entry], level: int) -> list[list[_Entry]]:
    """A row in parts that have the first `level` facts in common."""
    parts: dict[tuple[Hashable, ...], list[_Entry]] = {}
    for entry in row:
        parts.setdefault(entry[2][:level], []).append(entry)
    return list(parts.values())


def _node(view: RankView) -> tuple[bool, int]:
    """Ranks of one node stand together, before those that no node has shown."""
    return view.process is None, view.node


def _on(views: Iterable[RankView]) -> str:
    """`node 3 (host n3)`, `12 nodes`."""
    by_node = {(view.node, view.host) if view.process else None: view for view in views}
    names = (node_name(view) if view.process else "no known node" for view in by_node.values())
    return shared(names, "nodes")


def common(values: Iterable[Value]) -> Value | None:
    """What all of them are; None where they differ, and of none."""
    distinct = {*values}
    return distinct.pop() if len(distinct) == 1 else None


def shared(texts: Iterable[str], many: str) -> str:
    """The text, where all are the same, else how many there are: `16,384 lines`."""
    distinct = {*texts}
    same = common(distinct)
    return f"{len(distinct):,} {many}" if same is None else same


def spread(numbers: Iterable[float]) -> str:
    """`97`, or `3-99` where numbers differ; whole ones."""
    ordered = sorted(numbers)
    ends = dict.fromkeys(f"{number:.0f}" for number in (*ordered[:1], *ordered[-1:]))
    return "-".join(ends)
