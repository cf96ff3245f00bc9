"""Every fact that flows through the instrument, as frozen structs; a wait is in `waits`.

Facts flow one way: a beacon record becomes part of a `Snapshot`, a `Snapshot` becomes a `Verdict`, a
`Verdict` becomes a `Report`. Times are seconds since the command was started. Nothing here does I/O.
"""

from __future__ import annotations

import math
import re
from functools import cached_property
from typing import Literal

import msgspec

from .findings import Finding
from .frames import Frame, is_in
from .issued import Issued, IssuedCall
from .network import Interface, Rendezvous, StoreView
from .parting import Parting
from .samples import Sample
from .slow import Alike, Slow
from .waits import ForOutside, JoinsRPC, OnChild, Sizes, Wait

Outcome = Literal["hang", "error", "ok", "running"]
EXIT_CODES: dict[Outcome, int] = {"ok": 0, "error": 1, "hang": 2, "running": 3}
"""Exit codes of the command line by outcome, a contract with scripts."""

State = Literal[
    "starting",
    "importing",
    "rendezvous",
    "running",
    "waiting",
    "stopped",
    "exited",
    "missing",
    "unseen",
]
Stdin = Literal["inherit", "silent"]
"""The instrument's own standard input, or an open pipe that never delivers."""

Cause = Literal[
    "address-in-use",
    "duplicate-rank",
    "out-of-memory",
    "worker-stall",
    "shape-mismatch",
    "device-mismatch",
    "rank-crashed",
    "rank-exited",
    "rendezvous-incomplete",
    "collective-mismatch",
    "file-lock",
    "missing-rank",
    "error",
    "unknown",
    "none",
]
"""In the order in which they are tried: the first that explains the first event wins. `error` takes any
exception, so it comes after those that see what an exception follows from: a rank that left, or one that
never came."""


STILL = 1.0
"""Seconds without any change after which a blocked process counts as blocked."""

UNTOLD = 1e9
"""Seconds that what a dump shows has stood as it is: longer than anybody's patience, and no proof."""


_PLACE_IN_CPP = re.compile(r"\[(?:enforce fail at )?/\S+\.(?:cc|cpp|h|hpp):\d+\] ?")
"""`[/__w/pytorch/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:553] `."""

CUT_OFF = "an exception whose message is cut off"
"""The type of one of which a log has the frames alone."""

PortRole = Literal["store", "gloo", "other"]


class Port(msgspec.Struct, frozen=True):
    """One listening TCP socket.

    Attributes:
        role: `store` (the TCPStore of the job), `gloo` (a process group's listener) or `other`.
    """

    address: str
    port: int
    role: PortRole


class Collective(msgspec.Struct, frozen=True):
    """One collective a rank has issued, from its Flight Recorder or from the log of its calls.

    Attributes:
        sizes: shapes of the input tensors; outputs: of what they are turned into.
        dtype: of the input tensors, as torch names it; empty when unknown.
        done: True when it has completed on this rank.
        turn: its place among what the rank has issued in all groups; None when unknown.
        handle: True while the rank has not waited for its handle: it holds nothing of another group.
        logged: True where the call is known alone, and nothing tells what has become of it.
    """

    group: str
    seq: int
    op: str
    sizes: Sizes = ()
    dtype: str = ""
    outputs: Sizes = ()
    done: bool = False
    turn: int | None = None
    handle: bool = False
    logged: bool = False


class Group(msgspec.Struct, frozen=True):
    """A process group as one of its members knows it.

    Attributes:
        id: torch's own name for it, the same on all members; name: as it is called here.
        members: global ranks.
        guessed: True where nothing tells the members: those that have used it are taken for all.
    """

    id: str
    name: str
    members: tuple[int, ...]
    guessed: bool = False


class ErrorView(msgspec.Struct, frozen=True):
    """An exception that ended a process.

    Attributes:
        type: class name, `torch.distributed.DistNetworkError` shortened to `DistNetworkError`.
        message: its text.
        stack: innermost frame first.
        time: seconds since the start of the command.
        masked: exceptions raised later on the way out, as `Type: message`; they hide this one.
        needed: the ranks that the failed call of torch's needed; empty when unknown.
        caused_by: the exception that it was raised for, as `Type: message`; empty for none.
    """

    type: str
    message: str
    stack: tuple[Frame, ...] = ()
    time: float = 0.0
    masked: tuple[str, ...] = ()
    needed: tuple[int, ...] = ()
    caused_by: str = ""

    @property
    def text(self) -> str:
        """`Type: first line of the message`, without the places in C++ that stand before it."""
        lines = (_PLACE_IN_CPP.sub("", line).strip() for line in self.message.splitlines())
        first = next((line for line in lines if any(map(str.isalnum, line))), "")
        return f"{self.type}: {first}" if first else self.type

    @property
    def in_loader(self) -> bool:
        """True when it was raised while the process waited for a DataLoader worker."""
        return is_in(self.stack, "_try_get_data")  # torch/utils/data/dataloader.py, 2.11 to 2.15


class ProcessView(msgspec.Struct, frozen=True, dict=True):
    """What is known of one process of the job: a rank, a child of a rank, or a launcher.

    Attributes:
        pid: not above 0 where it is not known.
        kind: `rank`, `dataloader-worker`, `launcher`, `helper` (a bookkeeping process of
            `multiprocessing`) or `process` (any other child of a rank).
        stack: innermost frame first, of the thread that waits, else of the main thread.
        through: what threads of libraries wait for outside of the process: what comes may end its wait.
        issued: what each of its groups has seen, call after call.
        read_at: seconds at which its place was read; an account of what had happened holds for good.
        calls: how many calls of torch.distributed it has made through Python, in all groups.
        samples: what it did at the newest ticks, oldest first.
        still: seconds since the stack, the waits and the collectives last changed; `UNTOLD` for what is
            known from a dump.
        idle: seconds since the process last used a noticeable amount of CPU.
        woken: seconds since the thread that it is judged by has last run, or another one that could end
            what it waits for; what the place polls by itself is left out. Infinite where unknown.
        ends: seconds at which what it waits in ends by itself, where that is known.
        asleep: the system call it is in, when that is a sleep: `nanosleep`.
        frozen: True while a control group keeps it from running.
        starved: True while its beacon could run, and gets no processor.
        traced: True while a debugger stops it, which may let it go on at any time.
        gil_held: True when the beacon's own thread cannot run although the process is alive.
        stopped_for_memory: True while the kernel stops it, because the job is at its limit of memory.
        beacon: True when a beacon reports from inside the process.
        recorded: True when its Flight Recorder has been read.
        ended: seconds at which it was seen to have ended, else None.
        signal: number of the signal that ended it.
        communicates: each thread that is in a collective, a send or a receive, and the group of that.
        handling: the exception that it is handling while it stands where it is.
        interpreter_finished: True once that has happened without an exception; a launcher's signal may
            still hit the process after that.
        acting_thread: name of another thread than the one that waits, which runs user code and may
            still act.
        messages: the sends and receives that it has made lately, each operation and line once.
        ended_threads: name and last line of each of its threads that was in the user's code and has
            ended, where none but the main one is left.
        groups: those it is a member of, with one that is being created.
        groups_made: how many groups it has created, with one that is being created; None when unknown.
        new_groups: the calls of `new_group` that have created them; None where not all are known.
        ended_in_call: True when it has ended and was last in a collective, a send or a receive.
        compiles: what its children compile for it, in words.
        wraps: of a launcher, the rank whose number it carries and whose process it has started.
        rendezvous: of a launcher, where it meets those of other nodes.
        unanswered: the other ends, as `address:port`, that have long not answered what it has sent.
        memory: resident bytes, private: those that are neither of a file nor shared; cpu: percent of one
            core over the last sample.
    """

    pid: int
    kind: str
    parent: int | None = None
    command: tuple[str, ...] = ()
    state: State = "starting"
    stack: tuple[Frame, ...] = ()
    where: Frame | None = None
    waits: tuple[Wait, ...] = ()
    through: tuple[Wait, ...] = ()
    collectives: tuple[Collective, ...] = ()
    issued: tuple[Issued, ...] = ()
    calls: int = 0
    samples: tuple[Sample, ...] = ()
    ports: tuple[Port, ...] = ()
    read_at: float = math.inf
    still: float = 0.0
    idle: float = 0.0
    woken: float = math.inf
    ends: float | None = None
    asleep: str | None = None
    frozen: bool = False
    starved: bool = False
    traced: bool = False
    gil_held: bool = False
    stopped_for_memory: bool = False
    beacon: bool = False
    recorded: bool = False
    started: float = 0.0
    ended: float | None = None
    exit_code: int | None = None
    signal: int | None = None
    error: ErrorView | None = None
    communicates: tuple[tuple[str, str], ...] = ()
    handling: ErrorView | None = None
    interpreter_finished: bool = False
    acting_thread: str | None = None
    messages: tuple[IssuedCall, ...] = ()
    ended_threads: tuple[tuple[str, Frame], ...] = ()
    groups: tuple[Group, ...] = ()
    groups_made: int | None = None
    new_groups: Issued | None = None
    ended_in_call: bool = False
    compiles: str | None = None
    wraps: int | None = None
    rendezvous: Rendezvous | None = None
    unanswered: tuple[str, ...] = ()
    memory: int = 0
    private: int | None = None
    cpu: float = 0.0

    @property
    def alive(self) -> bool:
        """True while the process has not ended."""
        return self.ended is None

    @property
    def end_unseen(self) -> bool:
        """True once it has ended and nothing tells how."""
        facts = (self.exit_code, self.signal, self.error)
        return not self.alive and all(fact is None for fact in facts) and not self.interpreter_finished

    @property
    def unmoved(self) -> float:
        """Seconds since the thread that it is judged by has moved, as far as anything shows it."""
        return min(self.still, self.woken)

    @property
    def users_stack(self) -> tuple[Frame, ...]:
        """The frames of the user's own code, the outermost first."""
        return tuple(frame for frame in reversed(self.stack) if frame.user)

    @cached_property
    def blocking(self) -> tuple[Wait, ...]:
        """The waits in which a thread of the process is blocked; others are only pending."""
        return tuple(wait for wait in self.waits if wait.blocking)

    @property
    def blocked(self) -> bool:
        """True when it has not moved for a while, since it waits or something stops it."""
        if self.alive and self.stopped_for_memory:
            return self.idle >= STILL
        if not self.alive or self.unmoved < STILL or self.traced or self.state == "stopped":
            return False
        return bool(self.blocking) and not self.gil_held

    @property
    def may_act(self) -> bool:
        """True while it runs, sleeps, or waits for a device or for a child."""
        runs = self.alive and (self.state != "stopped" or self.traced)
        return runs and all(isinstance(wait, ForOutside) for wait in self.blocking)

    @property
    def waits_for_child(self) -> bool:
        """True while it waits for a process that it has started."""
        return any(isinstance(wait, OnChild) for wait in self.waits)

    @property
    def awaits_nodes(self) -> bool:
        """True for a launcher in its rendezvous, where it waits for those of other nodes."""
        # torch/distributed/elastic/rendezvous/api.py, 2.11 to 2.15; the static rendezvous returns at
        # once, and the launcher waits for the others in agent/server/api.py
        return any(is_in(self.stack, name) for name in ("next_rendezvous", "_assign_worker_ranks"))

    @property
    def waits_for_task(self) -> bool:
        """True for a DataLoader worker that waits for its next task, as a healthy one does."""
        # torch/utils/data/_utils/worker.py and fetch.py, 2.11 to 2.15
        return is_in(self.stack, "_worker_loop") and not is_in(self.stack, "fetch")

    @property
    def visible(self) -> bool:
        """True when something shows what it does: a beacon, its state, its stack or its recorder."""
        return self.beacon or self.state == "stopped" or self.recorded or bool(self.stack or self.waits)


class ChildView(msgspec.Struct, frozen=True):
    """A process that a rank started and that is not a rank itself: a DataLoader worker, for example.

    Attributes:
        joined_as_rank: the rank it has taken in the job's process group, which it should not have.
        joined_at: the user's line at which it, or else a rank before it, joined.
    """

    process: ProcessView
    worker_id: int | None = None
    joined_as_rank: int | None = None
    joined_at: Frame | None = None


class RankView(msgspec.Struct, frozen=True):
    """One rank of the job.

    Attributes:
        rank: global rank; None until it is known.
        process: None for a rank that was never started here.
        joined: True once its process group is initialised; rpc: the same of `torch.distributed.rpc`.
        master: `address:port` at which it looks for the store.
        host: name of its machine; empty when unknown.
        interface: the setting that names the network interface it uses: `GLOO_SOCKET_IFNAME=eth0`;
            empty without one.
    """

    rank: int | None
    local_rank: int | None = None
    node: int = 0
    state: State = "missing"
    process: ProcessView | None = None
    children: tuple[ChildView, ...] = ()
    joined: bool = False
    rpc: bool = False
    master: str | None = None
    host: str = ""
    interface: str = ""

    @property
    def reached_rpc(self) -> bool:
        """True when it is in `init_rpc`, or has come out of it."""
        waits = self.process.waits if self.process is not None and self.process.alive else ()
        return self.rpc or any(isinstance(wait, JoinsRPC) for wait in waits)


class Attempt(msgspec.Struct, frozen=True):
    """An attempt before the one that runs: its launcher has started all ranks again since.

    Attributes:
        number: from 0.
        ranks: those that have ended, as they were then.
    """

    number: int
    ranks: tuple[RankView, ...]


class Blocker(msgspec.Struct, frozen=True):
    """A process outside the job that stands in its way."""

    pid: int
    what: str
    command: str


class Job(msgspec.Struct, frozen=True):
    """The job as a whole.

    Attributes:
        command, launcher: empty when unknown.
        master: `address:port` of the store, when known.
        single_node: True when every rank of the world size must be on this machine.
        restarts: how often the launcher may still start all ranks again.
        hardware: `cpu` or `cuda`; empty when unknown.
        exit_code: of the command itself; None while it runs or when a signal ended it.
        script_error: why Python could not run the script at all, in its own words; script_line: the
            line it could not parse.
        test: the node id of the test of pytest that runs the job, when one does.
    """

    command: tuple[str, ...]
    launcher: str = "python"
    world_size: int | None = None
    nodes_seen: int = 1
    attempt: int = 0
    restarts: int = 0
    exit_code: int | None = None
    signal: int | None = None
    ended: float | None = None
    hardware: str = "cpu"
    backends: tuple[str, ...] = ()
    master: str | None = None
    single_node: bool = True
    script_error: str | None = None
    script_line: Frame | None = None
    test: str | None = None


class LimitView(msgspec.Struct, frozen=True):
    """The limit on the memory of the whole job, and what has come of it.

    Attributes:
        megabytes: that all processes may have together.
        enforcer: who enforces it, in words.
        kills: how many processes were killed.
        full: True while processes that want more are stopped, because none is killed.
        not_seen: what the enforcer may miss.
    """

    megabytes: int
    enforcer: str
    kills: int = 0
    full: bool = False
    not_seen: str = ""


EXTENSION = "the `lock` file in the folder of a torch extension that is built"
"""What is said of a lock whose path a traceback does not tell."""


class LockWait(msgspec.Struct, frozen=True):
    """A process waits for a lock, as a log tells.

    Attributes:
        path: of the lock, or what it is in words; interrupted: True where somebody has ended the wait.
    """

    path: str
    interrupted: bool = False


class Snapshot(msgspec.Struct, frozen=True):
    """Everything known of a job at one moment, processes that have ended included.

    Attributes:
        time: seconds since the command was started.
        ranks: one entry per rank, in order; entries of unknown rank last.
        launchers: processes that are neither a rank nor below one.
        earlier: attempts before this one, the oldest first.
        strangers: a port the job asked for, and the process outside the job that owns it.
        memory_kills: processes killed for memory by the kernel in the job's cgroup, or by a monitor.
        warned: what libraries have warned of in a log, with who says so.
        limit: the limit on the job's memory, where the instrument has set one.
        not_seen: what could not be seen, one sentence each.
        stdin: the standard input of the command.
        stores: what looks at the stores of the job and of its launchers have shown.
        interfaces: the addresses of the machines.
        asked: whether a server or a store of the job has been asked, and may yet answer.
        timed: False where its seconds mean nothing, as in what was read from files.
        output: of ranks, the newest lines that each has printed.
        masked: failures that follow from something earlier, as a log tells, in words.
        absent: ranks for which others wait, as a log tells.
        doubled: ranks as which two processes have started, as a log tells.
        locks: ranks, None for one that is not told, and the locks for which they wait, as a log tells.
        ended_by: who has ended the job from outside, as a log tells, in words.
        telling: of texts that tell of no rank, the lines that say most: `FILE:NUMBER: LINE`; alarming:
            whether these tell of a failure.
    """

    time: float
    job: Job
    ranks: tuple[RankView, ...] = ()
    launchers: tuple[ProcessView, ...] = ()
    earlier: tuple[Attempt, ...] = ()
    strangers: tuple[tuple[int, Blocker], ...] = ()
    memory_kills: int = 0
    warned: tuple[str, ...] = ()
    limit: LimitView | None = None
    not_seen: tuple[str, ...] = ()
    stdin: Stdin = "inherit"
    stores: tuple[StoreView, ...] = ()
    interfaces: tuple[Interface, ...] = ()
    asked: bool = False
    timed: bool = True
    output: tuple[tuple[int, tuple[str, ...]], ...] = ()
    masked: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()
    locks: tuple[tuple[int | None, LockWait], ...] = ()
    ended_by: str = ""
    telling: tuple[str, ...] = ()
    alarming: bool = False


class Handled(msgspec.Struct, frozen=True):
    """An exception that some ranks are handling while others wait for them: the first event of all.

    Attributes:
        ranks: those that are; error: it; where: the user's line that it came from.
    """

    ranks: tuple[int, ...]
    error: ErrorView
    where: Frame


class Printed(msgspec.Struct, frozen=True):
    """A line that only some ranks have printed.

    Attributes:
        ranks: those that have; text: the line of the first of them.
    """

    ranks: tuple[int, ...]
    text: str


class Verdict(msgspec.Struct, frozen=True):
    """What `diagnose` makes of a history of snapshots.

    A cause answers with a verdict, too; `diagnose` then fills in what is the same for every cause:
    `proved`, `masked`, `since`, and the outcome `error` where a hang has made something fail.

    What its words mean is in `terms.TERMS`.

    Attributes:
        detail: the cause in this job's own terms, one clause.
        culprits: the odd ones out; where: a line of theirs, or of a child of theirs. What decided which
            way a rank went is `parting`.
        summary: one sentence that a tired person understands.
        masked: as `Type: message (rank 1)`.
        since: seconds at which the stall began: since then no waiting rank has moved.
        suspicion: the sentence that a live view shows while nothing is proved.
        finding: the same in typed fields, of which the fixes are made.
        handled: the exception that some ranks are handling while others wait for them.
        parting: the statement at which ranks went different ways, where it can be told.
        printed: what only some ranks have printed since the last line that all printed alike.
        slow: of a job that runs or has ended, who was waited for; alike: else, the line at which all of
            them spend their time.
    """

    outcome: Outcome
    cause: Cause
    proved: bool = True
    detail: str = ""
    culprits: tuple[int, ...] = ()
    blockers: tuple[Blocker, ...] = ()
    where: Frame | None = None
    summary: str = ""
    masked: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    since: float | None = None
    suspicion: str | None = None
    finding: Finding | None = None
    handled: Handled | None = None
    parting: Parting | None = None
    printed: tuple[Printed, ...] = ()
    slow: Slow | None = None
    alike: Alike | None = None


class Fitting(msgspec.Struct, frozen=True):
    """A fix that fits a case.

    Attributes:
        number: from 1, in the order of the cause's page.
        advice: the fix in the user's own lines; text: as the page says it; both in Markdown.
    """

    number: int
    advice: str
    text: str


class Report(msgspec.Struct, frozen=True):
    """One finished (or stopped) run: its verdict, its last snapshot and the text of its cause.

    Attributes:
        explanation, fix, confirm, references: from the page of the cause.
        fitting: of the fixes, those that fit.
        first_rank, stall, verdict_at: seconds at which the first rank was seen, the stall began and the
            verdict was reached.
    """

    verdict: Verdict
    snapshot: Snapshot
    explanation: str = ""
    fix: str = ""
    confirm: str = ""
    fitting: tuple[Fitting, ...] = ()
    references: tuple[str, ...] = ()
    interrupted: bool = False
    first_rank: float | None = None
    stall: float | None = None
    verdict_at: float | None = None

    @property
    def failed(self) -> bool:
        """True for a run that hung or failed, unless somebody has ended it."""
        return self.verdict.outcome in ("hang", "error") and not self.interrupted
