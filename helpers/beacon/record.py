"""The record that a beacon writes of its process.

Times are seconds of the system-wide monotonic clock (`time.monotonic`), which all processes of one
machine share. A record that is no longer touched belongs to a process that has ended, is stopped, or
holds the interpreter lock in a C call.

These types are what a record is checked against when it is read. No process of a job imports them: to
make them takes longer than the rest of the beacon's start.
"""

from typing import Dict, List, Literal, Optional, Tuple, TypedDict, Union

Unseen = Literal["groups", "recorder", "nccl", "joining"]
"""What a torch may keep from the beacon (see `torch_names.unseen`)."""

FrameEntry = Tuple[str, int, str, bool]
"""File, line, function, and whether it is the user's own code."""


Cell = Tuple[int, str]
"""Number of a notebook's cell, and the source that was compiled of it; empty where it is not known."""


class _NotAlwaysOfNativeCall(TypedDict, total=False):
    lasts: float
    until: float
    shared: bool
    polled: List[str]


class NativeCall(_NotAlwaysOfNativeCall):
    """The system call that blocks a thread.

    Attributes:
        lasts: seconds after which it ends by itself, counted from its start; until: monotonic time at
            which it does; not both, and neither where it has no limit.
        call: its name.
        fd: the descriptor that it names, target: what that descriptor points to; None for calls that
            name none.
        limited: True where the thread waits for another thread, and only for some time.
        polled: what the descriptors point to whose readiness it waits for; left out where unknown.
        shared: True for a `futex` in memory that processes share, as a semaphore of `multiprocessing`.
    """

    call: str
    fd: Optional[int]
    target: Optional[str]
    limited: bool


class _NotAlwaysOfMembers(TypedDict, total=False):
    span: Tuple[int, int, int]


class Members(_NotAlwaysOfMembers):
    """Global ranks.

    Attributes:
        span: the arguments of the `range` that they are, where they are many; `ranks` is empty then.
    """

    ranks: List[int]


class _NotAtFirstOfArguments(TypedDict, total=False):
    """What records did not tell at first."""

    tag: Optional[int]


class Arguments(Members, _NotAtFirstOfArguments):
    """What a call was given, and what it waits for; None or empty where that says nothing of it.

    Attributes:
        group: label of the process group, `default` for the default one; None when unknown.
        ranks: its members; empty when unknown.
        peers: global ranks that a point-to-point call, or a remote call, names.
        sizes: shapes of the tensors sent.
        tag: by which a send finds its receive; None for a backend that has none.
        key: the key in the store, the address of the rendezvous, or the lock file.
        root: global rank from which, or to which, a collective sends.
        limit: seconds after which the call gives up.
        counted: True for a `new_group` that all ranks call.
        rank, world_size: what `init_process_group` was given; world_size also of `mp.spawn`.
        workers: pid -> worker id of the DataLoader workers that it waits for.
        spawned: pid -> process index of the processes of `mp.spawn` that it waits for.
    """

    group: Optional[str]
    peers: List[int]
    sizes: List[List[int]]
    key: Optional[str]
    root: Optional[int]
    limit: Optional[float]
    counted: bool
    rank: Optional[int]
    world_size: Optional[int]
    workers: Dict[int, int]
    spawned: Dict[int, int]


class Call(Arguments):
    """A call of torch's, or of a library that waits for processes or lock files."""

    kind: Literal["collective", "p2p", "store", "rendezvous", "rpc", "lock", "process"]
    op: str


class _NotAtFirstOfSite(TypedDict, total=False):
    """What records did not tell at first."""

    peers: Dict[str, int]


class Site(_NotAtFirstOfSite):
    """A position in the source, and what the expressions there stand for.

    Attributes:
        peers: expression -> global rank at the other end, of a `Work` for which that can be told.
        position: line, end line, column, end column; the line alone when seen from outside, and before
            Python 3.11.
        names: expression -> class: `lock`, or one of torch's; that of a `Work` carries its operation
            (`Work.irecv`). `handles[*]` stands for the members of a container that are all alike.
        strings: expression -> text or path.
        limits: expression -> seconds of a time span, or for which a store waits.
    """

    file: str
    position: List[int]
    names: Dict[str, str]
    strings: Dict[str, str]
    limits: Dict[str, float]


class Locks(TypedDict):
    """The locks of Python's that a frame can name.

    Attributes:
        names: expression -> number of a lock; owners: number of a lock -> Python's id of the thread that
            holds it, 0 for none; only a reentrant lock tells.
    """

    file: str
    line: int
    names: Dict[str, int]
    owners: Dict[int, int]


class _NotAtFirstOfThread(TypedDict, total=False):
    """What records did not tell at first."""

    ident: int
    native_id: Optional[int]
    locks: List[Locks]
    wants: Optional[int]
    joins: Optional[int]
    values: Dict[int, Dict[str, str]]
    within: List[Tuple[str, str]]
    holds_gil: bool
    scheduled: float
    spins: bool
    handling: "Error"
    native_stack: List[str]
    schedule: Tuple[float, float]


class Thread(_NotAtFirstOfThread):
    """One thread.

    Attributes:
        ident: Python's id of it; native_id: the kernel's, None where it is not known.
        locks: those that the user's frames can name, innermost frame first.
        wants: number of the lock that it waits for in Python's own `threading`.
        joins: Python's id of the thread for whose end it waits.
        values: of the user's frames, by their place in `frames`: name -> `repr` of a plain value; the
            innermost has the exception that is being handled as `sys.exception()`.
        holds_gil: True for the one that holds the interpreter lock, as seen from outside; scheduled:
            when that one has last run on a processor, as far as looks tell.
        native_stack: the C functions in which it is, innermost first, where that was asked.
        handling: the exception that it is handling, where it has been at one place for a moment.
        schedule: seconds for which it has had a processor, and for which it has waited for one.
        spins: True while it keeps a processor busy in C, without the interpreter lock, where it stands.
        within: the library's functions that lead from the user's line to its call, outermost first: the
            module and the qualified name of each.
        main: True for the main thread.
        since: when it last moved.
        frames: innermost first.
        call: the torch call it is in, native: the system call, site: its position in the user's source;
            None while it moves.
    """

    name: str
    main: bool
    since: float
    frames: List[FrameEntry]
    call: Optional[Call]
    native: Optional[NativeCall]
    site: Optional[Site]


class _NotAlwaysOfGroup(TypedDict, total=False):
    guessed: bool


class Group(Members, _NotAlwaysOfGroup):
    """A process group: its label, torch's own name for it, and its members.

    Attributes:
        guessed: True where nothing tells the members: those that have used it are taken for all.
    """

    name: str
    id: str
    backend: str


class Groups(TypedDict):
    """The process groups of a process.

    Attributes:
        made: how many calls have made a group, one in progress included, whether or not this process
            is a member; None when unknown.
    """

    rank: int
    world_size: int
    groups: List[Group]
    made: Optional[int]


class _NotAtFirstOfEntry(TypedDict, total=False):
    """What records did not tell at first."""

    dtype: str
    outputs: List[List[int]]


class FlightEntry(_NotAtFirstOfEntry):
    """A collective that Flight Recorder has recorded.

    Attributes:
        group: id of its group.
        sizes: shapes of the input tensors; dtype: their type, as torch names it; outputs: shapes of what
            they are turned into.
        done: True once it has completed here.
        created: when it was issued, in nanoseconds of a clock of the recorder's own.
    """

    group: str
    seq: int
    op: str
    sizes: List[List[int]]
    done: bool
    created: int


class IssuedCall(TypedDict):
    """An operation and the lines that issued it, perhaps again and again.

    Attributes:
        frames: the user's, innermost first, and some below; those of libraries between two of them are
            one, whose line is a checksum of all of theirs.
    """

    op: str
    frames: List[FrameEntry]


class Issued(TypedDict):
    """What one group has seen, one after the other.

    Attributes:
        group: id of it.
        first: sequence number of the first of `calls`.
        calls: places in the list of calls.
    """

    group: str
    first: int
    calls: List[int]


class _NotAtFirstOfFlight(TypedDict, total=False):
    """What records did not tell at first."""

    calls: List[IssuedCall]
    issued: List[Issued]


class Flight(_NotAtFirstOfFlight):
    """What the Flight Recorder holds of collectives, and since when it has not changed.

    Attributes:
        entries: the newest of each group, oldest first.
        calls: those that differ from each other; issued: which of them each group has seen.
    """

    since: float
    entries: List[FlightEntry]


class _NotAtFirstOfLoggedCall(TypedDict, total=False):
    """What records did not tell at first."""

    handle: bool


class LoggedCall(_NotAtFirstOfLoggedCall):
    """A call of `torch.distributed` that was made through Python.

    Attributes:
        op: name of the function; group: label of the group.
        number: which collective of the group it is, from 1; sends and receives, of which each rank makes
            as many as it has to, are numbered apart.
        at: monotonic time of it. What is issued later without Python, as DDP's reductions are, has
            these values, which are as old as the difference.
        thread: Python's id of the thread that made it.
        place: index of its frames in `places`.
        values: of each of these frames, name -> `repr` of a plain value.
        handle: whether the user's code called it with `async_op`, and has to wait for the handle.
    """

    op: str
    group: str
    number: int
    at: float
    thread: int
    place: int
    values: List[Dict[str, str]]


class _NotAtFirstOfCallHistory(TypedDict, total=False):
    """What records did not tell at first."""

    whole: bool
    order: List[Tuple[str, int, str]]


class CallHistory(_NotAtFirstOfCallHistory):
    """The calls of `torch.distributed` that a process has made through Python.

    Attributes:
        collectives: label of a group -> how many collectives; p2p: how many sends and receives.
        places: the different stacks of `newest`, the user's frames only, innermost first.
        newest: the newest calls, oldest first; empty while the thread that made the last one moves.
        whole: True where all have been counted: only then ranks can be compared by the numbers.
        order: group, number and operation of the newest collectives, of which `newest` has only some
            where they come fast.
    """

    collectives: Dict[str, int]
    p2p: Dict[str, int]
    places: List[List[FrameEntry]]
    newest: List[LoggedCall]


class Child(TypedDict):
    """What `multiprocessing` knows of a process that it has made.

    Attributes:
        target: full name of the function that it runs.
        index: worker id of a DataLoader worker, process index of `mp.spawn`.
        error_file: where a process of `mp.spawn` leaves its traceback.
    """

    target: str
    index: Optional[int]
    error_file: Optional[str]


class _NotAtFirstOfError(TypedDict, total=False):
    """What records did not tell at first."""

    needed: List[int]
    caused_by: str
    values: Dict[int, Dict[str, str]]


class Error(_NotAtFirstOfError):
    """The exception that ends a process.

    Attributes:
        needed: the ranks that the call of torch's needed which raised it; empty when unknown.
        masked: later ones that hide it, as `Type: message`.
        caused_by: the one that it was raised for, as `Type: message`; empty for none.
        values: of its frames, as the `values` of a thread.
    """

    type: str
    message: str
    frames: List[FrameEntry]
    time: float
    masked: List[str]


class NcclAccount(TypedDict):
    """What NCCL itself tells of its groups.

    Attributes:
        since: monotonic time since which nothing of it has changed.
        groups: torch's own name of a group -> the number of the newest collective that was enqueued in
            it, and of the newest that is completed; of sends and receives, too, where there are some.
        dump: file into which its recorder is dumped on request; empty where it cannot be asked.
    """

    since: float
    groups: Dict[str, Tuple[int, int]]
    dump: str


class _NotAtFirst(TypedDict, total=False):
    """What records did not tell at first."""

    nccl: NcclAccount
    beacon_thread: Optional[int]
    left_values: Dict[int, Dict[str, str]]
    rpc: Optional[Tuple[int, int]]
    exe: str
    call_history: CallHistory
    faults: Dict[str, str]
    cells: Dict[str, Cell]
    read: float
    asked: float


class Record(_NotAtFirst):
    """What is known of one process.

    Attributes:
        nccl: absent where NCCL serves none of its groups, or does not tell.
        beacon_thread: the kernel's id of the thread of the beacon.
        exe: path of the program that it runs.
        call_history: the calls of torch.distributed made through Python; absent before the first.
        cells: file name -> cell of a notebook, of code that is on a stack.
        read: monotonic time at which it was made from outside; a beacon touches its record instead.
        asked: monotonic time at which it was asked for from outside, with those of other processes.
        faults: part of the look -> why that part has failed.
        rpc: its rank, and the number of ranks, once it has come out of `init_rpc`.
        source: `beacon`, or `py-spy` for a record made from outside.
        env: the launch variables of `ENVIRONMENT`, as they are now in the process.
        process: None for a process that `multiprocessing` has not made.
        dist: None before it has joined a process group.
        flight: None until it has issued nothing for a moment.
        torch: version of the loaded torch, empty without one.
        unseen: what that torch keeps from the beacon.
        accelerator: `cuda` or `cpu`.
        workers: pid -> worker id of the DataLoader workers seen so far.
        spawned: pid -> process index of the processes of `mp.spawn` seen so far.
        joining: the stack of the newest call of `init_process_group`.
        left: the stack of the newest call of `sys.exit` in the main thread; left_values: of its frames,
            as the `values` of a thread.
        cut_off: the stack of a call of `os._exit`.
        reaped: pid -> wait status of the children that this process has waited for.
        ended: True in the last record, written at an orderly exit of the interpreter.
    """

    source: Literal["beacon", "py-spy"]
    ppid: int
    started: float
    argv: List[str]
    env: Dict[str, str]
    process: Optional[Child]
    phase: Literal["starting", "importing", "running"]
    threads: List[Thread]
    dist: Optional[Groups]
    flight: Optional[Flight]
    torch: str
    unseen: List[Unseen]
    accelerator: str
    workers: Dict[int, int]
    spawned: Dict[int, int]
    joining: List[FrameEntry]
    left: List[FrameEntry]
    cut_off: List[FrameEntry]
    reaped: Dict[int, int]
    error: Optional[Error]
    ended: bool


Doing = Literal["waits", "child", "works", "device"]
"""What a process does: it waits for other ranks, for a child that loads data, for none of these, or it
may wait for its device."""


class _NotAtFirstOfSample(TypedDict, total=False):
    """What samples did not tell at first."""

    load: float


class Sample(_NotAtFirstOfSample):
    """What a process did at one tick (see `ticks`).

    Attributes:
        tick: its number; due: that at which the process was to be sampled. Where that is an earlier one,
            it could not run at those between.
        within: `loader` while it fetches data, `compiler` while torch compiles, `storage` while it saves
            or loads, else empty.
        call: the system call that blocked its thread; empty while that could run.
        place: index of its user's innermost line in `places`; -1 for none.
        issued: torch's own name of a group -> the number of the newest collective that it has issued.
        ran, wanted: seconds for which its thread has had a processor, and has waited for one, so far.
        used: seconds of processor time that the whole process has used so far.
        collections: how often all its objects have been searched for garbage so far.
        load: threads of the whole machine that run or could run, for each core, in the last minute.
    """

    tick: int
    due: int
    doing: Doing
    within: str
    call: str
    place: int
    issued: Dict[str, int]
    ran: float
    wanted: float
    used: float
    collections: int


class Samples(TypedDict):
    """The newest samples of a process, oldest first, and the lines at which they were taken."""

    samples: List[Sample]
    places: List[FrameEntry]


class Failure(TypedDict):
    """What a beacon writes instead of a record when a look has failed; failed: the exception."""

    failed: str


Written = Union[Record, Failure]
