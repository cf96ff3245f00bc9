"""What the log of a job tells of one of its ranks -> an account of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ..beacon.calls import NOTHING
from ..beacon.record import Call, Error, FlightEntry, FrameEntry, Group, Thread
from ..model.facts import ErrorView
from ..model.op_types import users_name
from ..observe import pyspy_record
from ..observe.account import Account
from .patterns import watchdog_lines
from .raising import INDENTED, LONGEST, WATCHED, Raising, is_launcher, work_shape
from .writers import Line

KIND = "log"

WORLD = "default_pg"
"""How torch describes the default group; its name is `0`."""

UNNAMED = "collective"
"""An operation that no line names."""

RAISINGS = 16
"""Exceptions of one process that are kept."""

SHAPES = 256
"""Kinds of lines of one process that are remembered."""

QUOTED = 8
"""Lines of one process that may be quoted."""


UNSEEN = 1e8
"""When an exception was raised that the log does not have: after those that it has."""

_NONFATAL = re.compile(
    r"^Exception (?:in thread|ignored in)|exception was never retrieved|^--- Logging error ---"
)
"""What stands before the traceback of a thread, a finaliser or a task: its process goes on."""

_HOST = re.compile(r"(?!ERROR|WARN|INFO|DEBUG|CRITICAL|std|PCI)[A-Za-z0-9][\w.-]*(?:@[\w.:-]+)?")
"""The name of a machine, a pod, or of a process on one: `4091@10.0.0.4`."""

INTERRUPTED = ("KeyboardInterrupt", "SignalException")
"""Exceptions by which somebody outside ends a process."""


class Operation(msgspec.Struct):
    """An operation of a rank in one group.

    Attributes:
        seq: its number in its group; None where no line tells it.
        op: empty while no line has named it.
        numel: how many elements went into it; None when that is not told.
    """

    seq: int | None
    op: str = ""
    numel: int | None = None


class Progress(msgspec.Struct):
    """How far a rank has come in one group: the overdue operation, and numbers of the last ones."""

    overdue: Operation | None = None
    enqueued: int | None = None
    completed: int | None = None


class LogRank(msgspec.Struct):
    """What a log tells of one rank; of those that do not say who they are together.

    Attributes:
        by_group: id of a group -> its progress there.
        frames: the lines that led to the overdue operation, innermost first.
        raised: the exceptions that it has printed.
        code: with which it has ended, as somebody tells; code_at: the number of that line.
        died: True where only that it has ended is told.
        follows: True where another rank is known to have failed first.
        for_memory: True where it is told that it was ended for memory.
        joins: True where it waits at the end of `init_process_group`.
        late_at: number of the first line that tells that an operation has taken too long; 0 for none.
        margin: blanks before all lines of its newest traceback.
        indented: whether its newest line may be code, or markers below code, in a traceback.
        quotes: number of a line that tells something -> the line, as it stands in the file.
    """

    by_group: dict[str, Progress] = msgspec.field(default_factory=dict)
    frames: list[FrameEntry] = msgspec.field(default_factory=list)
    raised: list[Raising] = msgspec.field(default_factory=list)
    local_rank: int | None = None
    world_size: int | None = None
    host: str = ""
    pid: int | None = None
    code: int | None = None
    code_at: int = 0
    died: bool = False
    follows: bool = False
    for_memory: bool = False
    joins: bool = False
    late_at: int = 0
    margin: int = 0
    indented: bool = False
    quotes: dict[int, str] = msgspec.field(default_factory=dict)
    _heard: dict[str, str] = msgspec.field(default_factory=dict)
    _nonfatal: bool = False

    def at(self, group: str) -> Progress:
        """Its progress in a group."""
        return self.by_group.setdefault(group, Progress())

    @property
    def listens(self) -> bool:
        """True while the next lines may tell whether it outlives an exception."""
        return (
            bool(self.raised)
            and self.raised[-1].since <= WATCHED
            and len(self.raised[-1].lines) < LONGEST
        )

    @property
    def full(self) -> bool:
        """True where no more exceptions are kept."""
        return len(self.raised) == RAISINGS and not self.raised[-1].open

    @property
    def death(self) -> Raising | None:
        """The exception that has ended it, as far as it shows."""
        fatal = (
            raising
            for raising in self.raised
            if not (raising.nonfatal or (raising.outlived and self.code is None))
        )
        return next(fatal, None)

    @property
    def quoted(self) -> dict[int, str]:
        """Number of a line that tells something of it -> the line."""
        death = self.death
        if death is None or (self.quotes and not (death.named_at or death.message)):
            return self.quotes
        return {**self.quotes, death.named_at or death.newest or death.begins: death.raw}

    @property
    def is_launcher(self) -> bool:
        """True for a process that has started the ranks, as its exception shows."""
        return self.death is not None and self.death.of_launcher

    def quote(self, line: Line) -> None:
        """Keep a line that tells something."""
        if len(self.quotes) < QUOTED:
            self.quotes[line.number] = line.raw

    def ended(self, line: Line, code: int | None) -> None:
        """A line tells how the process has ended; None: only that it has."""
        self.quote(line)
        if code is None:
            self.died, self.code_at = True, self.code_at or line.number
        elif self.code is None:
            self.code, self.code_at = code, line.number

    def begin(self, line: Line, *texts: str) -> None:
        """The first lines of a traceback."""
        if len(self.raised) == RAISINGS:
            self.raised[-1].since = WATCHED + 1
            return
        self.raised.append(Raising(line.number, raw=line.raw, nonfatal=self._nonfatal))
        for text in texts:
            self.raised[-1].add(line, text, self._heard)

    def log(self, line: Line, kind: str, message: str) -> None:
        """A library, or the driver, tells of a failure after which the process cannot go on."""
        self.quote(line)
        if len(self.raised) < RAISINGS:
            view = ErrorView(kind, message)
            self.raised.append(
                Raising(line.number, named_at=line.number, raw=line.raw, since=1, logged=view)
            )

    def hear(self, line: Line, text: str) -> None:
        """A line that it has printed."""
        if self.raised:
            self.raised[-1].add(line, text, self._heard)
        self._nonfatal = _NONFATAL.search(text) is not None
        self.indented = INDENTED.match(text) is not None
        shape = work_shape(text) if not self.raised or self.raised[-1].since > 1 else ""
        if shape and len(self._heard) < SHAPES:
            self._heard[shape] = text


class LogRanks(dict[int | str, LogRank]):
    """What a log tells of each rank, and of each process whose rank it does not tell, by its writer."""

    def of(self, rank: int | str) -> LogRank:
        """What is told of a rank, or of a writer."""
        return self.setdefault(rank, LogRank())


def account(rank: int | str, log_rank: LogRank, names: Mapping[str, str], path: str) -> Account:
    """What a log tells of one rank.

    Args:
        rank: of the job; of a process whose rank the log does not tell, its writer.
        names: id of a group -> how torch describes it.
        path: of the log.
    """
    groups: list[Group] = []
    entries: list[FlightEntry] = []
    threads: list[Thread] = []
    for name, progress in log_rank.by_group.items():
        group = _group(name, names.get(name, name))
        groups.append(group)
        entries += _entries(name, progress)
        if progress.overdue is not None:
            threads.append(
                _thread(group, progress.overdue, () if threads else log_rank.frames, main=not threads)
            )
    if log_rank.joins:
        threads.append(_in_call({"kind": "rendezvous", "op": "init_process_group", **NOTHING}))
    code = log_rank.code or 0
    return Account(
        file=path,
        kind=KIND,
        rank=rank if isinstance(rank, int) else None,
        host=log_rank.host or _host(rank),
        local_rank=log_rank.local_rank,
        world_size=log_rank.world_size,
        pid=log_rank.pid,
        threads=tuple(threads),
        groups=tuple(groups),
        flight={"since": 0.0, "entries": entries} if log_rank.by_group else None,
        error=error(log_rank) or (_unseen(log_rank.code) if not (threads or log_rank.follows) else None),
        exit_code=code if code > 0 else None,
        signal=-code if code < 0 else None,
        ended_at=log_rank.code_at,
        died=log_rank.died,
        timed_out=bool(log_rank.late_at),
        quotes=tuple(sorted(log_rank.quoted.items())),
    )


def _host(writer: int | str) -> str:
    """The machine, the pod or the process that a writer is; empty for a label that is none of these."""
    name = writer.strip(" :|>()[]") if isinstance(writer, str) else ""
    return name if _HOST.fullmatch(name) else ""


def _group(name: str, description: str) -> Group:
    label = "default" if description == WORLD or name == "0" else description
    return {"name": label, "id": name, "ranks": [], "backend": "nccl"}


def _entries(group: str, progress: Progress) -> Iterator[FlightEntry]:
    """The last that a rank has completed, and the one that is late."""
    if progress.completed is not None and progress.completed > 0:
        yield _entry(group, progress.completed, done=True)
    if progress.overdue is not None and progress.overdue.seq is not None:
        entry = _entry(group, progress.overdue.seq, done=False)
        entry["op"] = users_name(progress.overdue.op)
        entry["sizes"] = [[progress.overdue.numel]] if progress.overdue.numel is not None else []
        yield entry


def _entry(group: str, number: int, *, done: bool) -> FlightEntry:
    return {"group": group, "seq": number, "op": "", "sizes": [], "done": done, "created": number}


def _thread(group: Group, overdue: Operation, frames: Sequence[FrameEntry], *, main: bool) -> Thread:
    call: Call = {
        "kind": "collective",
        "op": users_name(overdue.op),
        **NOTHING,
        "group": group["name"],
        "sizes": [[overdue.numel]] if overdue.numel is not None else [],
    }
    return _in_call(call, frames, "MainThread" if main else f"on {group['name']}", main=main)


def _in_call(
    call: Call, frames: Sequence[FrameEntry] = (), name: str = "MainThread", *, main: bool = True
) -> Thread:
    return {
        "name": name,
        "main": main,
        "since": 0.0,
        "frames": list(frames),
        "call": call,
        "native": None,
        "site": None,
    }


def _unseen(code: int | None) -> Error | None:
    """An exception that the log does not have, of a process that has ended as Python does after one."""
    if code != 1:
        return None
    return {
        "type": "an exception that is not in what was read",
        "message": "",
        "frames": [],
        "time": UNSEEN,
        "masked": [],
    }


def error(log_rank: LogRank) -> Error | None:
    """The exception that has ended a rank; none for one that only says that an operation was late."""
    death = log_rank.death
    view = death.error() if death is not None else None
    if death is None or view is None or watchdog_lines.LATE.search(view.text):
        return None
    frames: list[FrameEntry] = [
        (frame.file, frame.line, frame.function, _is_user(frame.file)) for frame in view.stack
    ]
    return {
        "type": view.type,
        "message": view.message,
        "frames": frames,
        "time": float(death.begins),
        "masked": list(view.masked),
        "caused_by": view.caused_by,
    }


def _is_user(file: str) -> bool:
    file = file.replace("\\", "/")
    return pyspy_record.is_user(file, ()) and not is_launcher(file)
