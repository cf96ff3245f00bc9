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
from . import threads, waits
from .evidence import Evidence, Source
from .freeing import freeing, given_task, sharing
from .groups import Waiting, on_device, pending_waits
from .source import Sources, frame_of, literals
from .system_call import asleep

NOTHING: Mapping[int, Mapping[str, str]] = {}


def judged(record: Record, at: float, sources: Sources, *, alive: bool = True) -> Evidence | None:
    """What a record tells of where its process stands; None where no thread of it has been seen.

    Args:
        at: monotonic time for which the record holds.
        sources: of the program.
    """
    thread, found = _waiting_thread(record, sources)
    if thread is None:
        return None
    stack = frames(thread, sources.cwd)
    if alive and (thread["native"] is not None or thread.get("spins")):
        stack = explained(stack, sources, thread.get("values", NOTHING))
    helping = _helping(record, thread, found, sources)
    first_waits = (waits.thread_waits(other, record, sources) for other in helping)
    flight, first = record["flight"], found[0] if found else None
    pending = isinstance(first, InCollective) and first.seq is not None
    return Evidence(
        Source.RECORD,
        at,
        since=max(thread["since"], flight["since"] if flight is not None and pending else 0.0),
        stack=stack,
        waits=tuple(found),
        thread=thread,
        freeing=tuple(
            (other, own[0] if own else None) for other, own in zip(helping, first_waits, strict=True)
        ),
        through=tuple(_through_libraries(record, thread, found, sources)),
        apart=tuple(_threads_apart(record, thread, helping, inside=_in_process(found))),
        asleep=asleep(thread["native"]),
        driven=_is_driven(thread, found, record),
    )


def _is_driven(thread: Thread, found: Sequence[Wait], record: Record) -> bool:
    """True for a thread that asks a device again and again whether it is done."""
    waits_for_it = bool(found) and isinstance(found[0], OnDevice | Communication)
    return waits_for_it and bool(thread.get("spins")) and on_device(record)


class _Threads(msgspec.Struct, frozen=True):
    """The threads of a process that were seen, and what each of them waits for.

    Attributes:
        others: all but the main one.
        inside: `id` of a thread -> what it waits for.
    """

    others: Sequence[Thread]
    inside: Mapping[int, list[Wait]]

    def waits(self, thread: Thread) -> list[Wait]:
        """What a thread waits for."""
        return self.inside[id(thread)]

    def communicating(self) -> list[Thread]:
        """Those beside the main one that are in a call of torch's for other ranks."""
        called = [thread for thread in self.others if thread["call"] is not None]
        return [one for one in called if any(isinstance(w, Communication) for w in self.waits(one))]

    def merged(self, first: Sequence[Wait] = (), last: Sequence[Wait] = ()) -> list[Wait]:
        """The waits of the threads that communicate, between others."""
        return _merged([first, *map(self.waits, self.communicating()), last])


Judged = tuple[Thread, list[Wait]]
"""The thread to show, and the waits of the process, oldest first."""


def _waiting_thread(record: Record, sources: Sources) -> tuple[Thread | None, list[Wait]]:
    """The thread to show, None where none was seen, and the waits of the process, oldest first.

    The main thread, unless it is a host's that runs the user's code in others, or only waits for other
    threads of its own process, which then count, or while it waits another thread runs what a rank has
    called by `rpc`: for that thread others wait.
    """
    seen = [thread for thread in record["threads"] if thread["frames"] or thread["call"]]
    main = next((thread for thread in seen if thread["main"]), None)
    inside = {id(thread): waits.thread_waits(thread, record, sources) for thread in seen}
    every = _Threads([thread for thread in seen if not thread["main"]], inside)
    if main is None:
        return next(iter(every.communicating()), None), every.merged()
    return (
        _awaited(every, main, record, sources)
        or _hosted(every, main)
        or _communicating(every, main)
        or _serving(every, main)
        or _by_itself(every, main, record, sources)
    )


def _awaited(every: _Threads, main: Thread, record: Record, sources: Sources) -> Judged | None:
    """Where the main thread waits for a thread: the last one of those that wait for each other."""
    found = every.waits(main)
    if not _in_process(found):
        return None
    chain, circular = threads.awaited(main, record, sources)
    if circular:
        return main, [_never(found[0], own=not chain)]
    needed = every.inside.get(id(chain[-1])) if chain else None
    return _through(main, chain[-1], found, needed) if needed else None


def _hosted(every: _Threads, main: Thread) -> Judged | None:
    """Where the main thread is a host's (an event loop of Ray's, a server's): one in the user's code.

    That is the one in a call of torch's, else one that waits, else the first.
    """
    users = [thread for thread in every.others if _has_users(thread)]
    if _has_users(main) or not users:
        return None
    shown = max(users, key=lambda thread: (thread["call"] is not None, bool(every.waits(thread))))
    others = [thread for thread in every.communicating() if thread is not shown]
    return shown, _merged([every.waits(thread) for thread in (shown, *others)])


def _communicating(every: _Threads, main: Thread) -> Judged | None:
    """Where the main thread waits inside the process, for whichever: those that communicate count."""
    found, calls = every.waits(main), every.communicating()
    return _through(main, calls[0], found, every.merged()) if calls and _in_process(found) else None


def _serving(every: _Threads, main: Thread) -> Judged | None:
    """Where the main thread rests while another one runs what a rank has called by `rpc`."""
    found = every.waits(main)
    serving = next((thread for thread in every.others if _serves(thread)), None)
    if serving is None or not (found or asleep(main["native"])):
        return None
    return serving, [*every.waits(serving), *(replace(wait, blocking=False) for wait in found)]


def _by_itself(every: _Threads, main: Thread, record: Record, sources: Sources) -> Judged:
    """The main thread; calls of other threads are pending in the same groups, and do not block it."""
    found = every.waits(main)
    if any(wait.blocking for wait in found):
        return main, every.merged(found)
    where = innermost_user(frames(main, sources.cwd))
    pending = pending_waits(record, Waiting(thread="MainThread", where=where))
    return main, [replace(wait, blocking=False) for wait in every.merged(found, pending)]


def _has_users(thread: Thread) -> bool:
    """True for a thread that is somewhere in the user's code."""
    return any(user for _, _, _, user in thread["frames"])


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
    chain, _ = threads.awaited(shown, record, sources) if _in_process(found) else ([], False)
    if chain:
        return chain
    own = [one for one in record["threads"] if one is shown or not _is_hosts(one, shown)]
    record = {**record, "threads": own}
    if _in_process(found):
        return freeing(found[0], shown, record, sources)
    if _is_unknown(shown, found):
        return sharing(shown, record, sources)
    reads = isinstance(first, OnIO) and first.target != READER
    memory = isinstance(first, OnLock) and first.shared
    known = reads or memory or isinstance(first, OnCondition)
    return freeing(found[0], shown, record, sources) if known else []


def _is_unknown(shown: Thread, found: Sequence[Wait]) -> bool:
    """True for a thread that waits inside the process, and nothing tells for what."""
    return not found and shown["native"] is not None and shown["native"]["call"] == "futex"


def _through_libraries(
    record: Record, shown: Thread, found: Sequence[Wait], sources: Sources
) -> Iterator[Wait]:
    """What the threads of libraries wait for, which may set, put or return what this one waits for.

    A pool's thread waits for what its workers send, one of a client for its server.
    """
    asks_threads = bool(found) and isinstance(found[0], OnThread) and not found[0].circular
    if not asks_threads and not _is_unknown(shown, found):
        return
    for thread in record["threads"]:
        if thread is shown or thread["main"] or _has_users(thread) or _is_hosts(thread, shown):
            continue
        polled = thread["native"].get("polled", ()) if thread["native"] is not None else ()
        for wait in waits.thread_waits(thread, record, sources):
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


def acting_thread(record: Record, sources: Sources) -> str | None:
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
    lock = isinstance(first, OnLock) and not (first.on_file or first.shared)
    inside = isinstance(first, OnThread) or lock
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
