"""Whether a call in C holds a process's interpreter lock, so that its beacon cannot run. No I/O."""

from __future__ import annotations

from ..beacon.record import Record, Thread
from .process_table import Row

STALE = 1.2
"""Seconds without a new record after which a live process's beacon counts as unable to run."""


def is_held(
    row: Row, record: Record | None, written: float | None, now: float, outside: Record | None = None
) -> bool:
    """True for a live process in which a C call holds the interpreter lock.

    Then its beacon cannot run. On a busy machine it may also get no processor: a process that waits in
    the kernel without the lock has given it up. Without a beacon it is known of a call that waits, and
    so does not run either: Python gives the lock back before it waits.

    Args:
        written: monotonic time at which its record last held, now: that of this sample.
        outside: what was read in it from outside since then.
    """
    if record is None or is_over(record) or row.ended is not None or row.stopped or row.starved:
        return False
    if record["source"] == "beacon":
        return is_late(written, now) and not (outside is not None and _gave_it_up(outside))
    read_time = now if written is None else written
    return any(
        thread.get("holds_gil", False) and read_time - thread.get("scheduled", read_time) > STALE
        for thread in record["threads"]
    )


def is_late(written: float | None, now: float) -> bool:
    """True where a beacon should have written since."""
    return written is not None and now - written > STALE


def is_over(record: Record) -> bool:
    """True once Python has come to its end in order."""
    return record["ended"] and record["error"] is None


def holder(outside: Record) -> Thread | None:
    """The thread that holds the interpreter lock, else the main one."""
    threads = outside["threads"]
    return max(threads, key=lambda t: (t.get("holds_gil", False), t["main"]), default=None)


def _gave_it_up(outside: Record) -> bool:
    """True when no thread holds the interpreter lock and the main one waits in the kernel."""
    threads = outside["threads"]
    waits_in_kernel = any(thread["main"] and thread["native"] is not None for thread in threads)
    return waits_in_kernel and not any(thread.get("holds_gil", False) for thread in threads)
