"""What the log of a job tells of one of its ranks -> an account of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..beacon.calls import NOTHING
from ..beacon.record import Call, Error, FlightEntry, FrameEntry, Group, Thread
from ..model.facts import ErrorView
from ..observe import pyspy_record, tracebacks
from ..observe.account import Account
from . import patterns

KIND = "log"

WORLD = "default_pg"
"""How torch describes the default group; its name is `0`."""

UNNAMED = "collective"
"""An operation that no line names."""

LONGEST = 2_000
"""Lines that are kept from a first traceback on; letters of a line that is broken."""

CHAINED = 20
"""Lines after an exception within which the traceback of one that follows from it begins: a message
may have several lines."""

UNSEEN = 1e8
"""When an exception was raised that the log does not have: after those that it has."""

OPERATIONS = {
    "ALLREDUCE": "all_reduce",
    "ALLREDUCE_COALESCED": "all_reduce_coalesced",
    "ALLGATHER": "all_gather",
    "_ALLGATHER_BASE": "all_gather_into_tensor",
    "REDUCE_SCATTER": "reduce_scatter",
    "_REDUCE_SCATTER_BASE": "reduce_scatter_tensor",
    "ALLTOALL": "all_to_all",
    "ALLTOALL_BASE": "all_to_all",
}
"""Names of operations in the watchdog's words -> in the user's, where these are not the same in small
letters (torch/csrc/distributed/c10d/ProcessGroup.cpp and ProcessGroupNCCL.cpp)."""

TRACEBACK = "Traceback (most recent call last):"
RAISED = re.compile(r"(?:^|\]:? ?|\) )(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt)): \S")
"""The last line of a traceback, of which the log may not have the others."""


@dataclass
class Operation:
    """An operation of a rank in one group.

    Attributes:
        op: empty while no line has named it.
        numel: how many elements went into it; None when that is not told.
    """

    seq: int
    op: str = ""
    numel: int | None = None


@dataclass
class Progress:
    """How far a rank has come in one group: the operation that is late, and numbers of the last ones."""

    late: Operation | None = None
    enqueued: int | None = None
    completed: int | None = None


@dataclass
class LogRank:
    """What a log tells of one rank; of those that do not say who they are together.

    Attributes:
        by_group: id of a group -> its progress there.
        frames: the lines that led to the operation that is late, innermost first.
        lines: of its first traceback, and of those that follow from it; begins: the number of the first
            of these in the log; since: how many lines ago an exception was named, 0 before it is.
    """

    by_group: dict[str, Progress] = field(default_factory=dict)
    frames: list[FrameEntry] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    begins: int = 0
    since: int = 0
    local_rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    code: int | None = None
    timed_out: bool = False

    def at(self, group: str) -> Progress:
        """Its progress in a group."""
        return self.by_group.setdefault(group, Progress())

    @property
    def listens(self) -> bool:
        """True while lines of a traceback may follow."""
        return 0 < len(self.lines) < LONGEST and self.since <= CHAINED

    def add(self, line: str) -> None:
        """One more line of it."""
        self.lines.append(line)
        if self.since or (line.strip() and not line[0].isspace() and not line.endswith(TRACEBACK)):
            self.since += 1
        if line.endswith(TRACEBACK):
            self.since = 0


def account(rank: int | None, told: LogRank, names: Mapping[str, str], path: str) -> Account:
    """What a log tells of one rank.

    Args:
        rank: of the job; None for a process whose rank the log does not tell.
        names: id of a group -> how torch describes it.
        path: of the log.
    """
    groups: list[Group] = []
    entries: list[FlightEntry] = []
    threads: list[Thread] = []
    for name, progress in told.by_group.items():
        label = names.get(name, name)
        label = "default" if label == WORLD or name == "0" else label
        group: Group = {"name": label, "id": name, "ranks": [], "backend": "nccl"}
        groups.append(group)
        entries += _entries(name, progress)
        if progress.late is not None:
            threads.append(
                _thread(group, progress.late, () if threads else told.frames, main=not threads)
            )
    late = bool(threads)
    code = None if late else told.code
    return Account(
        file=path,
        kind=KIND,
        rank=rank,
        local_rank=told.local_rank,
        world_size=told.world_size,
        pid=told.pid,
        threads=tuple(threads),
        groups=tuple(groups),
        flight={"since": 0.0, "entries": entries} if told.by_group else None,
        error=None if late else _error(told) or _unseen(code),
        exit_code=code if code is not None and code > 0 else None,
        signal=-code if code is not None and code < 0 else None,
        timed_out=told.timed_out,
    )


def _entries(group: str, progress: Progress) -> Iterator[FlightEntry]:
    """The last that a rank has completed, and the one that is late."""
    if progress.completed is not None and progress.completed > 0:
        yield _entry(group, progress.completed, done=True)
    if progress.late is not None:
        late = _entry(group, progress.late.seq, done=False)
        late["op"] = _operation(progress.late.op)
        late["sizes"] = [[progress.late.numel]] if progress.late.numel is not None else []
        yield late


def _entry(group: str, number: int, *, done: bool) -> FlightEntry:
    return {"group": group, "seq": number, "op": "", "sizes": [], "done": done, "created": number}


def _operation(name: str) -> str:
    """An operation of the watchdog's in the words of the Flight Recorder."""
    return OPERATIONS.get(name, name.lower())


def _thread(group: Group, late: Operation, frames: Sequence[FrameEntry], *, main: bool) -> Thread:
    call: Call = {
        "kind": "collective",
        "op": _operation(late.op),
        **NOTHING,
        "group": group["name"],
        "sizes": [[late.numel]] if late.numel is not None else [],
    }
    return {
        "name": "MainThread" if main else f"on {group['name']}",
        "main": main,
        "since": 0.0,
        "frames": list(frames),
        "call": call,
        "native": None,
        "site": None,
    }


def _unseen(code: int | None) -> Error | None:
    """The exception of a process that has ended with an exit code, which the log does not have."""
    if code is None or code <= 0:
        return None
    return {
        "type": "an exception that is not in what was read",
        "message": "",
        "frames": [],
        "time": UNSEEN,
        "masked": [],
    }


def _error(told: LogRank) -> Error | None:
    """The first exception of a rank."""
    found = next(iter(tracebacks.errors("\n".join(told.lines))), None) if told.lines else None
    if found is None and len(told.lines) > 1 and RAISED.match(told.lines[1]):
        kind, _, message = told.lines[1].partition(": ")
        found = ErrorView(kind.rpartition(".")[2], message)
    if found is None or patterns.LATE.search(found.text):
        return None
    frames: list[FrameEntry] = [
        (one.file, one.line, one.function, pyspy_record.is_user(one.file, ())) for one in found.stack
    ]
    return {
        "type": found.type,
        "message": found.message,
        "frames": frames,
        "time": float(told.begins),
        "masked": list(found.masked),
        "caused_by": found.caused_by,
    }
