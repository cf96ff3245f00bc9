"""How a fact is said: once, for every report, picture, panel and page.

Text that comes from the job passes through `printable` before it reaches a screen or a file.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import TypeVar

from .facts import STILL, ChildView, ProcessView, RankView, Verdict
from .frames import Frame, innermost_user
from .redaction import Source, redacted, redacted_source
from .waits import (
    DATA_LOADER,
    ENDLESS,
    READER,
    SIGNAL,
    AtRendezvous,
    Communication,
    ForRanks,
    InCollective,
    InP2P,
    InRPC,
    InStore,
    OnChild,
    OnCondition,
    OnDevice,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)

T = TypeVar("T")

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_COLOUR = re.compile(r"(\x1b\[[0-9;:]*m)")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


END_UNSEEN = "ended in a way that nobody here saw"
"""Said of a process of which nothing tells how it has ended."""

FROZEN = "stopped by the kernel until memory is free"
"""Said of a process that wants more memory than the job may have."""


MOST_SENTENCES, LONGEST = 256, 4000
"""Sentences of one kind that are said, and letters of a sentence."""

MOST_RUNS = 12
"""Runs of ranks that are named one by one; of thousands of ranks, every other one may be meant."""


CELL = 64
"""Letters of an error that a table shows; the whole of it is elsewhere in the report."""


def printable(text: str) -> str:
    """Takes terminal codes, control characters and what may be a secret out of the job's text."""
    shown = _uncontrolled(text)
    return Source(redacted_source(shown)) if isinstance(text, Source) else redacted(shown)


def coloured(text: str) -> str:
    """Takes control characters, and all terminal codes but colours, out of a line of the job."""
    return "".join(
        part if _COLOUR.fullmatch(part) else _uncontrolled(part) for part in _COLOUR.split(text)
    )


def _uncontrolled(text: str) -> str:
    return _CONTROL.sub("?", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str) -> str:
    """`printable`, on one line."""
    line = printable(text)
    return type(line)(" ".join(line.split()))


def shortened(text: str) -> str:
    """`one_line`, and no longer than a cell of a table should be."""
    line = one_line(text)
    return line if len(line) <= CELL else line[: CELL - 4].rstrip() + " ..."


def abridged(sentences: Sequence[str]) -> tuple[str, ...]:
    """The first of many sentences, and how many more there are."""
    if len(sentences) <= MOST_SENTENCES:
        return tuple(sentences)
    return (*sentences[:MOST_SENTENCES], f"{len(sentences) - MOST_SENTENCES} more like these")


def clipped(text: str) -> str:
    """A sentence, without its last clauses where thousands of ranks have one each."""
    if len(text) <= LONGEST:
        return text
    head = text[:LONGEST].rpartition("; ")[0] or text[:LONGEST].rpartition(" ")[0]
    return f"{head}; and so on."


def sentence(text: str) -> str:
    """The text with a capital letter at its beginning."""
    return text[:1].upper() + text[1:]


def plural(things: Sized, singular: T, plural: T) -> T:
    """`singular` for a single thing, else `plural`: `plural(ranks, "waits", "wait")`."""
    return singular if len(things) == 1 else plural


def functions(frames: Sequence[Frame]) -> str:
    """`finish (train.py:20) or stop (train.py:31)`."""
    return " or ".join(f"{frame.function} ({place(frame)})" for frame in frames)


def spoken(ranks: Sequence[int]) -> str:
    """`rank 1`, `ranks 0 and 2`, `ranks 0, 1 and 3`; long lists in runs: `ranks 0-5 and 7`."""
    parts = runs(sorted(ranks))
    if not parts:
        return "no rank"
    return f"{plural(ranks, 'rank', 'ranks')} {joined(parts)}"


def joined(parts: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def runs(ranks: Sequence[int]) -> list[str]:
    """Sorted numbers in words, three or more in a row as one: `0-5`, `7`; at last `8168 more`."""
    parts: list[list[int]] = []
    for rank in ranks:
        if parts and rank == parts[-1][-1] + 1:
            parts[-1].append(rank)
        else:
            parts.append([rank])
    labels = []
    for run in parts[:MOST_RUNS]:
        labels += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else [str(rank) for rank in run]
    more = sum(len(run) for run in parts[MOST_RUNS:])
    return [*labels, f"{more} more"] if more else labels


def spans(numbers: Iterable[int | None]) -> str:
    """`0, 2-5` for 0, 2, 3, 4, 5; unknown numbers as `?` at the end."""
    numbers = list(numbers)
    labels = runs(sorted({number for number in numbers if number is not None}))
    unknown = len([number for number in numbers if number is None])
    if unknown:
        labels.append("?" if unknown == 1 else f"? (x{unknown})")
    return ", ".join(labels)


def rank_name(view: RankView) -> str:
    """`rank 1`, or `rank ?` until the number is known."""
    return f"rank {'?' if view.rank is None else view.rank}"


def node_name(view: RankView) -> str:
    """`node 0 (host n0)`, or `node 0`."""
    return one_line(f"node {view.node} (host {view.host})" if view.host else f"node {view.node}")


def by_number(views: Sequence[RankView]) -> list[RankView]:
    """Ranks by number, those of unknown number last."""
    return sorted(views, key=lambda view: (view.rank is None, view.rank or 0))


def place(frame: Frame | None) -> str:
    """`train.py:41`, `cell [2], line 41`, or a word for an unknown place."""
    return frame.place if frame else "an unknown line"


def place_in(frame: Frame | None) -> str:
    """`train.py:41 validate`, `cell [2], line 41, in validate`, or nothing."""
    if frame is None:
        return ""
    if not frame.in_cell:
        return one_line(f"{frame.place} {frame.function}")
    return (
        frame.place if frame.function == "<module>" else one_line(f"{frame.place}, in {frame.function}")
    )


def last_seen(frame: Frame | None, who: Sized = (0,)) -> str:
    """`; it was last seen at train.py:41`, or nothing; `they were` of several."""
    return f"; {plural(who, 'it was', 'they were')} last seen at {place(frame)}" if frame else ""


def where_of(process: ProcessView) -> Frame | None:
    """The user's line that a process stands at; the line of its error, when one ended it."""
    if process.error and process.error.stack:
        return innermost_user(process.error.stack)
    return process.where


def stack_of(process: ProcessView) -> tuple[Frame, ...]:
    """The stack, innermost frame first; that of its error, when one ended it."""
    if process.error and process.error.stack:
        return process.error.stack
    return process.stack


UNTOLD_GROUP = "?"
"""Name of the group of an operation of which no line of a log tells the group."""


def group_name(group: str | None) -> str:
    """`the default group`, `group tp`; of one that a log does not tell, `a group without a name`."""
    if group == UNTOLD_GROUP:
        return "a group without a name"
    return "the default group" if _is_default(group) else f"group {group}"


def _is_default(group: str | None) -> bool:
    """True for the default group, and where the group is not known."""
    return group in (None, "default")


def outcome_text(verdict: Verdict, *, interrupted: bool = False) -> str:
    """`hang (proved)`, `hang (not proved, interrupted)`, `error`."""
    notes = []
    if verdict.outcome == "hang":
        notes.append("proved" if verdict.proved else "not proved")
    if interrupted:
        notes.append("interrupted")
    return verdict.outcome + (f" ({', '.join(notes)})" if notes else "")


def verdict_line(verdict: Verdict, *, interrupted: bool = False) -> str:
    """`hang (proved): collective-mismatch`."""
    outcome = outcome_text(verdict, interrupted=interrupted)
    return outcome if verdict.cause == "none" else f"{outcome}: {verdict.cause}"


def call(wait: Wait) -> str:
    """The operation by its name and number: `all_reduce #7`, `recv`."""
    if isinstance(wait, InCollective) and wait.seq is not None:
        return f"{wait.op} #{wait.seq}"
    return operation(wait) if isinstance(wait, OnCondition | OnDevice) else wait.op


_INSIDE = {
    "this thread": " that it already holds",
    "a waiting thread": " held by a thread that waits for this one",
}
"""What is said of a lock inside the process, by its holder."""


def operation(wait: Wait) -> str:
    """A wait within a sentence: `all_reduce #7`, `barrier #2 of group tp`, `the store key 'x'`."""
    match wait:
        case InCollective():
            return call(wait) + ("" if _is_default(wait.group) else f" of {group_name(wait.group)}")
        case InP2P():
            peers = f" {'to' if wait.sends else 'from'} {spoken(wait.peers)}" if wait.peers else ""
            tag = f" with tag {wait.tag}" if wait.tag else ""
            return f"{wait.op}{peers}{tag}"
        case InStore():
            return f"the store key {wait.key!r}" if wait.key else "a key of the store"
        case AtRendezvous():
            return f"the rendezvous ({wait.op})"
        case InRPC():
            return f"{wait.op} to {spoken(wait.peers)}" if wait.peers else wait.op
        case OnLock():
            if wait.shared:
                return "a lock that processes share"
            return f"the lock {wait.path}" if wait.path else f"a lock{_INSIDE.get(str(wait.holder), '')}"
        case OnThread():
            never = ", which waits for this one" if wait.circular else ""
            return f"another thread ({wait.op}){never}"
        case OnChild():
            return "a DataLoader worker" if wait.op == DATA_LOADER else "a child process"
        case OnCondition():
            values = f" ({', '.join(wait.values)})" if wait.values else ""
            return f"a change of `{wait.op}`{values}" if wait.op != ENDLESS else "nothing"
        case OnDevice():
            return f"the device ({wait.op})"
        case OnInput():
            return "input from stdin"
        case OnIO(target=str(target)) if target in (READER, SIGNAL):
            return target
        case OnIO():
            return f"{wait.op} on {wait.target}" if wait.target else wait.op


def wait_text(wait: Wait) -> str:
    """A wait in a table: `all_reduce #7, sizes [1]`, `barrier #2 in group tp`."""
    text = " ".join([call(wait), *_details(wait)])
    if isinstance(wait, Communication) and wait.sizes:
        text += ", sizes " + " ".join(str(list(size)) for size in wait.sizes)
    if isinstance(wait, Communication) and (through := _through(wait.within)):
        text += f", in {through}"
    return one_line(text if wait.blocking else f"pending: {text}")


def _details(wait: Wait) -> Iterator[str]:
    """Peers, tag, group, target and holder of a wait, as far as it has them."""
    if isinstance(wait, InP2P | InRPC) and wait.peers:
        yield f"with rank {spans(wait.peers)}"
    if isinstance(wait, InP2P) and wait.tag:
        yield f"with tag {wait.tag}"
    if isinstance(wait, ForRanks) and not _is_default(wait.group):
        yield f"in {group_name(wait.group)}"
    if (target := subject(wait)) is not None:
        yield f"for {target}"
    if isinstance(wait, OnLock) and wait.holder != "unknown":
        by = "nobody" if wait.holder == "no process" else f"pid {wait.holder}"
        yield f"of {operation(wait)}" if str(wait.holder) in _INSIDE else f"held by {by}"


def _through(within: Sequence[str]) -> str:
    """`Trainer.fit > ... > Accelerator.gather`: the first and the last of a library's functions."""
    names = [name for name in within if "<" not in name]
    public = [name for name in names if "." in name and not name.startswith("_")]
    ends = list(dict.fromkeys((*public[:1], *names[-1:])))
    return (" > ... > " if len(names) > len(ends) else " > ").join(ends)


def subject(wait: Wait) -> str | None:
    """The store key, the file or the address that a wait is for, as it was found."""
    match wait:
        case InStore():
            return wait.key
        case OnLock():
            return wait.path
        case OnInput():
            return wait.source
        case OnIO():
            return wait.target
        case AtRendezvous():
            return wait.address
        case InCollective():
            return wait.barrier_key
        case InP2P() | InRPC() | OnThread() | OnChild() | OnCondition() | OnDevice():
            return None


def wait_label(wait: Wait) -> str:
    """A wait in a word or two, for a picture: `all_reduce #7`, `store get`, `lock`, `DataLoader`."""
    if isinstance(wait, AtRendezvous | OnLock | OnThread | OnCondition | OnDevice | OnInput):
        return wait.kind
    return f"store {wait.op}" if isinstance(wait, InStore) else call(wait)


def label(process: ProcessView) -> str:
    """A process in a word or two, for a picture: `all_reduce #7`, `asleep`, `ValueError`, `SIGKILL`."""
    if process.alive:
        return wait_label(process.blocking[0]) if process.blocking else doing(process)
    if process.error:
        return process.error.type
    if process.signal is not None:
        return signal_name(process.signal)
    return f"exit code {process.exit_code}" if process.exit_code else ""


def doing(process: ProcessView | None) -> str:
    """What a process does, in a few words: `asleep`, `stopped by a signal`, `in recv from rank 0`."""
    if process is None:
        return "never started"
    states = {
        "ended": not process.alive,
        FROZEN: process.stopped_for_memory,
        "held by a debugger": process.traced,
        "stopped by a signal": process.state == "stopped",
        "inside a C call that holds the interpreter lock": process.gil_held,
        f"compiling {process.compiles}": process.compiles,
        "getting no processor": process.starved,
        "frozen by its control group": process.frozen,
        "asleep": process.asleep and not _tests(process),
        "importing": process.state == "importing",
    }
    if state := next((state for state, applies in states.items() if applies), None):
        return state
    if process.blocking:
        wait = process.blocking[0]
        inside = isinstance(wait, ForRanks | OnIO) and operation(wait) not in (READER, SIGNAL)
        enqueued = isinstance(wait, InCollective) and wait.enqueued
        return f"{'in' if inside and not enqueued else 'waiting for'} {operation(wait)}"
    return "working" if process.idle < STILL else "idle"


def _tests(process: ProcessView) -> bool:
    """True for a process that polls a condition."""
    first = process.blocking[0] if process.blocking else None
    return isinstance(first, OnCondition) and first.op != ENDLESS


def activities(process: ProcessView) -> tuple[str, ...]:
    """What a process waits in, or how it ended."""
    end = ending(process)
    if end:
        return (end,)
    if process.stopped_for_memory:
        return (FROZEN,)
    phrases = [wait_text(wait) for wait in process.waits]
    if process.gil_held:
        phrases.append("holds the GIL")
    if process.compiles:
        phrases.append(f"compiling {one_line(process.compiles)}")
    if process.asleep:
        phrases.append(f"asleep in {one_line(process.asleep)}")
    return tuple(phrases)


def ending(process: ProcessView) -> str:
    """`exit code 1: ValueError: no such file`, or nothing for a process that lives."""
    if process.signal is not None:
        number, name = f"signal {process.signal}", signal_name(process.signal)
        text = number if name == number else f"{number} ({name})"
    elif process.exit_code is not None:
        text = f"exit code {process.exit_code}"
    elif process.error:
        return shortened(process.error.text)
    else:
        return ""
    return f"{text}: {shortened(process.error.text)}" if process.error else text


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal 40` where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def child_name(child: ChildView) -> str:
    """`DataLoader worker 0`, or the kind of another child."""
    kind = "DataLoader worker" if child.process.kind == "dataloader-worker" else child.process.kind
    return one_line(kind if child.worker_id is None else f"{kind} {child.worker_id}")


def child_phrase(child: ChildView) -> str:
    """A child within a sentence: `DataLoader worker 0`, `a DataLoader worker`, `a child process`."""
    if child.process.kind != "dataloader-worker":
        return "a child process"
    return "a DataLoader worker" if child.worker_id is None else child_name(child)


def child_text(child: ChildView) -> str:
    """One sentence on a child, without its pid."""
    process = child.process
    parts = [process.state, *activities(process)]
    if child.joined_as_rank is not None:
        parts.insert(0, f"has joined as rank {child.joined_as_rank}")
    at = place_in(where_of(process))
    if at:
        parts.append(f"at {at}")
    return one_line(f"{child_name(child)}: {'; '.join(parts)}")


def megabytes(size: int) -> str:
    """A size in bytes as whole megabytes (10^6 bytes), or nothing for 0."""
    return f"{size / 1e6:.0f} MB" if size else ""
