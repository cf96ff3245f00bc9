"""One process: what the kernel and the merged evidence tell of it -> a `ProcessView`. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ..beacon.record import Record
from ..model.facts import ErrorView, ProcessView, State
from ..model.frames import innermost_user
from ..model.waits import ANY_CHILD, AtRendezvous, Communication, OnChild, Wait
from . import ends, groups, interpreter_lock, system_call
from .evidence import Evidence, Source
from .handles import open_handles
from .issued import issued, messages, new_groups
from .judged_thread import acting_thread, frames, judged
from .process_table import Row
from .source import Sources

NO_BEACON_AFTER = 3.0
"""Seconds after its start from which a Python process without a beacon is taken to have none."""

FRESH = 0.5
"""Age of a record, in seconds, up to which a process is taken to be where the record says."""

Completed = Callable[[Wait], Wait | None]
"""A wait, completed with what can be seen of it outside its process only; None for one that is none."""


class Readings(msgspec.Struct, frozen=True):
    """What has been read of one process, besides its row in the process table.

    Attributes:
        record: its newest record; None when there is none.
        written: monotonic time at which its record was last known to hold: its beacon has touched it, or
            py-spy has made it.
        outside: what py-spy has read in it while its beacon cannot run.
        crash: what `faulthandler` wrote at a fatal signal.
        traceback: what a child of `mp.spawn` has left for its parent.
        log: the end of what it printed, read only after it has failed.
    """

    record: Record | None = None
    written: float | None = None
    outside: Record | None = None
    crash: str = ""
    traceback: str = ""
    log: str = ""

    def gil_held(self, row: Row, now: float) -> bool:
        """Whether a call in C holds the interpreter lock of the process."""
        return interpreter_lock.is_held(row, self.record, self.written, now, self.outside)


def of_kernel(row: Row, kind: str, now: float, start: float) -> ProcessView:
    """What the kernel tells of a process, whatever runs in it.

    Args:
        now, start: monotonic seconds of this sample and of the command's start.
    """
    starts = row.is_python and now - start - started(row, start) < NO_BEACON_AFTER
    alive, halted = row.ended is None, row.stopped or row.stalled
    return ProcessView(
        pid=row.pid,
        kind=kind,
        parent=row.parent,
        command=row.command,
        state="exited" if not alive else "stopped" if halted else "starting" if starts else "running",
        stopped_for_memory=alive and row.stalled,
        unanswered=row.unanswered if alive else (),
        frozen=row.frozen,
        starved=row.starved,
        traced=row.traced,
        started=started(row, start),
        ended=None if row.ended is None else row.ended - start,
        exit_code=row.exit_code,
        signal=row.signal,
        memory=row.memory,
        private=row.private,
        cpu=row.cpu,
    )


def started(row: Row, start: float) -> float:
    """Seconds after the start of the command at which a process was started."""
    return max(0.0, row.started - start)


def evidence_of(
    row: Row, readings: Readings, now: float, start: float, sources: Sources
) -> Iterator[Evidence]:
    """What each source tells of a process.

    Args:
        now, start: monotonic seconds of this sample and of the command's start.
        sources: of the program.
    """
    record, gil_held = readings.record, readings.gil_held(row, now)
    at = _record_time(row, readings.written, now, gil_held=gil_held)
    yield from ends.errors(row, record, sources, start, readings.traceback, readings.log)
    if record is None:
        yield _kernel(row, now, at)
    elif interpreter_lock.is_over(record):
        leaves = max(now - row.idle(now), readings.written or 0.0)
        yield ends.exit_call(record, at, sources, leaves)
    else:
        place = judged(record, at, sources, alive=row.ended is None)
        place = place or Evidence(Source.KERNEL, at, now - row.idle(now))
        yield place
        if gil_held:
            yield from _holder(record, readings.outside, now, sources)
        yield from _end(row, record, readings.crash, place, sources)


def _record_time(row: Row, written: float | None, now: float, *, gil_held: bool) -> float:
    """Monotonic time for which the record of a process holds: that of its last writing if it is old."""
    old = written is not None and now - written > FRESH and not (gil_held or row.stopped)
    return min(written if written is not None and old else now, row.ended or now)


def _holder(record: Record, outside: Record | None, now: float, sources: Sources) -> Iterator[Evidence]:
    """What py-spy tells of the thread that holds the interpreter lock.

    Args:
        outside: what py-spy has read beside the record of a beacon.
    """
    dump = record if record["source"] == "py-spy" else outside
    thread = interpreter_lock.holder(dump) if dump is not None else None
    if thread is not None:
        since = thread["since"] if dump is record else None  # others may wake, to ask for the lock
        stack = frames(thread, sources.cwd) or None
        yield Evidence(Source.OUTSIDE, now, since, stack=stack, waits=(), thread=thread)


def _end(row: Row, record: Record, crash: str, place: Evidence, sources: Sources) -> Iterator[Evidence]:
    """The call by which a process has ended, and the stack at its fatal signal."""
    if row.ended is None:
        return
    if record["cut_off"] and record["error"] is None:
        yield ends.exit_call(record, row.ended, sources)
    if row.signal is not None and crash:
        yield ends.crash(crash, place.stack or (), row.ended, sources)


def _kernel(row: Row, now: float, at: float) -> Evidence:
    """What the kernel tells of a process that nothing else tells of."""
    asleep: str | None = None
    pending: Sequence[Wait] = ()
    if row.waits_for_child:
        pending = (OnChild(op=ANY_CHILD),)
    elif row.native is not None:
        asleep, pending = system_call.asleep(row.native), system_call.of_program(row.native)
    return Evidence(Source.KERNEL, at, now - row.idle(now), waits=tuple(pending), asleep=asleep)


def _communicating(record: Record) -> Iterator[tuple[str, str]]:
    """Each thread that is in a call of a group, and that group."""
    for thread in record["threads"]:
        call = thread["call"]
        if call is not None and call["kind"] in ("collective", "p2p"):
            yield thread["name"], call["group"] or "default"


def with_evidence(
    view: ProcessView,
    record: Record | None,
    evidence: Evidence,
    sources: Sources,
    *,
    completed: Completed = lambda wait: wait,
    gil_held: bool = False,
) -> ProcessView:
    """The view with what the process does, and with what its record tells of its groups.

    Args:
        evidence: the merged one of the process.
        sources: of the program.
        gil_held: whether a call in C holds its interpreter lock.
    """
    over = not view.alive or (record is not None and bool(record["ended"] or record["error"]))
    halted = over or view.stopped_for_memory
    pending = () if halted else _all_completed(evidence.waits, completed)
    through = () if halted else _all_completed(evidence.through, completed)
    in_call = any(isinstance(wait, Communication) for wait in evidence.waits or ())
    stack = evidence.stack or ()
    view = replace(
        view,
        stack=stack,
        where=innermost_user(stack),
        waits=pending,
        through=through,
        error=evidence.error,
        handling=None if over else _handling(evidence, sources),
        asleep=evidence.asleep,
        gil_held=gil_held and not view.stopped_for_memory,
        ended_in_call=in_call and not view.alive and evidence.error is None,
    )
    return view if record is None else _with_record(view, record, sources, gil_held, over)


def _with_record(
    view: ProcessView, record: Record, sources: Sources, gil_held: bool, over: bool
) -> ProcessView:
    """The view with what the record of its process tells.

    Args:
        view: with what the process waits for.
        over: whether the process, or its program, has ended.
    """
    return replace(
        view,
        state=_state(view.state, record, view.waits, gil_held=gil_held),
        collectives=groups.collectives(record) or groups.logged(record, open_handles(record, sources)),
        issued=issued(record, sources),
        calls=groups.calls(record),
        messages=messages(record, sources),
        beacon=record["source"] == "beacon",
        recorded=record["flight"] is not None,
        communicates=() if over else tuple(_communicating(record)),
        interpreter_finished=record["ended"] and view.error is None,
        acting_thread=acting_thread(record, sources) if view.waits else None,
        groups=groups.groups(record),
        groups_made=groups.group_count(record),
        new_groups=new_groups(record, sources),
    )


def _handling(evidence: Evidence, sources: Sources) -> ErrorView | None:
    """The exception that the thread by which the process is judged handles."""
    error = evidence.thread.get("handling") if evidence.thread is not None else None
    return ends.exception(error, sources) if error is not None else None


def _all_completed(waits: Sequence[Wait] | None, completed: Completed) -> tuple[Wait, ...]:
    return tuple(wait for wait in map(completed, waits or ()) if wait is not None)


def _state(state: State, record: Record, pending: Sequence[Wait], *, gil_held: bool) -> State:
    """The state of a process that has a record; the kernel's word for one that is gone or stopped."""
    if state in ("exited", "stopped"):
        return state
    if gil_held:
        return "running"
    blocking = [wait for wait in pending if wait.blocking]
    if any(isinstance(wait, AtRendezvous) for wait in blocking):
        return "rendezvous"
    return "waiting" if blocking else record["phase"]
