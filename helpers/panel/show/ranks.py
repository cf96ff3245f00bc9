"""The table of ranks, as it changes while a job runs. Many ranks that are alike share a row."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ...model.facts import Port, ProcessView, RankView, Snapshot
from ...model.wording import child_name, label, place_in, spans, wait_text, where_of
from ...report.alike import Alike, common, one_by_one, shared, spread
from .style import Mark, mark
from .templates import html

HEADS = ("Rank", "State", "Where", "Waits in", "CPU", "Memory", "Ports")


class Line(msgspec.Struct, frozen=True):
    """A row: a rank, several that are alike, or a child of a rank.

    Attributes:
        ranks: the numbers of several ranks.
        on: the node; empty for a child, and for a job on one node.
        error: the text of the error that has ended it.
    """

    name: str
    look: Mark
    ranks: str = ""
    on: str = ""
    at: str = ""
    waits: tuple[str, ...] = ()
    cpu: str = ""
    memory: str = ""
    ports: tuple[Port, ...] = ()
    error: str = ""
    child: bool = False


def rank_table(
    snapshot: Snapshot, caption: str = "Ranks", culprits: Collection[int] = (), *, reveal: bool = True
) -> str:
    """One row a rank, its children indented below it; of many ranks, a row for those that are alike.

    Args:
        culprits: share no row with others.
        reveal: False leaves out the errors.
    """
    rows = one_by_one(snapshot.ranks, _likeness, culprits)
    heads = ("Rank", "Node", *HEADS[1:]) if any(row.on for row in rows) else HEADS
    return html("ranks", caption, heads, [line for row in rows for line in _lines(row, reveal=reveal)])


def _likeness(view: RankView) -> tuple[object, ...]:
    process = view.process
    if process is None:
        return (view.state,)
    return (
        mark(view.state, process),
        label(process) if process.blocking else "",
        tuple(map(wait_text, process.waits)),
        place_in(where_of(process)),
        process.error.text if process.error else "",
    )


def _lines(row: Alike, *, reveal: bool) -> Iterator[Line]:
    processes = [view.process for view in row.views if view.process]
    looks = {mark(view.state, view.process) for view in row.views}
    look = common(looks) or Mark("·", f"{len(looks)} states", "plain")
    line = _line(row.name, look, processes, reveal=reveal)
    yield replace(line, ranks="" if row.alone else spans(row.ranks), on=row.on)
    for child in row.alone.children if row.alone else ():
        joined = "" if child.joined_as_rank is None else f", joined as rank {child.joined_as_rank}"
        look = mark(child.process.state, child.process)
        line = _line(f"↳ {child_name(child)}{joined}", look, [child.process], reveal=reveal)
        yield replace(line, child=True)


def _line(name: str, look: Mark, processes: Sequence[ProcessView], *, reveal: bool) -> Line:
    """What processes have in common, and between which ends they use a CPU and memory."""
    if not processes:
        return Line(name, look)
    alive = [process for process in processes if process.alive]
    memory = [process.memory / 1e6 for process in alive]
    waits = common(tuple(map(wait_text, process.waits)) for process in processes)
    errors = (process.error.text if process.error else "" for process in processes)
    return Line(
        name=name,
        look=look,
        at=shared((place_in(where_of(process)) for process in processes), "lines"),
        waits=(shared(map(label, processes), "calls"),) if waits is None else waits,
        cpu=f"{spread(process.cpu for process in alive)} %" if alive else "",
        memory=f"{spread(memory)} MB" if any(memory) else "",
        ports=processes[0].ports if len(processes) == 1 else (),
        error=shared(errors, "different errors") if reveal else "",
    )
