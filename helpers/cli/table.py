"""The table of the ranks that a terminal shows below the output of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..model.facts import ProcessView, RankView, Snapshot, Verdict
from ..model.wording import coloured, doing, label, one_line, operation, place, spans
from ..report.alike import Alike, common, one_by_one, shared, spread
from ..report.slow import slow_line
from .line_stream import last_shown

MARKS = {
    "starting": ("…", "dim"),
    "importing": ("…", "dim"),
    "rendezvous": ("◌", "cyan"),
    "running": ("▶", "green"),
    "waiting": ("⏸", "yellow"),
    "stopped": ("■", "red"),
    "exited": ("·", "dim"),
    "missing": ("?", "red"),
    "unseen": ("?", "dim"),
}
WIDEST = {"rank": 32, "node": 24}
"""Letters of a line of these columns."""


def drawn(
    console: Console, snapshot: Snapshot, verdict: Verdict, unfinished: Sequence[tuple[str, bytes]]
) -> list[str]:
    """The lines of the table, below those of the job's output that have no end yet.

    Args:
        unfinished: name and text of each of these.
    """
    with console.capture() as capture:
        for name, text in unfinished:
            newest = last_shown(text).decode("utf-8", "replace")
            shown = Text.from_ansi(f"[{name}] {coloured(newest)}")
            console.print(shown, no_wrap=True, overflow="crop")
        console.print(_table(snapshot, verdict))
    return capture.get().splitlines()


def _table(snapshot: Snapshot, verdict: Verdict) -> Table:
    """A row for each rank, or for several that do the same."""
    shown = Table(title=Text(_title(snapshot)), title_justify="left", caption_justify="left")
    rows = one_by_one(snapshot.ranks, _likeness, verdict.culprits)
    nodes = ("node",) if any(row.on for row in rows) else ()
    for name in ("rank", *nodes, "state", "at", "in", "cpu %", "MiB", "ports"):
        right = name in ("rank", "cpu %", "MiB")
        shown.add_column(name, justify="right" if right else "left", max_width=WIDEST.get(name))
    for row in rows:
        rank = Text(spans(row.ranks) if row.alone else f"{row.name}: {spans(row.ranks)}")
        shown.add_row(rank, *(Text(row.on) for _ in nodes), *_cells(row))
    slow = slow_line(verdict)
    sentence = one_line(verdict.suspicion or verdict.summary)
    shown.caption = Text(f"{sentence}\nSlow: {slow}" if slow else sentence)
    return shown


def _title(snapshot: Snapshot) -> str:
    job = snapshot.job
    world = f"{job.world_size:,} ranks" if job.world_size else "no ranks yet"
    backends = ", ".join(job.backends)
    return f"{job.launcher}, {world}, {job.hardware} {backends} {snapshot.time:.1f} s"


def _likeness(view: RankView) -> tuple[str, ...]:
    process = view.process
    return (view.state, *((label(process), _inside(process), _at(process)) if process else ()))


def _cells(row: Alike) -> Iterator[Text]:
    """As `Text`, since rich reads a string as markup, and `[/x]` in it is an error."""
    state = shared((view.state for view in row.views), "states")
    mark, style = MARKS.get(state, ("", ""))
    yield Text(f"{mark} {state}", style=style)
    processes = [view.process for view in row.views if view.process]
    if not processes:
        return
    yield Text(one_line(shared(map(_at, processes), "lines")))
    inside = common(map(_inside, processes))
    yield Text(one_line(shared(map(label, processes), "calls") if inside is None else inside))
    yield Text(spread(process.cpu for process in processes))
    yield Text(spread(process.memory / 2**20 for process in processes))
    if row.alone:
        yield Text(one_line(" ".join(f"{port.port} {port.role}" for port in processes[0].ports)))


def _at(process: ProcessView) -> str:
    return place(process.where) if process.where else ""


def _inside(process: ProcessView) -> str:
    return operation(process.blocking[0]) if process.blocking else doing(process)
