"""The threads of a process that have ended, of those that ran the user's code. No I/O."""

from __future__ import annotations

from ..beacon.record import Record
from ..model.frames import Frame, innermost_user
from .judged_thread import frames
from .process_table import Row

MOST_ENDED = 4
"""Threads that are told, the last ones: a program may start one for each of its batches."""


def ended_threads(record: Record, row: Row, cwd: str) -> tuple[tuple[str, Frame], ...]:
    """Name and last line of each thread beside the main one that has ended; empty while one is left.

    Args:
        row: of the process; those that are there now are noted in it.
    """
    present = {
        number: (thread["name"], line)
        for thread in record["threads"]
        for number in [thread.get("native_id")]
        if number is not None and not thread["main"]
        for line in [innermost_user(frames(thread, cwd))]
        if line is not None
    }
    ended = [thread for number, thread in row.users_threads.items() if number not in present]
    row.users_threads |= present
    return () if present else tuple(ended[-MOST_ENDED:])
