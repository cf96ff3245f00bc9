"""For how long nothing has moved that a process's going on depends on. No I/O."""

from __future__ import annotations

import math
from collections.abc import Collection

from msgspec.structs import replace

from ..beacon.record import NativeCall, Thread
from ..model.facts import ProcessView
from ..model.waits import ForRanks, InStore, OnCondition, OnLock, Wait
from . import locks, polling
from .evidence import Evidence
from .process_table import Row


def with_movement(
    view: ProcessView, row: Row, evidence: Evidence, now: float, start: float, outside: float = -math.inf
) -> ProcessView:
    """The view with its movement: how long it is still, idle and not woken, and when its wait ends.

    Args:
        evidence: the merged one of the process.
        now, start: monotonic seconds of this sample and of the command's start.
        outside: monotonic time at which a process outside the job that could end its wait has moved.
    """
    moved, ends = _movement(row, evidence)
    return replace(
        view,
        read_at=evidence.at - start,
        still=max(0.0, evidence.at - (evidence.since or 0.0)),
        idle=row.idle(now, _bystanders(row, evidence)),
        woken=max(0.0, now - max(moved, outside)),
        ends=None if ends is None else ends - start,
    )


def _bystanders(row: Row, evidence: Evidence) -> Collection[int]:
    """The kernel's ids of the threads whose processor time is no movement of the one that counts.

    No other thread ends a sleep. What a thread uses to ask its device again and again is no work.
    """
    judged = evidence.thread.get("native_id") if evidence.thread is not None else None
    bystanders = evidence.bystanders or ()
    if judged is not None and evidence.asleep and not evidence.waits:
        return row.threads.keys() - {judged}
    return (*bystanders, judged) if judged is not None and evidence.driven else bystanders


def _movement(row: Row, evidence: Evidence) -> tuple[float, float | None]:
    """Monotonic times at which the process last moved, and at which its wait ends by itself."""
    if evidence.thread is None:
        return row.moved(None), _call_ends(row.native, row.moved(None))
    first = evidence.waits[0] if evidence.waits else None
    threads = [(evidence.thread, first), *(evidence.freeing or ())]
    threads = threads[1:] if evidence.driven else threads
    movements = [_of_thread(row, thread, wait) for thread, wait in threads]
    moved = max((moved for moved, _ in movements), default=-math.inf)
    return moved, min((ends for _, ends in movements if ends is not None), default=None)


def _of_thread(row: Row, thread: Thread, wait: Wait | None) -> tuple[float, float | None]:
    """When a thread last moved, as far as its wake-ups tell, and when its system call ends by itself.

    Where it polls, that call is a part of the wait only; the end of a wait for other ranks is a failure.
    """
    if isinstance(wait, OnCondition) or (isinstance(wait, OnLock) and wait.op in locks.ASKED_AGAIN):
        return -math.inf, None
    moved, call = row.moved(thread.get("native_id")), thread["native"]
    if call is None or polling.wakes(thread) or isinstance(wait, ForRanks | InStore):
        return moved, None
    return moved, _call_ends(call, max(thread["since"], moved))


def _call_ends(call: NativeCall | None, since: float) -> float | None:
    """Monotonic time at which a system call ends by itself, at the latest; None without a limit."""
    if call is None:
        return None
    return since + call["lasts"] if "lasts" in call else call.get("until")
