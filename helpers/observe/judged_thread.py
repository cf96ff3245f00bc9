"""By which of its threads a process is judged, and what that thread waits for. No I/O."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..beacon.record import Record, Thread
from ..beacon.torch_names import RPC_SERVED, is_rpc_file
from ..model.frames import Frame, innermost_user
from ..model.waits import (
    READER,
    Communication,
    ForOutside,
    InCollective,
    OnCondition,
    OnDevice,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from .evidence import Evidence, Source
from .freeing import freeing, given_task, sharing
from .groups import Waiting, on_device, pending_waits
from .source import Sources, frame_of, literals
from .system_call import asleep
from .threads import awaited
from .waits import thread_waits

NOTHING: Mapping[int, Mapping[str, str]] = {}


def judged(record: Record, at: float, sources: Sources, *, alive: bool = True) -> Evidence | None:
    """What a record tells of where its process stands; None where no thread of it has been seen.

    Args:
        at: monotonic time for which the record holds.
        sources: of the program.
    """
    thread, waits = _judged_thread(record, sources)
    if thread is None:
        return None
    stack = frames(thread, sources.cwd)
    if alive and (thread["native"] is not None or thread.get("spins")):
        stack = explained(stack, sources, thread.get("values", NOTHING))
    helping = _helping(record, thread, waits, sources)
    flight, first = record["flight"], waits[0] if waits else None
    pending = isinstance(first, InCollective) and first.seq is not None
    return Evidence(
        Source.RECORD,
        at,
        since=max(thread["since"], flight["since"] if flight is not None and pending else 0.0),
        stack=stack,
        waits=tuple(waits),
        thread=thread,
        freeing=tuple(
            (helper, next(iter(thread_waits(helper, record, sources)), None)) for helper in helping
        ),
        through=tuple(_through_libraries(record, thread, waits, sources)),
        bystanders=tuple(_bystanders(record, thread, helping, inside=_in_process(waits))),
        asleep=asleep(thread["native"]),
        driven=_is_driven(thread, waits, record),
    )


def _is_driven(thread: Thread, waits: Sequence[Wait], record: Record) -> bool:
    """True for a thread that asks a device again and again whether it is done."""
    on_wait = bool(waits) and isinstance(waits[0], OnDevice | Communication)
    return on_wait and bool(thread.get("spins")) and on_device(record)


class _Threads(msgspec.Struct, frozen=True):
    """The threads of a process that were seen, and what each of them waits for.

    Attributes:
        secondary: all but the main one.
        waits_by_id: `id` of a thread -> what it waits for.
    """

    secondary: Sequence[Thread]
    waits_by_id: Mapping[int, list[Wait]]

    def waits(self, thread: Thread) -> list[Wait]:
        """What a thread waits for."""
        return self.waits_by_id[id(thread)]

    def callers(self) -> list[Thread]:
        """Those beside the main one that are in a call of torch's for other ranks."""
        in_call = [thread for thread in self.secondary if thread["call"] is not None]
        return [t for t in in_call if any(isinstance(wait, Communication) for wait in self.waits(t))]

    def merged(self, first: Sequence[Wait] = (), last: Sequence[Wait] = ()) -> list[Wait]:
        """The waits of the threads that communicate, between others."""
        return _merged([first, *map(self.waits, self.callers()), last])


Judged = tuple[Thread, list[Wait]]
"""The thread to show, and the waits of the process, oldest first."""


def _judged_thread(record: Record, sources: Sources) -> tuple[Thread | None, list[Wait]]:
    """The thread to show, None where none was seen, and the waits of the process, oldest first.

    The main thread, unless it is a host's that runs the user's code in others, or only waits for other
    threads of its own process, which then count, or while it waits another thread runs what a rank has
    called by `rpc`: for that thread others wait.
    """
    visible = [thread for thread in record["threads"] if thread["frames"] or thread["call"]]
    main = next((thread for thread in visible if thread["main"]), None)
    waits_by_id = {id(thread): thread_waits(thread, record, sources) for thread in visible}
    threads = _Threads([thread for thread in visible if not thread["main"]], waits_by_id)
    if main is None:
        return next(iter(threads.callers()), None), threads.merged()
    return (
        _awaited(threads, main, record, sources)
        or _hosted(threads, main)
        or _communicating(threads, main)
        or _serving(threads, main)
        or _by_itself(threads, main, record, sources)
    )


def _awaited(threads: _Threads, main: Thread, record: Record, sources: Sources) -> Judged | None:
    """Where the main thread waits for a thread: the last one of those that wait for each other."""
    waits = threads.waits(main)
    if not _in_process(waits):
        return None
    chain, circular = awaited(main, record, sources)
    if circular:
        return main, [_never(waits[0], self_locked=not chain)]
    last_waits = threads.waits_by_id.get(id(chain[-1])) if chain else None
    return _through(main, chain[-1], waits, last_waits) if last_waits else None


def _hosted(threads: _Threads, main: Thread) -> Judged | None:
    """Where the main thread is a host's (an event loop of Ray's, a server's): one in the user's code.

    That is the one in a call of torch's, else one that waits, else the first.
    """
    users = [thread for thread in threads.secondary if _has_users(thread)]
    if _has_users(main) or not users:
        return None
    shown = max(users, key=lambda thread: (thread["call"] is not None, bool(threads.waits(thread))))
    callers = [thread for thread in threads.callers() if thread is not shown]
    return shown, _merged([threads.waits(thread) for thread in (shown, *callers)])


def _communicating(threads: _Threads, main: Thread) -> Judged | None:
    """Where the main thread waits inside the process, for whichever: those that communicate count."""
    waits, callers = threads.waits(main), threads.callers()
    if not callers or not _in_process(waits):
        return None
    return _through(main, callers[0], waits, threads.merged())


def _serving(threads: _Threads, main: Thread) -> Judged | None:
    """Where the main thread rests while another one runs what a rank has called by `rpc`."""
    waits = threads.waits(main)
    serving = next((thread for thread in threads.secondary if _serves(thread)), None)
    if serving is None or not (waits or asleep(main["native"])):
        return None
    return serving, [*threads.waits(serving), *(replace(wait, blocking=False) for wait in waits)]


def _by_itself(threads: _Threads, main: Thread, record: Record, sources: Sources) -> Judged:
    """The main thread; calls of other threads are pending in the same groups, and do not block it."""
    waits = threads.waits(main)
    if any(wait.blocking for wait in waits):
        return main, threads.merged(waits)
    where = innermost_user(frames(main, sources.cwd))
    pending = pending_waits(record, Waiting(thread="MainThread", where=where))
    return main, [replace(wait, blocking=False) for wait in threads.merged(waits, pending)]


def _has_users(thread: Thread) -> bool:
    """True for a thread that is somewhere in the user's code."""
    return any(user for _, _, _, user in thread["frames"])


def _never(wait: Wait, *, self_locked: bool) -> Wait:
    """The wait for a thread that waits for this one, or for a lock that this thread has itself."""
    if isinstance(wait, OnLock):
        return replace(wait, holder="this thread" if self_locked else "a waiting thread")
    return replace(wait, circular=True) if isinstance(wait, OnThread) else wait


def _through(
    main: Thread, last: Thread, main_waits: Sequence[Wait], last_waits: Sequence[Wait]
) -> tuple[Thread, list[Wait]]:
    """The main thread waits for another one of its process, and so for what that one waits for.

    A thread of a library's has no line of the user's: then it is the line that waits for the thread.
    """
    if _has_users(last):
        return last, list(last_waits)
    at_main = [replace(wait, where=main_waits[0].where) for wait in last_waits]
    return main, [*(replace(wait, blocking=False) for wait in main_waits), *at_main]


def _helping(record: Record, shown: Thread, waits: Sequence[Wait], sources: Sources) -> list[Thread]:
    """The threads of a process that could end what the one that is shown waits for."""
    first = waits[0] if waits else None
    chain, _ = awaited(shown, record, sources) if _in_process(waits) else ([], False)
    if chain:
        return chain
    threads = [t for t in record["threads"] if t is shown or not _is_hosts(t, shown)]
    record = {**record, "threads": threads}
    if _in_process(waits):
        return freeing(waits[0], shown, record, sources)
    if _is_unknown(shown, waits):
        return sharing(shown, record, sources)
    io = isinstance(first, OnIO) and first.target != READER
    shared = isinstance(first, OnLock) and first.shared
    endable = io or shared or isinstance(first, OnCondition)
    return freeing(waits[0], shown, record, sources) if endable else []


def _is_unknown(shown: Thread, waits: Sequence[Wait]) -> bool:
    """True for a thread that waits inside the process, and nothing tells for what."""
    return not waits and shown["native"] is not None and shown["native"]["call"] == "futex"


def _through_libraries(
    record: Record, shown: Thread, waits: Sequence[Wait], sources: Sources
) -> Iterator[Wait]:
    """What the threads of libraries wait for, which may set, put or return what this one waits for.

    A pool's thread waits for what its workers send, one of a client for its server.
    """
    asks_threads = bool(waits) and isinstance(waits[0], OnThread) and not waits[0].circular
    if not asks_threads and not _is_unknown(shown, waits):
        return
    for thread in record["threads"]:
        if thread is shown or thread["main"] or _has_users(thread) or _is_hosts(thread, shown):
            continue
        polled = thread["native"].get("polled", ()) if thread["native"] is not None else ()
        for wait in thread_waits(thread, record, sources):
            if isinstance(wait, OnIO):
                yield from [replace(wait, op="read", target=target) for target in polled] or [wait]


def _is_hosts(thread: Thread, shown: Thread) -> bool:
    """True for a thread of what runs the program, such as a notebook's kernel: it serves others."""
    return not _has_users(thread) and bool(_packages(thread) & _packages(shown, outside=True))


def _packages(thread: Thread, *, outside: bool = False) -> frozenset[str]:
    """The installed packages that a thread's frames belong to.

    Args:
        outside: of the frames that have called the user's code.
    """
    first = next((n for n, frame in enumerate(thread["frames"]) if frame[3]), 0) if outside else 0
    parts = (file.partition("-packages" + os.sep)[2] for file, _, _, _ in thread["frames"][first:])
    return frozenset(part.partition(os.sep)[0] for part in parts if part)


def _bystanders(
    record: Record, shown: Thread | None, helping: Sequence[Thread], *, inside: bool
) -> list[int]:
    """The kernel's ids of threads whose work is not that of the thread that is shown.

    Those are Python's other threads, unless they could end what that one waits for, and the beacon.
    Threads that Python does not know carry messages.

    Args:
        inside: whether it waits for something inside the process: what a library's thread computes may
            be for that.
    """
    related = [id(thread) for thread in (shown, *helping)]
    unrelated = [thread for thread in record["threads"] if id(thread) not in related]
    native_ids = [t.get("native_id") for t in unrelated if not inside or _has_users(t)]
    return [number for number in (*native_ids, record.get("beacon_thread")) if number is not None]


def acting_thread(record: Record, sources: Sources) -> str | None:
    """The name of a thread beside the main one that is at a task and can go on with it by itself.

    A task is the user's code, or what an executor or a timer was given. A thread that waits for another
    thread, for a rank or for a key of the store cannot act by itself, unless its wait ends before long.
    """
    for thread in record["threads"]:
        if thread["main"] or not (_has_users(thread) or given_task(thread["frames"])):
            continue
        waits = thread_waits(thread, record, sources)
        if not waits or waits[0].limited or isinstance(waits[0], ForOutside):
            return thread["name"]
    return None


def _serves(thread: Thread) -> bool:
    """True for a thread that runs the user's code for another rank, which has called it by `rpc`."""
    return any(
        function == RPC_SERVED and is_rpc_file(file) for file, _, function, _ in thread["frames"]
    ) and _has_users(thread)


def _in_process(waits: Sequence[Wait]) -> bool:
    """True for the wait for another thread of the same process, however long that takes."""
    first = waits[0] if waits else None
    if isinstance(first, OnLock) and (first.on_file or first.shared):
        return False
    return isinstance(first, OnThread | OnLock) and not first.limited


def _merged(groups: Sequence[Sequence[Wait]]) -> list[Wait]:
    """The waits of several threads; a collective is listed once, with the thread that it blocks."""
    merged: list[Wait] = []
    for wait in (wait for group in groups for wait in group):
        at = next((at for at, listed in enumerate(merged) if _same_collective(wait, listed)), None)
        if at is None:
            merged.append(wait)
        elif wait.blocking and not merged[at].blocking:
            merged[at] = wait
    return merged


def _same_collective(first: Wait, second: Wait) -> bool:
    if not (isinstance(first, InCollective) and isinstance(second, InCollective)):
        return False
    return first.seq is not None and (first.group, first.seq) == (second.group, second.seq)


def frames(thread: Thread, cwd: str) -> tuple[Frame, ...]:
    """The stack of a thread, relative to the job's folder."""
    return tuple(frame_of(entry, cwd) for entry in thread["frames"])


def explained(
    stack: Sequence[Frame], sources: Sources, values: Mapping[int, Mapping[str, str]] = NOTHING
) -> tuple[Frame, ...]:
    """A stack with the sources of the user's frames, and what could be read in each."""
    return tuple(
        replace(frame, text=sources.text(frame.file), values=literals(values.get(place, {})))
        if frame.user
        else frame
        for place, frame in enumerate(stack)
    )
