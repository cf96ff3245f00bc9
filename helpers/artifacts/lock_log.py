"""What the `filelock` library logs at its debug level -> the locks for which processes still wait."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ..model.facts import LockWait
from ..observe.account import Account
from .log_rank import KIND
from .patterns import failure_lines
from .writers import Line

SOON = 50
"""Lines that may stand behind the last one of a wait, which is logged twenty times a second."""

MOST = 1_000
"""Locks that are remembered."""


class _Request(msgspec.Struct, frozen=True):
    """A process has asked for a lock.

    Attributes:
        line: the newest that says so; refused: True where somebody else had the lock.
    """

    path: str
    line: Line
    refused: bool


class LockLog:
    """A log as it is read."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, str], _Request] = {}

    def take(self, line: Line) -> None:
        """The next line."""
        match = failure_lines.LOCK.search(line.text)
        if match is None:
            return
        who = line.writer, match["lock"]
        if match["got"] or match["late"]:
            self._requests.pop(who, None)
        elif len(self._requests) < MOST:
            self._requests[who] = _Request(match["path"], line, match["refused"] is not None)

    def accounts(self, path: str, last: int) -> Iterator[Account]:
        """The processes that wait: one that has only asked counts where nothing stands behind that.

        Args:
            last: number of the last line of the log.
        """
        for request in self._requests.values():
            since = last - request.line.number
            if since <= (SOON if request.refused else 0):
                quotes = ((request.line.number, request.line.raw),)
                waits = LockWait(request.path)
                yield Account(file=path, kind=KIND, rank=request.line.rank, lock=waits, quotes=quotes)
