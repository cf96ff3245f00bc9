"""What one look at a job brings in, and what the next one is to find out: all that a verdict rests on.

A look holds what is new since the one before it, so that a recording, which is made of looks, stays
small. It can be written as JSON and read back: later versions only add fields that may be left out.
Times are seconds of the system-wide monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ..beacon.record import Record, Sample, Samples
from ..model.facts import LimitView, Stdin


class Question(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Something that is found out only when it is asked for: it takes time, or is rarely needed."""


class Output(Question, frozen=True):
    """The end of what a process has printed: a text."""

    pid: int


class Printed(Question, frozen=True):
    """The newest lines that a process itself has printed; None where it has no pipe of its own."""

    pid: int


class Failure(Question, frozen=True):
    """Why the beacon of a process could not start: a text."""

    pid: int


class ErrorFile(Question, frozen=True):
    """The traceback that a child of `mp.spawn` has left in a file: a text."""

    path: str


class Source(Question, frozen=True):
    """The text of a source file, and when it was last changed; None where it cannot be read.

    Recordings of an earlier version have the text alone.
    """

    path: str


class Cell(Question, frozen=True):
    """[possible numbers, source] of the cell that a process runs as such a file, else None.

    It is looked for in the notebook's own file, see `notebooks`.
    """

    pid: int
    file: str


class Holder(Question, frozen=True):
    """Pid of the process that holds a lock; 0 where none does, None when unknown.

    Attributes:
        op: as in the wait for it; path: absolute; waiter: pid of a process that waits for it.
    """

    op: str
    path: str
    waiter: int


class Held(Question, frozen=True):
    """[path, pid of the holder] of each file that a process has open and another one has locked."""

    pid: int


class Ends(Question, frozen=True):
    """Pids of the processes that hold the other end of a pipe, else None.

    Attributes:
        pid: of the process that waits at the pipe; target: as the kernel names the pipe.
        reads: whether it waits to read.
    """

    pid: int
    target: str
    reads: bool


class Owner(Question, frozen=True):
    """[pid, command line] of the process outside the job that listens on a port, else None."""

    port: int


class Peer(Question, frozen=True):
    """`address:port` of the other end of a connection of a process, else None.

    Attributes:
        target: `socket:[NUMBER]`, as the kernel names it.
    """

    pid: int
    target: str


class Dump(Question, frozen=True):
    """What py-spy reads in a process: a record like a beacon's, or why there is none: a text."""

    pid: int


class Store(Question, frozen=True):
    """What the job's store at `host:port` holds: {reachable, keys}."""

    address: str


class Issued(Question, frozen=True):
    """What torch's debug server at `host:port` tells: {at, ranks}, see `debug_probe.look`."""

    address: str


class Entries(Question, frozen=True):
    """What NCCL's recorder of a rank holds: a `record.Flight`, or why that is not known: a text.

    Attributes:
        dump: file into which torch dumps it on request.
        since: monotonic time since which nothing has changed in it.
    """

    dump: str
    since: float


class NativeStack(Question, frozen=True):
    """The C functions in which the main thread of a process is, innermost first; none if unreadable.

    Attributes:
        since: monotonic time since which the thread has been where it is: it is read once there.
    """

    pid: int
    since: float


class Threads(Question, frozen=True):
    """The threads of a process: [the kernel's id, seconds of processor time used, name] of each."""

    pid: int


class Movement(Question, frozen=True):
    """Of some threads of a process: [the kernel's id, whether it runs or could, its context switches].

    Attributes:
        threads: the kernel's ids of them; none for all of a process outside the job.
    """

    pid: int
    threads: tuple[int, ...]


class SystemCall(Question, frozen=True):
    """The system call that blocks the main thread of a process, see `beacon.native`; None for none."""

    pid: int


AnyQuestion = (
    Output
    | Printed
    | Failure
    | ErrorFile
    | Source
    | Cell
    | Holder
    | Held
    | Ends
    | Owner
    | Peer
    | Dump
    | Store
    | Issued
    | Entries
    | NativeStack
    | Threads
    | Movement
    | SystemCall
)


class Watched(msgspec.Struct, frozen=True):
    """What stays the same for a whole run.

    Attributes:
        command: its words, as the user gave them.
        cwd: its working directory; files are reported relative to it.
        pid: of the outermost process.
        start: time at which that was started.
        host: name of the machine.
        stdin: its standard input.
        attached: True for a job that was started without the instrument, and so without beacons.
        interfaces: [name, address] of each network interface of the machine.
        patience: seconds after which a rank that uses no CPU and does not move is a suspicion.
    """

    command: tuple[str, ...]
    cwd: str
    pid: int
    start: float
    host: str = ""
    stdin: Stdin = "inherit"
    attached: bool = False
    interfaces: tuple[tuple[str, str], ...] = ()
    patience: float = 30.0


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a process runs, given when it is first seen and when it replaces its program.

    Attributes:
        number: distinguishes processes that have had the same pid one after the other.
        started: time at which the process was started.
        environment: the launch variables that its program was given; None where we may not look.
        apart: True where it is in another session than the command.
        exe: path of what it runs, as the kernel names it; empty where we may not look.
    """

    pid: int
    number: int
    parent: int
    started: float
    command: tuple[str, ...] = ()
    environment: Mapping[str, str] | None = None
    apart: bool = False
    exe: str = ""


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a living process does, as the kernel sees it.

    Attributes:
        cpu: seconds of processor time used so far; memory: resident bytes; private: those of them that
            are neither of a file nor shared, where the kernel tells (Linux).
        stopped: True while a signal, or a debugger, stops it.
        traced: True while a debugger does.
        waits_for_child: True while its main thread sleeps in a wait for a child.
        stalled: True while it sleeps without being interruptible, as one that wants more memory than a
            control group has.
        sockets: (address, port) of its listening TCP sockets; None when they were not looked at.
        unanswered: `address:port` of the other ends that do not answer, see `sockets.REPEATED`.
        frozen: True while a control group keeps it from running.
    """

    pid: int
    cpu: float = 0.0
    memory: int = 0
    stopped: bool = False
    traced: bool = False
    waits_for_child: bool = False
    stalled: bool = False
    sockets: tuple[tuple[str, int], ...] | None = None
    unanswered: tuple[str, ...] = ()
    frozen: bool = False
    private: int | None = None


class Told(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the beacon of a process has written since the look before.

    Attributes:
        written: time of the newest writing.
        record: None where it says the same as before.
        failed: why there is no record of the last look of the beacon.
        lost: True when the record can no longer be read, as on a full disk.
        stacks: what `faulthandler` has written for the process; None where it is the same as before.
        samples: those that are new; None for none.
    """

    pid: int
    written: float
    record: Record | None = None
    failed: str = ""
    lost: bool = False
    stacks: str | None = None
    samples: Samples | None = None


class Look(msgspec.Struct, frozen=True, omit_defaults=True):
    """One look at a job.

    Attributes:
        time: when it was taken.
        status: wait status of the command once it has ended.
        reaped: pid -> wait status of processes whose end was seen.
        programs: of processes that are new, or run another program than before.
        alive: every process of the job that exists.
        told: by the beacons.
        answers: to the questions that were asked, where they are new or have changed.
        input: what the command has as its standard input, as the kernel names it.
        memory_kills: processes that the kernel has ended for memory, in the job's control group.
    """

    time: float
    status: int | None = None
    reaped: Mapping[int, int] = {}
    programs: tuple[Program, ...] = ()
    alive: tuple[Usage, ...] = ()
    told: tuple[Told, ...] = ()
    answers: tuple[tuple[AnyQuestion, Any], ...] = ()
    input: str = ""
    memory_kills: int = 0
    limit: LimitView | None = None


def merged(earlier: Look, later: Look) -> Look:
    """Two looks that follow each other, as if only the later one had been taken."""
    programs = {(program.pid, program.number): program for program in earlier.programs + later.programs}
    before = {usage.pid: usage for usage in earlier.alive}
    alive = (
        replace(usage, sockets=previous.sockets, unanswered=previous.unanswered)
        if usage.sockets is None and (previous := before.get(usage.pid)) is not None
        else usage
        for usage in later.alive
    )
    reports = {report.pid: report for report in earlier.told}
    for report in later.told:
        first = reports.get(report.pid)
        reports[report.pid] = report if first is None else _merged_report(first, report)
    return replace(
        later,
        reaped={**earlier.reaped, **later.reaped},
        programs=tuple(programs.values()),
        alive=tuple(alive),
        told=tuple(reports.values()),
        answers=tuple({**dict(earlier.answers), **dict(later.answers)}.items()),
    )


def _merged_report(earlier: Told, later: Told) -> Told:
    return replace(
        later,
        record=earlier.record if later.record is None and not later.lost else later.record,
        failed=later.failed or earlier.failed,
        lost=later.lost or (earlier.lost and later.record is None),
        stacks=earlier.stacks if later.stacks is None else later.stacks,
        samples=_samples(earlier.samples, later.samples),
    )


def _samples(earlier: Samples | None, later: Samples | None) -> Samples | None:
    if earlier is None or later is None:
        return later if earlier is None else earlier
    moved = len(earlier["places"])
    shifted: list[Sample] = [
        {**sample, "place": sample["place"] + moved if sample["place"] >= 0 else -1}
        for sample in later["samples"]
    ]
    return {"samples": [*earlier["samples"], *shifted], "places": [*earlier["places"], *later["places"]]}
