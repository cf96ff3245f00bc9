"""What each cause has found, in typed fields: what its page says of a case is made of these alone.

A field is false, empty or None where nothing shows it, and says so: a fix that needs it is not given.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from .frames import Frame
from .parting import Call


class Finding(msgspec.Struct, frozen=True):
    """What was found. `kind` is its name in JSON."""

    kind: ClassVar[str] = "unexplained"


Owner = Literal["stranger", "earlier run", "job", "unknown"]
"""Who has a port that a process wants; an earlier run is one of the same command."""


class AddressInUse(Finding, frozen=True):
    """A process could not listen on a port.

    Attributes:
        port: 0 where the kernel was to choose one, and had none.
        owner: who has it.
        runs_module_again: True where a child of `multiprocessing` has run the launching code again.
        same_rank: True where two processes act as the rank that could not listen.
    """

    kind = "address-in-use"
    port: int | None = None
    owner: Owner = "unknown"
    runs_module_again: bool = False
    same_rank: bool = False


class DuplicateRank(Finding, frozen=True):
    """Children of ranks have joined in their place, at a line that both have run.

    Attributes:
        separate: True where two processes that have nothing to do with each other are one rank.
    """

    kind = "duplicate-rank"
    ranks: tuple[int, ...] = ()
    joined_at: Frame | None = None
    separate: bool = False


class OutOfMemory(Finding, frozen=True):
    """Memory was used up: a rank's own, of its GPU, of its DataLoader's worker, or `/dev/shm`.

    Attributes:
        while_loading: True where a model or a checkpoint was being loaded.
        limited: True where the job had a limit of its own.
    """

    kind = "out-of-memory"
    of: Literal["rank", "gpu", "worker", "shared memory"] = "rank"
    while_loading: bool = False
    limited: bool = False


class WorkerStall(Finding, frozen=True):
    """A DataLoader's worker is stuck, was late or has ended.

    Attributes:
        signal: name of the one that somebody else has sent to all workers of a rank; empty for none.
        runs_module_again: True where a worker has run the launching code again.
        told_signal: name of the one that has ended a worker, as its rank says; empty for none.
        for_memory: True for the one by which the kernel ends a process for memory.
    """

    kind = "worker-stall"
    state: Literal["stuck", "late", "ended"] = "ended"
    signal: str = ""
    runs_module_again: bool = False
    told_signal: str = ""
    for_memory: bool = False


Lines = Literal["same", "different", "unknown"]


class ShapeMismatch(Finding, frozen=True):
    """Sizes differ in one call: in the parameters that DDP compares, in what is reduced, or in data.

    Attributes:
        lines: whether all ranks have made that call from one line, as far as each line is known.
    """

    kind = "shape-mismatch"
    of: Literal["parameters", "reduction", "data"] = "data"
    lines: Lines = "unknown"


class DeviceMismatch(Finding, frozen=True):
    """Operands are on different devices.

    Attributes:
        in_init_module: True where the line is inside `init_module`.
        sets_default: True where the program sets a default device.
    """

    kind = "device-mismatch"
    in_init_module: bool = False
    sets_default: bool = False


class RankCrashed(Finding, frozen=True):
    """A signal has ended a rank: SIGKILL and SIGTERM come from outside, others from what it did.

    Attributes:
        with_stack: True where its stack was written as it crashed.
        bus_error: True for SIGBUS, by which the kernel ends a process whose shared memory has no room.
    """

    kind = "rank-crashed"
    signal: str = ""
    from_outside: bool = False
    with_stack: bool = False
    bus_error: bool = False


class RankExited(Finding, frozen=True):
    """Ranks have ended while others need them.

    Attributes:
        needed_by, needed_at: the ranks that do, and the line where the first of them does.
        at_end: True where they came to the end of the program, and no rank is in a loop.
    """

    kind = "rank-exited"
    ranks: tuple[int, ...] = ()
    needed_by: tuple[int, ...] = ()
    needed_at: Frame | None = None
    at_end: bool = False


class RendezvousIncomplete(Finding, frozen=True):
    """The ranks do not meet.

    Attributes:
        absent: those that have not joined.
        never_started: True where one of them has no process; alone: where the only process was started
            by hand, and its variables speak of more.
        ended: True where one of them has ended; late: where one is at a line of its own.
        other_nodes: True where other machines are waited for.
        wrong_interface: True where ranks have found the store, and cannot connect to each other.
        addresses: True where they look for the store at different addresses.
        other_job: True where the rendezvous belongs to another job.
        unreached: True where a process has given up looking for the store.
    """

    kind = "rendezvous-incomplete"
    absent: tuple[int, ...] = ()
    never_started: bool = False
    alone: bool = False
    ended: bool = False
    late: bool = False
    other_nodes: bool = False
    wrong_interface: bool = False
    addresses: bool = False
    other_job: bool = False
    unreached: bool = False


class Mismatch(Finding, frozen=True):
    """The ranks do not make the same calls.

    Attributes:
        group, seq: the place at which they first differ, where that is known.
        calls: what they have issued instead of each other's.
        odd: the ranks to look at first.
        messages: True where sends and receives do not meet; peers: of whom one sends to another, which
            receives from a third; tags: of whom one receives with another tag than its peer sends with.
        misdirected: which rank sends to another one what a third waits for.
        roots: what each gives as the source or the destination of one call, where that differs.
        outside: who has called an operation in a group of others, in words.
        makes_group: True where some are in `new_group`, or know a group with other members.
        collective: True where no rank waits for a message, or makes a group.
        threads: True where several threads of a rank use the group.
    """

    kind = "mismatch"
    group: str | None = None
    seq: int | None = None
    calls: tuple[Call, ...] = ()
    odd: tuple[int, ...] = ()
    messages: bool = False
    peers: str = ""
    tags: str = ""
    misdirected: str = ""
    roots: str = ""
    outside: str = ""
    makes_group: bool = False
    collective: bool = True
    threads: bool = False


class FileLock(Finding, frozen=True):
    """Ranks wait for a lock.

    Attributes:
        left_behind: True where no process holds it.
        across_call: True where the rank that holds it waits for others.
    """

    kind = "file-lock"
    path: str | None = None
    left_behind: bool = False
    across_call: bool = False


WaitsFor = Literal["", "condition", "input", "signal", "key", "lock", "thread", "pipe", "queue", "other"]
"""What keeps a rank: a condition that it tests, what a person types, a signal that has stopped it, a key
of the store, a lock that it or nobody can release, another thread of its process, a child that cannot
write into a pipe or a queue, something outside."""


class Missing(Finding, frozen=True):
    """A rank is alive, and does not arrive where others wait.

    Attributes:
        waits_for: what keeps the first of the ranks that waits; empty where none does.
        works: True where it computes or sleeps.
        tested: the condition, or the call that waits for another thread; changed: the functions that
            change it, or end that wait.
        lost: a process or a thread that one of them has started and that has failed, in words.
        met: how many calls of a group these ranks and those that wait have completed together.
        needed_by: the ranks that wait; awaited: the call in which they do.
    """

    kind = "missing"
    ranks: tuple[int, ...] = ()
    waits_for: WaitsFor = ""
    works: bool = False
    tested: str = ""
    changed: str = ""
    lost: str = ""
    met: int = 0
    needed_by: tuple[int, ...] = ()
    awaited: str = ""


Topic = Literal[
    "",
    "hardware",
    "launch",
    "duplicate gpu",
    "device ordinal",
    "unused parameters",
    "device kernel",
    "device busy",
    "disk",
    "nccl",
    "lock file",
    "libuv",
]


class Raised(Finding, frozen=True):
    """An exception that was not caught; without a type where Python could not run the script.

    Attributes:
        topic: what it is about, where its text is one for which there is advice; else empty.
        logged: True where a library or the driver has reported it, and Python has raised nothing.
    """

    kind = "raised"
    type: str = ""
    topic: Topic = ""
    logged: bool = False


class Unexplained(Finding, frozen=True):
    """Nothing explains what was seen.

    Attributes:
        blind: True where something could not be seen; on_gpus: where the job runs on GPUs, and no
            collective of it is known to have completed.
        from_outside: True where somebody else has ended the job, and no rank has failed.
        hangup: True where that was the end of the session in which its command ran.
        never_connected: True where the first operation of a group has never completed.
        unread: True where a process has failed for a reason that is not in the files that were read;
            cut_off: where it is in the rest of one of them.
    """

    blind: bool = False
    on_gpus: bool = False
    from_outside: bool = False
    hangup: bool = False
    never_connected: bool = False
    unread: bool = False
    cut_off: bool = False
