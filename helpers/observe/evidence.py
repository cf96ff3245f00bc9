"""What each source tells of a process, and the one rule by which it is merged. No I/O."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Any

import msgspec
from msgspec.structs import fields

from ..beacon.record import Thread
from ..model.facts import ErrorView
from ..model.frames import Frame
from ..model.waits import Wait


class Source(IntEnum):
    """Who tells something of a process; the more trusted, the higher."""

    LOG = 0
    """The end of what it has printed."""
    TRACEBACK = 1
    """The traceback that a child of `mp.spawn` leaves for its parent."""
    KERNEL = 2
    """The state and the system call of a process that is no Python, or has no record yet."""
    RECORD = 3
    """Its threads and their calls: the beacon inside it, or py-spy where there is none."""
    OUTSIDE = 4
    """py-spy, while a call in C keeps the beacon from running."""
    CRASH = 5
    """The stack that `faulthandler` writes at a fatal signal."""
    EXIT = 6
    """The frames of the call by which it ends."""


class Evidence(msgspec.Struct, frozen=True):
    """What one source tells of one process. None stands for what it does not tell.

    Attributes:
        at: monotonic time at which it was so.
        since: monotonic time since which the process has been where it is.
        stack: innermost frame first, of the thread that the process is judged by.
        waits: what that thread waits for, oldest first, with what is pending beside it.
        thread: that thread; freeing: those that could end its wait, each with its own first wait.
        through: what threads of libraries wait for outside of the process: what comes may end its wait.
        bystanders: the kernel's ids of the threads whose work is none of that thread's.
        asleep: its system call, when that is a sleep.
        driven: True where its processor time is no work: it asks a device again and again.
    """

    source: Source
    at: float
    since: float | None = None
    stack: tuple[Frame, ...] | None = None
    waits: tuple[Wait, ...] | None = None
    thread: Thread | None = None
    freeing: tuple[tuple[Thread, Wait | None], ...] | None = None
    through: tuple[Wait, ...] | None = None
    bystanders: tuple[int, ...] | None = None
    asleep: str | None = None
    driven: bool | None = None
    error: ErrorView | None = None


def merge(evidence: Iterable[Evidence]) -> Evidence:
    """One account of a process from what several sources tell of it.

    Where a process stands may change at any time: of each such fact the newest evidence counts, of the
    same time the most trusted. An error happens once, and grows no older: the source nearest to the
    exception knows it best, which is its own record, then a file, then what was printed.

    Returns: `source` and `at` are those of the evidence for the place.

    Raises:
        ValueError: there is no evidence of where the process stands.
    """
    newest_first = sorted(evidence, key=lambda piece: (piece.at, piece.source), reverse=True)
    place = next((item for item in newest_first if item.since is not None), None)
    if place is None:
        raise ValueError("no source tells where the process stands")
    facts = {name: _first(newest_first, name) for name in _CHANGING}
    by_trust = sorted(newest_first, key=lambda piece: piece.source, reverse=True)
    return Evidence(place.source, place.at, error=_first(by_trust, "error"), **facts)


_CHANGING = [field.name for field in fields(Evidence) if field.name not in ("source", "at", "error")]


def _first(evidence: Iterable[Evidence], name: str) -> Any:
    values = (getattr(piece, name) for piece in evidence)
    return next((value for value in values if value is not None), None)
