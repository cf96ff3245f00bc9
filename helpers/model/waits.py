"""What a process waits for, or has pending: a class for each kind of thing.

A kind has the fields that are known of it. Which ranks it needs, and whether it may end without them, is
decided in `diagnose.needs`; how it is said, in `wording`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from .frames import Frame

WaitKind = Literal[
    "collective",
    "p2p",
    "store",
    "rendezvous",
    "rpc",
    "lock",
    "thread",
    "process",
    "input",
    "io",
    "device",
    "condition",
]

Sizes = tuple[tuple[int, ...], ...]
"""Shapes of tensors."""

DATA_LOADER = "DataLoader"
"""The operation of a wait for a DataLoader's worker."""

ANY_CHILD = "wait"
"""The operation of a wait for a child that shows nothing of which one is meant."""

READER = "the reader of its output"
"""What a process waits for whose output is not read: the user's terminal or pipe takes no more."""

SIGNAL = "a signal"
"""What a process waits for that does nothing until it gets a signal."""

UNKNOWN_CALL = "collective"
"""The operation of a collective of which only the number is known."""

ENDLESS = "True"
"""The condition of a loop that tests nothing."""

SENDS = ("send", "isend", "send_object_list")
RECEIVES = ("recv", "irecv", "recv_object_list")

SEND_OR_RECEIVE = "wait"
"""The wait for a handle that may be of a send or of a receive: nothing shows which."""


class _Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of every wait.

    Attributes:
        op: the operation: `all_reduce`, `recv`, `init_process_group`, `flock`, `read`, ...
        thread: name of the waiting thread.
        where: innermost user frame of that thread.
        blocking: True when the thread is blocked in it; False for an asynchronous operation that is
            pending while the thread does something else.
        limited: True when it ends by itself before long, and the program goes on then.
        within: the library's functions that lead from `where` to it, outermost first.
        traced: False where no line is known, neither the user's nor a library's.
    """

    kind: ClassVar[WaitKind]
    op: str
    thread: str = "MainThread"
    where: Frame | None = None
    blocking: bool = True
    limited: bool = False
    within: tuple[str, ...] = ()
    traced: bool = True


class InCollective(_Waiting, kw_only=True, frozen=True):
    """An operation that every member of a group has to come to.

    Attributes:
        group: name of the process group, `default` for the default one; None when unknown.
        members: of the group, as global ranks; empty when unknown.
        seq: sequence number in the group (Flight Recorder's `collective_seq_id`, from 1).
        sizes: shapes of the input tensors; dtype: their type, empty when unknown.
        root: the rank from which, or to which, an operation such as `broadcast` sends.
        group_number: index, from 1, of the group that this `new_group` call creates in the process; None
            where that cannot be counted.
        barrier_key: the store key at which a `new_group` call waits for all ranks.
        on_device: True where a device carries it out, which may have other work to do before.
        enqueued: True where the call has returned and the rank waits, at `where`, for its device.
    """

    kind = "collective"
    group: str | None = None
    members: tuple[int, ...] = ()
    seq: int | None = None
    sizes: Sizes = ()
    dtype: str = ""
    root: int | None = None
    group_number: int | None = None
    barrier_key: str | None = None
    on_device: bool = False
    enqueued: bool = False


class InP2P(_Waiting, kw_only=True, frozen=True):
    """A send or a receive.

    Attributes:
        group: name of the process group; None when unknown.
        members: of the group, as global ranks; empty when unknown.
        peers: global ranks of the other end; empty for any rank, or when unknown.
        sizes: shapes of the tensors sent.
        tag: by which a send finds its receive; None for a backend that has no tags, or when unknown.
    """

    kind = "p2p"
    group: str | None = None
    members: tuple[int, ...] = ()
    peers: tuple[int, ...] = ()
    sizes: Sizes = ()
    tag: int | None = None

    @property
    def sends(self) -> bool:
        """True for an operation that is known to send."""
        return self.op in SENDS


class AtRendezvous(_Waiting, kw_only=True, frozen=True):
    """`init_process_group`, which waits for all ranks.

    Attributes:
        group: the group that it makes.
        address: where the ranks look for each other, `env://` for the address in the environment.
    """

    kind: ClassVar[WaitKind] = "rendezvous"
    group: ClassVar[str | None] = "default"
    address: str | None = None


class JoinsRPC(AtRendezvous, kw_only=True, frozen=True):
    """`init_rpc`, which waits for all ranks, too."""

    kind = "rpc"
    group = None


class InRPC(_Waiting, kw_only=True, frozen=True):
    """A remote call that has not been answered, or `rpc.shutdown`, which waits for all ranks.

    Attributes:
        peers: ranks that are to answer; empty when unknown.
    """

    kind = "rpc"
    group: ClassVar[None] = None
    peers: tuple[int, ...] = ()

    @property
    def meets_all(self) -> bool:
        """True where every rank has to come to the same call."""
        return self.op == "shutdown"


class InStore(_Waiting, kw_only=True, frozen=True):
    """A key that is not yet in the store of the job.

    Attributes:
        key: None when unknown.
    """

    kind = "store"
    key: str | None = None


class OnLock(_Waiting, kw_only=True, frozen=True):
    """A lock on a file, a lock file, or a lock inside the process.

    Attributes:
        path: of the file; None where it is not known, and for a lock inside the process.
        holder: pid of the process that holds it; for a lock inside the process, the thread that waits
            here, or another one that waits for it.
        shared: True for a lock in memory that processes share, such as one of `multiprocessing`.
    """

    kind = "lock"
    path: str | None = None
    holder: int | Literal["no process", "this thread", "a waiting thread", "unknown"] = "unknown"
    shared: bool = False

    @property
    def on_file(self) -> bool:
        """True for a lock outside of the process, even where it is not known which."""
        return self.path is not None or self.op != "acquire"


class OnThread(_Waiting, kw_only=True, frozen=True):
    """Another thread of the same process: its end, or what it is to set, to put or to return.

    Attributes:
        circular: True where that thread, in the end, waits for this one.
    """

    kind = "thread"
    circular: bool = False


class OnCondition(_Waiting, kw_only=True, frozen=True):
    """A condition that a loop tests again and again and between two tests does nothing but sleep.

    Attributes:
        op: the condition, as the source has it.
        values: of the names in it, as `name = value`, where they can be read.
        changed_at: where functions of the same file change what it asks.
    """

    kind = "condition"
    values: tuple[str, ...] = ()
    changed_at: tuple[Frame, ...] = ()


class OnDevice(_Waiting, kw_only=True, frozen=True):
    """The device of this process, such as a GPU, until it has done what was enqueued.

    Attributes:
        op: the collective that it has to do first, where that is known; else what asks for a value of
            it: `item`, `cpu`, `synchronize`, `if`, ...
    """

    kind = "device"


class OnChild(_Waiting, kw_only=True, frozen=True):
    """A process that this one has started: its end, or the next batch of a DataLoader's worker."""

    kind = "process"


class OnInput(_Waiting, kw_only=True, frozen=True):
    """Something that a person types.

    Attributes:
        source: the terminal or the file that it is read from.
    """

    kind = "input"
    source: str | None = None


class OnIO(_Waiting, kw_only=True, frozen=True):
    """Any other file, pipe or connection.

    Attributes:
        target: the file, or the address at the other end; `READER`.
        ends: of a pipe, the pids of the other processes that hold its other end, or that of the process
            itself where no other one does; empty when unknown.
    """

    kind = "io"
    target: str | None = None
    ends: tuple[int, ...] = ()


Communication = InCollective | InP2P
"""Operations of a process group."""

ForRanks = Communication | AtRendezvous | InRPC
"""Only other ranks can end these."""

ForOutside = OnChild | OnIO | OnDevice
"""A child, a device or what is outside ends these: a process that waits in one still acts."""

Wait = ForRanks | InStore | OnLock | OnThread | OnCondition | ForOutside | OnInput
