"""The table of the ranks, their children below them."""

from __future__ import annotations

from ...model.facts import Snapshot
from .templates import html


def rank_table(snapshot: Snapshot, caption: str = "Ranks", *, reveal: bool = True) -> str:
    """One row a rank, its children indented below it; errors only when they may be revealed."""
    return html("ranks", snapshot, caption, reveal)
