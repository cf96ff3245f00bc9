"""One process, seen by the system and by its beacon -> a `ProcessView`."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..beacon.record import FrameEntry, NativeCall, Record, Thread
from ..beacon.torch_names import RPC_SERVED, is_rpc_file
from ..model.facts import ErrorView, Port, ProcessView, State
from ..model.frames import Frame, innermost_user
from ..model.waits import (
    ANY_CHILD,
    AtRendezvous,
    Communication,
    ForOutside,
    ForRanks,
    InCollective,
    InStore,
    OnChild,
    OnCondition,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from . import locks, polling, threads, tracebacks, waits
from . import pyspy_record as dumped
from .freeing import freeing, given_task
from .issued import issued
from .process_table import Row
from .source import Sources, literals

NO_BEACON_AFTER = 3.0
"""Seconds after its start from which a Python process without a beacon is taken to have none."""

FRESH = 0.5
"""Age of a record, in seconds, up to which a process is taken to be where the record says."""

STALE = 1.2
"""Seconds without a new record after which a live process's beacon counts as unable to run."""

_WRAPPED = re.compile(
    r"Original Traceback \(most recent call last\):|terminated with the following error:"
)


_ABORT = re.compile(r"terminate called after throwing an instance of '([^']+)'\s+what\(\):\s+(.+)")
SIGABRT = 6
NOTHING: Mapping[int, Mapping[str, str]] = {}


def view(
    row: Row,
    record: Record | None,
    *,
    kind: str,
    now: float,
    start: float,
    sources: Sources,
    written: float | None,
    stacks: str,
    ports: Sequence[Port],
    log_tail: str,
    told: str = "",
    outside: Record | None = None,
) -> ProcessView:
    """Put together what is known of one process.

    Args:
        record: the newest, None when there is none.
        now, start: monotonic seconds of this sample and of the command's start.
        sources: of the program.
        written: monotonic time at which the record was last touched.
        stacks: what `faulthandler` wrote in a crash; beacons of an earlier version had it write also
            while the interpreter lock was held.
        log_tail: the end of what the process printed, looked at only after it failed.
        told: the traceback that a child of `mp.spawn` has left for its parent.
        outside: what was read in it from outside while its beacon could not run, see `is_held`.
    """
    cwd = sources.cwd
    alive = row.ended is None
    found: list[Wait] = []
    stack: tuple[Frame, ...] = ()
    since, asleep, judged = now - row.idle(now), None, None
    held = is_held(row, record, written, now, outside)
    apart: Sequence[int] = ()
    helping: list[Thread] = []
    if record is not None and not _is_over(record):
        thread, found = _waiting_thread(record, sources)
        if thread is not None:
            stack = _frames(thread, cwd)
            values = thread.get("values", {})
            if alive and thread["native"] is not None:
                stack = _explained(stack, sources, values)
            since, asleep, judged = thread["since"], waits.asleep(thread["native"]), thread
        helping = _helping(record, thread, found, sources) if thread is not None else []
        apart = _threads_apart(record, thread, helping, inside=_in_process(found))
        flight = record["flight"]
        first = found[0] if found else None
        if flight is not None and isinstance(first, InCollective) and first.seq is not None:
            since = max(since, flight["since"])
        read = record if record["source"] == "py-spy" else outside
        if held and read is not None and (holder := _holder(read)) is not None:
            stack, found, judged = _frames(holder, cwd) or stack, [], holder
            if read is record:
                since = holder["since"]  # others may wake up now and then, to ask for the lock
        elif stacks and (held or row.signal is not None):
            stack, found = _dumped_stack(stacks, stack, cwd), []
        if not alive and record["cut_off"] and record["error"] is None:
            stack = _ended_at(record["cut_off"], sources)
    elif record is not None:
        stack = _ended_at(record["left"], sources, record.get("left_values", NOTHING))
        since = max(since, written or since)  # Python has come to its end: the process leaves
    elif row.waits_for_child:
        found = [OnChild(op=ANY_CHILD)]
    elif row.native is not None:
        asleep, found = waits.asleep(row.native), waits.of_program(row.native)
    late = written is not None and now - written > FRESH and not (held or row.stopped)
    seen = written if written is not None and late else now
    woken, ends = _unmoved(row, record, judged, found, helping, sources, now)
    error = _error(row, record, sources, start, log_tail, told)
    in_call = not alive and any(isinstance(wait, Communication) for wait in found)
    if not alive or (record is not None and (record["ended"] or record["error"])):
        found = []
    return ProcessView(
        pid=row.pid,
        kind=kind,
        parent=row.parent,
        command=row.command,
        state="running" if held else _state(row, record, found, now - start - job_time(row, start)),
        stack=stack,
        where=innermost_user(stack),
        waits=tuple(found),
        collectives=waits.collectives(record) if record else (),
        issued=issued(record, sources) if record else (),
        ports=tuple(ports),
        unanswered=row.unanswered if alive else (),
        still=max(0.0, seen - since),
        idle=row.idle(now, apart),
        woken=woken,
        ends=None if ends is None else ends - start,
        asleep=asleep,
        frozen=row.frozen,
        starved=row.starved,
        gil_held=held,
        traced=row.traced,
        beacon=record is not None and record["source"] == "beacon",
        recorded=record is not None and record["flight"] is not None,
        started=job_time(row, start),
        ended=None if row.ended is None else row.ended - start,
        exit_code=row.exit_code,
        signal=row.signal,
        error=error,
        interpreter_finished=record is not None and record["ended"] and error is None,
        acting_thread=_acting_thread(record, sources) if record is not None and found else None,
        groups=waits.groups(record) if record is not None else (),
        groups_made=waits.made(record) if record is not None else None,
        ended_in_call=in_call and error is None,
        memory=row.memory,
        cpu=row.cpu,
    )


def _unmoved(
    row: Row,
    record: Record | None,
    judged: Thread | None,
    found: Sequence[Wait],
    helping: Sequence[Thread],
    sources: Sources,
    now: float,
) -> tuple[float, float | None]:
    """Seconds since anything has moved that a process's going on depends on, and when its wait ends.

    Args:
        judged: the thread that it is judged by; found: what that one waits for; helping: the threads
            that could end that.
        now: monotonic time, as is the end.
    """
    if judged is None or record is None:
        return now - row.moved(None), _call_ends(row.native, row.moved(None))
    first = found[0] if found else None
    moved, ends = _moves(row, judged, first)
    for thread in helping:
        own = waits.thread_waits(thread, record, sources)
        then, end = _moves(row, thread, own[0] if own else None)
        moved, ends = max(moved, then), min(filter(None, (ends, end)), default=None)
    return max(0.0, now - moved), ends


def _moves(row: Row, thread: Thread, wait: Wait | None) -> tuple[float, float | None]:
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


def is_held(
    row: Row, record: Record | None, written: float | None, now: float, outside: Record | None = None
) -> bool:
    """True for a live process in which a C call holds the interpreter lock.

    Then its beacon cannot run. On a busy machine it may also get no processor: a process that waits in
    the kernel without the lock has given it up. Without a beacon it is known of a call that waits, and
    so does not run either: Python gives the lock back before it waits.

    Args:
        written: monotonic time at which its record was last touched, now: that of this sample.
        outside: what was read in it from outside since then.
    """
    if record is None or _is_over(record) or row.ended is not None or row.stopped or row.starved:
        return False
    if record["source"] == "beacon":
        return is_late(written, now) and not (outside is not None and _gave_up_the_lock(outside))
    return any(
        thread.get("holds_gil", False) and now - thread.get("scheduled", now) > STALE
        for thread in record["threads"]
    )


def is_late(written: float | None, now: float) -> bool:
    """True where a beacon should have written since."""
    return written is not None and now - written > STALE


def _gave_up_the_lock(outside: Record) -> bool:
    """True when no thread holds the interpreter lock and the main one waits in the kernel."""
    threads = outside["threads"]
    waits_in_kernel = any(thread["main"] and thread["native"] is not None for thread in threads)
    return waits_in_kernel and not any(thread.get("holds_gil", False) for thread in threads)


def _is_over(record: Record) -> bool:
    """True once Python has come to its end in order."""
    return record["ended"] and record["error"] is None


def _holder(outside: Record) -> Thread | None:
    """The thread that holds the interpreter lock, else the main one."""
    threads = sorted(outside["threads"], key=lambda one: (one.get("holds_gil", False), one["main"]))
    return threads[-1] if threads else None


def _ended_at(
    entries: Sequence[FrameEntry], sources: Sources, values: Mapping[int, Mapping[str, str]] = NOTHING
) -> tuple[Frame, ...]:
    return _explained([waits.frame(entry, sources.cwd) for entry in entries], sources, values)


def _explained(
    stack: Sequence[Frame], sources: Sources, values: Mapping[int, Mapping[str, str]] = NOTHING
) -> tuple[Frame, ...]:
    """A stack with the sources of the user's frames, and what could be read in each."""
    return tuple(
        replace(frame, text=sources.text(frame.file), values=literals(values.get(place, {})))
        if frame.user
        else frame
        for place, frame in enumerate(stack)
    )


def job_time(row: Row, start: float) -> float:
    """Seconds after the start of the command at which a process was started."""
    return max(0.0, row.started - start)


def _waiting_thread(record: Record, sources: Sources) -> tuple[Thread | None, list[Wait]]:
    """The thread to show and the waits of the process, oldest first.

    The main thread, unless it is a host's that runs the user's code in others, or
    only waits for other threads of its own process, which then count, or
    while it waits another thread runs what a rank has called by `rpc`: for that thread others wait.
    Collectives in which other threads are blocked are added, since they are pending in the same groups;
    they do not block a process whose main thread is free.
    """
    seen = [thread for thread in record["threads"] if thread["frames"] or thread["call"]]
    main = next((thread for thread in seen if thread["main"]), None)
    others = [thread for thread in seen if not thread["main"]]
    found = waits.thread_waits(main, record, sources) if main is not None else []
    inside = {id(thread): waits.thread_waits(thread, record, sources) for thread in others}
    distributed = [
        thread
        for thread in others
        if thread["call"] is not None
        and any(isinstance(wait, Communication) for wait in inside[id(thread)])
    ]
    if main is not None and _in_process(found):
        chain, circular = threads.awaited(main, record, sources)
        if circular:
            return main, [_never(found[0], own=not chain)]
        if chain and (needed := inside.get(id(chain[-1]))):
            return _through(main, chain[-1], found, needed)
    if main is not None and not _has_users(main) and any(map(_has_users, others)):
        return _hosted([thread for thread in others if _has_users(thread)], distributed, inside)
    within = [thread for thread in distributed if _in_process(found)]
    if main is None or within:
        shown = distributed[0] if distributed else None
        needed = _merged([inside[id(thread)] for thread in distributed])
        return (shown, needed) if main is None or shown is None else _through(main, shown, found, needed)
    serving = next((thread for thread in others if _serves(thread)), None)
    if serving is not None and (found or waits.asleep(main["native"])):
        return serving, [*inside[id(serving)], *(replace(wait, blocking=False) for wait in found)]
    if not any(wait.blocking for wait in found):
        where = innermost_user(_frames(main, sources.cwd))
        pending = waits.pending_waits(record, waits.Waiting(thread="MainThread", where=where))
        aside = _merged([found, *(inside[id(thread)] for thread in distributed), pending])
        return main, [replace(wait, blocking=False) for wait in aside]
    return main, _merged([found, *(inside[id(thread)] for thread in distributed)])


def _has_users(thread: Thread) -> bool:
    """True for a thread that is somewhere in the user's code."""
    return any(user for _, _, _, user in thread["frames"])


def _hosted(
    users: Sequence[Thread], distributed: Sequence[Thread], inside: Mapping[int, list[Wait]]
) -> tuple[Thread, list[Wait]]:
    """The thread that counts where the main one is a host's: an event loop of Ray's, a server's.

    That is the one in a call of torch's, else one that waits, else the first.

    Args:
        users: the threads in the user's code; distributed: those in a call of torch's.
        inside: `id` of a thread -> what it waits for.
    """
    shown = max(users, key=lambda thread: (thread["call"] is not None, bool(inside[id(thread)])))
    others = [thread for thread in distributed if thread is not shown]
    return shown, _merged([inside[id(thread)] for thread in (shown, *others)])


def _never(wait: Wait, *, own: bool) -> Wait:
    """The wait for a thread that waits for this one, or for a lock that this thread has itself."""
    if isinstance(wait, OnLock):
        return replace(wait, holder="this thread" if own else "a waiting thread")
    return replace(wait, circular=True) if isinstance(wait, OnThread) else wait


def _through(
    main: Thread, last: Thread, found: Sequence[Wait], needed: Sequence[Wait]
) -> tuple[Thread, list[Wait]]:
    """The main thread waits for another one of its process, and so for what that one waits for.

    A thread of a library's has no line of the user's: then it is the line that waits for the thread.
    """
    if _has_users(last):
        return last, list(needed)
    waits_here = [replace(wait, where=found[0].where) for wait in needed]
    return main, [*(replace(wait, blocking=False) for wait in found), *waits_here]


def _helping(record: Record, shown: Thread, found: Sequence[Wait], sources: Sources) -> list[Thread]:
    """The threads of a process that could end what the one that is shown waits for."""
    first = found[0] if found else None
    if _in_process(found):
        chain, _ = threads.awaited(shown, record, sources)
        return chain or freeing(found[0], shown, record, sources)
    pipe = isinstance(first, OnIO) and (first.target or "").startswith("pipe:")
    return freeing(found[0], shown, record, sources) if pipe or isinstance(first, OnCondition) else []


def _threads_apart(
    record: Record, shown: Thread | None, helping: Sequence[Thread], *, inside: bool
) -> list[int]:
    """The kernel's ids of threads whose work is not that of the thread that is shown.

    Those are Python's other threads, unless they could end what that one waits for, and the beacon.
    Threads that Python does not know carry messages.

    Args:
        inside: whether it waits for something inside the process: what a library's thread computes may
            be for that.
    """
    counted = [shown, *helping]
    others = [one for one in record["threads"] if not any(one is thread for thread in counted)]
    others = [one for one in others if _has_users(one)] if inside else others
    known = [one.get("native_id") for one in others]
    return [number for number in (*known, record.get("beacon_thread")) if number is not None]


def _acting_thread(record: Record, sources: Sources) -> str | None:
    """The name of a thread beside the main one that is at a task and can go on with it by itself.

    A task is the user's code, or what an executor or a timer was given. A thread that waits for another
    thread, for a rank or for a key of the store cannot act by itself, unless its wait ends before long.
    """
    for thread in record["threads"]:
        if thread["main"] or not (_has_users(thread) or given_task(thread["frames"])):
            continue
        found = waits.thread_waits(thread, record, sources)
        if not found or found[0].limited or isinstance(found[0], ForOutside):
            return thread["name"]
    return None


def _serves(thread: Thread) -> bool:
    """True for a thread that runs the user's code for another rank, which has called it by `rpc`."""
    return any(
        function == RPC_SERVED and is_rpc_file(file) for file, _, function, _ in thread["frames"]
    ) and _has_users(thread)


def _in_process(found: Sequence[Wait]) -> bool:
    """True for the wait for another thread of the same process, however long that takes."""
    first = found[0] if found else None
    inside = isinstance(first, OnThread) or (isinstance(first, OnLock) and not first.on_file)
    return inside and first is not None and not first.limited


def _merged(groups: Sequence[Sequence[Wait]]) -> list[Wait]:
    """The waits of several threads; a collective is listed once, with the thread that it blocks."""
    merged: list[Wait] = []
    for wait in (wait for group in groups for wait in group):
        same = [other for other in merged if _same_collective(wait, other)]
        if not same:
            merged.append(wait)
        elif wait.blocking and not same[0].blocking:
            merged[merged.index(same[0])] = wait
    return merged


def _same_collective(one: Wait, other: Wait) -> bool:
    if not (isinstance(one, InCollective) and isinstance(other, InCollective)):
        return False
    return one.seq is not None and (one.group, one.seq) == (other.group, other.seq)


def _frames(thread: Thread, cwd: str) -> tuple[Frame, ...]:
    return tuple(waits.frame(entry, cwd) for entry in thread["frames"])


def _state(row: Row, record: Record | None, found: Sequence[Wait], age: float) -> State:
    if row.ended is not None:
        return "exited"
    if row.stopped:
        return "stopped"
    if record is None:
        return "starting" if row.is_python and age < NO_BEACON_AFTER else "running"
    blocking = [wait for wait in found if wait.blocking]
    if any(isinstance(wait, AtRendezvous) for wait in blocking):
        return "rendezvous"
    if blocking:
        return "waiting"
    return record["phase"]


def _dumped_stack(text: str, before: Sequence[Frame], cwd: str) -> tuple[Frame, ...]:
    """The frames of the thread that crashed, else of the main one, in a `faulthandler` dump."""
    known = {(frame.file, frame.function): frame.user for frame in before}
    if "Current thread" in text:
        block = text.partition("Current thread")[2].partition("\n\n")[0]
    else:
        block = text.rpartition("(most recent call first):")[2]
    frames = []
    for match in re.finditer(r'File "(.+?)", line (\d+) in (.+)', block):
        file = waits.relative(match[1], cwd)
        user = known.get(
            (file, match[3]), not file.startswith(("/", "<")) and not dumped.LIBRARY.search(match[1])
        )
        frames.append(Frame(file, int(match[2]), match[3], user))
    return tuple(frames) or tuple(before)


def _error(
    row: Row, record: Record | None, sources: Sources, start: float, log_tail: str, told: str
) -> ErrorView | None:
    cwd = sources.cwd
    raw = record["error"] if record is not None else None
    if raw is not None:
        error = ErrorView(
            raw["type"],
            raw["message"],
            _ended_at(raw["frames"], sources),
            raw["time"] - start,
            tuple(raw["masked"]),
            tuple(raw.get("needed", ())),
            raw.get("caused_by", ""),
        )
        return unwrap(error, cwd)
    text = told or (log_tail if row.exit_code is not None else "")
    if row.ended is not None and row.exit_code != 0 and text:
        found = tracebacks.first_error(text)
        if found is not None:
            return replace(found, stack=mark_user(found.stack, cwd), time=row.ended - start)
    abort = _ABORT.search(log_tail) if row.ended is not None and row.signal == SIGABRT else None
    if abort is not None:
        return ErrorView(abort[1], abort[2].strip(), (), (row.ended or 0.0) - start)
    return None


def unwrap(error: ErrorView, cwd: str) -> ErrorView:
    """The error of a child that its parent raises again with the child's traceback as text.

    Its stack goes on with the parent's: the calls that had the child do what failed.
    """
    if not _WRAPPED.search(error.message):
        return error
    text = error.message.replace("Original Traceback", "Traceback")
    original = tracebacks.first_error(text)
    if original is None:
        return error
    return replace(
        original,
        stack=mark_user(original.stack, cwd) + error.stack,
        time=error.time,
        masked=original.masked + error.masked,
    )


def mark_user(stack: Sequence[Frame], cwd: str) -> tuple[Frame, ...]:
    """Frames read from text: those inside the job's folder, and outside any library, are the user's."""
    found = []
    for frame in stack:
        file = waits.relative(frame.file, cwd)
        library = dumped.LIBRARY.search(frame.file) or file.startswith("<frozen")
        found.append(replace(frame, file=file, user=not library))
    return tuple(found)
