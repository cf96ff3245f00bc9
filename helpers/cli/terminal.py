"""A run in a terminal: a live table on stderr, or plain lines where none can be drawn."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..model.facts import ProcessView, RankView, Snapshot, Verdict
from ..model.wording import coloured, doing, label, one_line, operation, place, spans
from ..report.alike import Alike, common, one_by_one, shared, spread
from ..report.files import discard
from ..session import Event, Output, Sample

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


class Terminal:
    """Shows events of a session as they come; use it as a context manager.

    Args:
        console: where they are shown; standard error unless given.
    """

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._live: Live | None = None
        self._last = ""
        if self._console.is_terminal and not self._console.is_dumb_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> Terminal:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Output):
            self._print(f"[{event.label}] {event.line}")
        elif isinstance(event, Sample):
            if self._live is not None:
                self._live.update(_table(event.snapshot, event.verdict), refresh=True)
            else:
                self._say(event)

    def _say(self, event: Sample) -> None:
        """One line whenever the sentence that describes the job changes."""
        line = event.verdict.suspicion or event.verdict.summary
        if line != self._last and event.verdict.outcome in ("running", "hang", "error"):
            self._last = line
            self._print(f"[{event.snapshot.time:6.1f} s] {line}")

    def _print(self, line: str) -> None:
        if self._console.is_terminal:  # a file gets every byte; a terminal would obey some
            line = coloured(line)
        if self._live is not None:
            self._console.print(Text.from_ansi(line), soft_wrap=True)
        else:
            try:
                print(line, file=sys.stderr, flush=True)
            except BrokenPipeError:  # the verdict is still wanted
                discard(sys.stderr)


def _table(snapshot: Snapshot, verdict: Verdict) -> Table:
    table = Table(title=Text(_title(snapshot)), title_justify="left", caption_justify="left")
    rows = one_by_one(snapshot.ranks, _likeness, verdict.culprits)
    nodes = ("node",) if any(row.on for row in rows) else ()
    for name in ("rank", *nodes, "state", "at", "in", "cpu %", "MiB", "ports"):
        right = name in ("rank", "cpu %", "MiB")
        table.add_column(name, justify="right" if right else "left", max_width=WIDEST.get(name))
    for row in rows:
        rank = Text(spans(row.ranks) if row.alone else f"{row.name}: {spans(row.ranks)}")
        table.add_row(rank, *(Text(row.on) for _ in nodes), *_cells(row))
    table.caption = Text(one_line(verdict.suspicion or verdict.summary))
    return table


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
