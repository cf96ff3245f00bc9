"""What each tab below the picture shows: processes, memory, a stack, who is waited for. Others are in
`ranks`, `ports`."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from ...model.facts import ProcessView, Snapshot
from ...model.slow import Share
from ...model.wording import activities, megabytes, place_in, spans, spoken, stack_of
from ...report.alike import MOST as MOST_ROWS
from ...report.alike import shared
from ...report.slow import does, percents
from ...report.source_lines import Sources
from .family import family
from .templates import html

MOST = 200
"""Processes shown in the tree, and bars; the rest is counted."""

AWAITED = 0.01
"""Share of the time from which on one of many ranks has a row of its own in the ranking."""


def process_tree(snapshot: Snapshot) -> str:
    """Every process of the job below the one that started it."""
    members = list(family(snapshot))
    if not members:
        return "<p>No process has been seen yet.</p>"
    shown = {process.pid: (name, process) for name, process in members[:MOST]}
    below: dict[int | None, list[int]] = {}
    for pid, (_, process) in shown.items():
        parent = process.parent
        below.setdefault(parent if parent in shown and parent != pid else None, []).append(pid)
    tree = Markup('<ul class="sr-tree">{}</ul>').format(_list(None, below, shown, set(shown)))
    return tree + _more(len(members) - len(shown))


def _list(
    parent: int | None,
    below: dict[int | None, list[int]],
    shown: dict[int, tuple[str, ProcessView]],
    unlisted: set[int],
) -> Markup:
    """The processes below `parent`. Each pid is listed once, so pids that were used twice end it."""
    parts = []
    for pid in below.get(parent, ()):
        if pid in unlisted:
            unlisted.discard(pid)
            children = _list(pid, below, shown, unlisted)
            nested = Markup("<ul>{}</ul>").format(children) if children else ""
            parts.append(html("process", *shown[pid], nested))
    return Markup("").join(parts)


def memory_bars(snapshots: Sequence[Snapshot]) -> str:
    """One bar a process, all on one scale; a line across it marks the most it has had.

    Of too many, those that have had most are shown.

    Args:
        snapshots: of the run so far, in the order of time; at least one.
    """
    most: dict[int, int] = {}
    for snapshot in snapshots:
        for _, process in family(snapshot):
            most[process.pid] = max(most.get(process.pid, 0), process.memory)
    bars = [
        (name, process.memory if process.alive else 0, most[process.pid])
        for name, process in family(snapshots[-1])
        if most[process.pid]
    ]
    if not bars:
        return "<p>No process has been seen yet.</p>"
    together = megabytes(sum(now for _, now, _ in bars)) or "nothing"
    caption = f"Memory: {together} in {len(bars)} processes"
    least = heapq.nlargest(MOST, (peak for *_, peak in bars))[-1]
    shown = [bar for bar in bars if bar[2] >= least][:MOST]
    return html("memory", caption, shown, max(peak for *_, peak in bars)) + _more(len(bars) - len(shown))


def _more(number: int) -> Markup:
    return Markup("<p>and {:,} more</p>").format(number) if number else Markup("")


def stack(name: str, process: ProcessView, sources: Sources) -> str:
    """Where a process is; where it failed, when an error has ended it.

    Args:
        name: what the panel calls it.
        sources: gives the text of the user's lines.
    """
    frames = stack_of(process)
    user_lines = [(frame, sources.line(frame)) for frame in frames if frame.user]
    whole = [(frame, "") for frame in frames]
    return html("stack", name, process, "; ".join(activities(process)), user_lines, whole)


def own_stack(name: str, process: ProcessView, sources: Sources) -> str:
    """Where a process is in the user's code; arguments as for `stack`."""
    user_lines = [(frame, sources.line(frame)) for frame in stack_of(process) if frame.user]
    return html("stack", name, process, "; ".join(activities(process)), user_lines, user_lines)


class Standing(msgspec.Struct, frozen=True):
    """A row of the ranking: a rank, the ranks that are waited for together, or many that are alike.

    Attributes:
        numbers: of many ranks.
        waited_for, waits: as for `Share`: in percent, from the least to the most, and the most.
        at, does: the line at which it is waited for, and what takes the time there.
        waits_at: the line at which it waits, or how many lines.
    """

    name: str
    numbers: str
    waited_for: tuple[str, float]
    waits: tuple[str, float]
    at: str
    does: str
    waits_at: str


def ranking(shares: Sequence[Share], helps: str = "") -> str:
    """For whom the others wait, and how long each rank waits for others; nothing without shares.

    Args:
        shares: of all ranks, those who are waited for the longest first.
        helps: what makes it faster, in Markdown.
    """
    if not shares:
        return ""
    awaited = sum(share.waited_for >= AWAITED for share in shares)
    alone = len(shares) if len(shares) <= MOST_ROWS else min(awaited, MOST_ROWS - 1)
    rows = [_standing([share]) for share in shares[:alone]]
    rows += [_standing(shares[alone:])] if shares[alone:] else []
    return html("ranking", rows, helps)


def _standing(shares: Sequence[Share]) -> Standing:
    ranks = sorted(rank for share in shares for rank in share.ranks)
    first = shares[0]
    return Standing(
        name=spoken(ranks) if len(shares) == 1 else f"{len(ranks)} ranks",
        numbers="" if len(shares) == 1 else spans(ranks),
        waited_for=_percents([share.waited_for for share in shares]),
        waits=_percents([share.waits for share in shares]),
        at=place_in(first.where) if first.where is not None else "",
        does=does(first) if first.where is not None else "",
        waits_at=shared((place_in(share.waits_at) for share in shares), "lines"),
    )


def _percents(values: Sequence[float]) -> tuple[str, float]:
    return percents(values), max(values)
