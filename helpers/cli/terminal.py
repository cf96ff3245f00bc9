"""A run in a terminal: a live table on stderr, or plain lines where none can be drawn."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ..model.facts import RankView, Snapshot, Verdict
from ..model.wording import doing, one_line, operation, place
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
SHOWN = 32
"""Ranks in the live table; the report lists all."""


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
        if self._live is not None:
            self._console.print(Text.from_ansi(line), soft_wrap=True)
        else:
            try:
                print(line, file=sys.stderr, flush=True)
            except BrokenPipeError:  # the verdict is still wanted
                discard(sys.stderr)


def _table(snapshot: Snapshot, verdict: Verdict) -> Table:
    table = Table(title=Text(_title(snapshot)), title_justify="left", caption_justify="left")
    for name in ("rank", "state", "at", "in", "cpu %", "MiB", "ports"):
        table.add_column(name, justify="right" if name in ("rank", "cpu %", "MiB") else "left")
    for view in snapshot.ranks[:SHOWN]:
        table.add_row(*_row(view))
    if len(snapshot.ranks) > SHOWN:
        table.add_row("…", f"{len(snapshot.ranks) - SHOWN} more")
    table.caption = Text(one_line(verdict.suspicion or verdict.summary))
    return table


def _title(snapshot: Snapshot) -> str:
    job = snapshot.job
    world = f"{job.world_size} ranks" if job.world_size else "no ranks yet"
    backends = ", ".join(job.backends)
    return f"{job.launcher}, {world}, {job.hardware} {backends} {snapshot.time:.1f} s"


def _row(view: RankView) -> tuple[Text, ...]:
    """The cells of a rank, as `Text`: rich reads a string as markup, and `[/x]` in it is an error."""
    mark, style = MARKS[view.state]
    rank = Text("?" if view.rank is None else str(view.rank))
    state = Text(f"{mark} {view.state}", style=style)
    process = view.process
    if process is None:
        return (rank, state)
    cells = (
        place(process.where) if process.where else "",
        operation(process.blocking[0]) if process.blocking else doing(process),
        f"{process.cpu:.0f}",
        f"{process.memory / 2**20:.0f}",
        " ".join(f"{port.port} {port.role}" for port in process.ports),
    )
    return (rank, state, *(Text(one_line(cell)) for cell in cells))
