"""A run in a terminal: the job's output and a table below it, or plain lines where none can be drawn."""

from __future__ import annotations

import os
import select
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..model.facts import Snapshot
from ..model.frames import Frame
from ..model.waits import OnInput
from ..model.wording import coloured
from ..report.files import discard
from ..report.slow import slow_line
from ..session import Event, Sample
from .line_stream import LineStream

if TYPE_CHECKING:
    from rich.console import Console

PACE = 0.25
"""Seconds between two drawings of the table."""

TICK = 0.05
"""Seconds between two looks, without a table, at whether a line that has no end is to be shown."""

ROOM = 1 << 20
"""Bytes of output that may wait to be written; more of it holds the job up."""

MOST_UNFINISHED = 8
"""Lines without an end, such as progress bars, that are shown below the table."""

Piece = tuple[int | None, str, bytes] | str
"""Process, name and bytes of what the job has printed, or a line of our own."""


class Terminal:
    """Shows a session as it goes on, from a thread of its own; use it as a context manager.

    Only `write` waits for it, so that nothing but the reader of this terminal holds a job up.

    Args:
        console: where it is shown; standard error unless given.
        output: show what the job prints.
        live: draw a table, where that can be done.
    """

    def __init__(
        self, console: Console | None = None, *, output: bool = True, live: bool = True
    ) -> None:
        self._file = console.file if console is not None else sys.stderr
        self._console = _drawing(console) if live else None
        self._output = output
        self._stream = LineStream(newest=self._console is not None)
        self._changed = threading.Condition()
        self._drawing = threading.Lock()
        self._pieces: list[Piece] = []
        self._size = 0
        self._sample: Sample | None = None
        self._shown: Sample | None = None
        self._sentence = ""
        self._slow: tuple[tuple[int, ...], Frame | None] | None = None
        self._lines = 0
        self._prompts = False
        self._between: Sample | None = None
        self._over = False
        self._thread = threading.Thread(target=self._run, name="shows the run", daemon=True)

    def __enter__(self) -> Terminal:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()
        self._thread.join()

    def write(self, pid: int | None, label: str, data: bytes) -> None:
        """Take what a process has printed; waits while the reader of the terminal does not read."""
        with self._changed:
            self._changed.wait_for(lambda: self._size < ROOM or self._over)
            if self._output:
                self._pieces.append((pid, label, data))
                self._size += len(data)
                self._changed.notify_all()

    def say(self, line: str) -> None:
        """Show a line of our own."""
        with self._changed:
            self._pieces.append(line)
            self._changed.notify_all()

    def show(self, event: Event) -> None:
        """Take one event."""
        if not isinstance(event, Sample):
            return
        verdict = event.verdict
        line = verdict.suspicion or verdict.summary
        slow = (verdict.slow.ranks, verdict.slow.where) if verdict.slow is not None else None
        with self._changed:
            self._sample = event
            if self._console is None and verdict.outcome != "ok":
                if line != self._sentence:
                    self._sentence = line
                    self._pieces.append(f"[{event.snapshot.time:6.1f} s] {line}")
                if slow is not None and slow != self._slow:
                    self._slow = slow
                    self._pieces.append(f"[{event.snapshot.time:6.1f} s] Slow: {slow_line(verdict)}")
            self._changed.notify_all()

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Nothing is drawn while something else is written to the terminal."""
        with self._drawing:
            self._write(self._erase())
            yield

    def _run(self) -> None:
        drawn, over = 0.0, False
        while not over:
            pieces, over = self._next(0.0 if self._console is None else drawn + PACE)
            with self._drawing:
                drawn = self._draw(pieces, drawn, over)

    def _next(self, due: float) -> tuple[list[Piece], bool]:
        """What is to be shown, when it is time for it, and whether that is all."""
        with self._changed:
            pause = None
            if due or self._stream.unfinished():
                pause = max(0.0, due - time.monotonic()) if due else TICK
            self._changed.wait_for(lambda: self._is_due(at_once=not due), pause)
            pieces, self._pieces, self._size = self._pieces, [], 0
            self._changed.notify_all()
            return pieces, self._over

    def _is_due(self, at_once: bool) -> bool:
        """True where something is to be shown before it is time; at_once: so is all that is new."""
        new = self._pieces or self._sample is not self._shown
        return self._over or self._size >= ROOM or (at_once and bool(new))

    def _draw(self, pieces: list[Piece], drawn: float, over: bool) -> float:
        """Write what is new; returns when the table was drawn last."""
        now, sample = time.monotonic(), self._sample
        self._shown = sample
        prompts = self._prompts = self._is_asked(sample)
        new = self._joined(pieces, now, over)
        if self._console is None:
            self._write(new)
            return now
        text = coloured(new.decode("utf-8", "replace")).encode("utf-8", "replace")
        if over or prompts or sample is None or now - drawn < PACE:
            self._write(self._erase() + text if text or over or prompts else b"")
            return now - PACE + TICK if prompts else drawn
        self._write(self._erase() + text + self._below(self._console, sample))
        return now

    def _is_asked(self, sample: Sample | None) -> bool:
        """True while a person is asked; a single look may find the job between two questions."""
        if sample is None or _prompts(sample.snapshot):
            self._between = None
            return sample is not None
        if self._prompts and self._between is None:
            self._between = sample
            self._stream.answered()
        return self._prompts and sample is self._between

    def _joined(self, pieces: list[Piece], now: float, over: bool) -> bytes:
        """What is to be written of the job's output, and our own lines."""
        new = b"".join(
            self._stream.note(piece) if isinstance(piece, str) else self._stream.add(*piece, now)
            for piece in pieces
        )
        if over:
            return new + self._stream.end()
        return new + self._stream.quiet(now) if self._prompts or self._console is None else new

    def _erase(self) -> bytes:
        """Takes the table off the terminal."""
        lines, self._lines = self._lines, 0
        return b"\r\x1b[%dA\x1b[J" % lines if lines else b""

    def _below(self, console: Console, sample: Sample) -> bytes:
        """The table, and the lines that have no end yet, as far as there is room for them."""
        from .table import drawn

        unfinished = self._stream.unfinished()[:MOST_UNFINISHED]
        lines = drawn(console, sample.snapshot, sample.verdict, unfinished)[: console.height - 1]
        self._lines = len(lines)
        return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")

    def _write(self, data: bytes) -> None:
        file = self._file
        if file is None:  # it was closed when this process started
            return
        try:
            if not hasattr(file, "buffer"):
                file.write(data.decode("utf-8", "replace"))
                return
            while data:
                try:
                    data = data[os.write(file.fileno(), data) :]
                except BlockingIOError:  # somebody else has made the terminal so
                    select.select([], [file], [])
        except OSError:  # its reader has gone: the verdict is still wanted
            discard(sys.stderr)


def _drawing(console: Console | None) -> Console | None:
    """What draws a table; None where that cannot be done, for which nothing is imported."""
    if console is None:
        if sys.stderr is None or not sys.stderr.isatty():
            return None
        from rich.console import Console

        console = Console(stderr=True, highlight=False)
    return console if console.is_terminal and not console.is_dumb_terminal else None


def _prompts(snapshot: Snapshot) -> bool:
    """True while a process waits for a person: the terminal is theirs."""
    return any(
        isinstance(wait, OnInput)
        for view in snapshot.ranks
        for process in (view.process, *(child.process for child in view.children))
        for wait in (process.waits if process is not None else ())
    )
