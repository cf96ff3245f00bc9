"""Builders that make histories of snapshots readable in a table. Nothing here starts a process.

A place is written as it is spoken: `train.py:41 validate`. Ranks stand still for five seconds unless
told otherwise, so that what they wait in counts as blocked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from helpers.model.facts import (
    Blocker,
    ChildView,
    Collective,
    ErrorView,
    Job,
    LimitView,
    Port,
    ProcessView,
    RankView,
    Snapshot,
    Verdict,
)
from helpers.model.frames import Frame
from helpers.model.waits import (
    ANY_CHILD,
    DATA_LOADER,
    AtRendezvous,
    InCollective,
    InP2P,
    InStore,
    OnChild,
    OnInput,
    OnLock,
    Wait,
)

W = TypeVar("W", bound=Wait)

NOW = 20.0
"""Seconds at which the newest snapshot of a history is taken."""

STEP = "train.py:10 step"

WORKER_LOOP = Frame("/opt/lib/torch/utils/data/_utils/worker.py", 300, "_worker_loop", user=False)
FETCH = Frame("/opt/lib/torch/utils/data/_utils/fetch.py", 54, "fetch", user=False)
SPAWN = Frame("/usr/lib/python3.11/multiprocessing/spawn.py", 131, "_main", user=False)
LIBRARY = Frame("/opt/lib/torch/nn/modules/module.py", 1700, "forward", user=False)


def frame(place: str | Frame | None) -> Frame | None:
    """`train.py:41 validate` as a frame of the user's."""
    if place is None or isinstance(place, Frame):
        return place
    spot, _, function = place.partition(" ")
    file, _, line = spot.rpartition(":")
    return Frame(file, int(line), function or "<module>")


def wait(kind: type[W], op: str, **facts: Any) -> W:
    """Any wait; `where` may be written as a place."""
    facts["where"] = frame(facts.get("where", STEP))
    return kind(op=op, **facts)


def collective(op: str, seq: int | None = 1, **facts: Any) -> InCollective:
    """A collective that the rank stands in."""
    return wait(InCollective, op, seq=seq, **{"group": "default", **facts})


def recv(source: int | None) -> Wait:
    """A receive from one rank, or from any."""
    return wait(InP2P, "recv", group="default", peers=() if source is None else (source,))


def irecv(source: int | None = None) -> Wait:
    """The wait for the handle of a receive, which seldom says from whom."""
    return wait(InP2P, "irecv", peers=() if source is None else (source,))


def send(target: int) -> Wait:
    """A send that its receiver has not taken."""
    return wait(InP2P, "send", group="default", peers=(target,))


def joining() -> Wait:
    """`init_process_group`."""
    return wait(AtRendezvous, "init_process_group")


def key(name: str) -> Wait:
    """`store.get` of a key."""
    return wait(InStore, "get", key=name)


def lock(path: str, holder: int | Literal["no process", "unknown"]) -> Wait:
    """A file lock held by process `holder`."""
    return wait(OnLock, "lock file", path=path, holder=holder)


def loading() -> Wait:
    """The next batch of a DataLoader with workers."""
    return wait(OnChild, DATA_LOADER)


def reading() -> Wait:
    """`input()`."""
    return wait(OnInput, "read")


def issued(*ops: str, group: str = "default", start: int = 1, done: int = 99) -> dict[str, Any]:
    """The Flight Recorder's tail: `all_reduce` or `all_reduce[4x2]`, numbered from `start`."""
    entries = []
    for seq, text in enumerate(ops, start):
        op, _, size = text.rstrip("]").partition("[")
        sizes = (tuple(int(n) for n in size.split("x")),) if size else ()
        entries.append(Collective(group, seq, op, sizes, done=seq <= done))
    return {"collectives": tuple(entries)}


def in_collective(
    number: int, *ops: str, start: int = 1, members: tuple[int, ...] = (), **facts: Any
) -> RankView:
    """A rank that stands in the last of `ops`, having completed those before."""
    last = start + len(ops) - 1
    tail = issued(*ops, start=start, done=last - 1)
    newest: Collective = tail["collectives"][-1]
    place = facts.pop("at", STEP)
    standing = collective(newest.op, newest.seq, sizes=newest.sizes, members=members, where=place)
    return rank(number, standing, at=place, **tail, **facts)


def rank(
    number: int | None,
    *waits: Wait,
    at: str | Frame | None = STEP,
    children: Sequence[ChildView] = (),
    state: str | None = None,
    joined: bool | None = None,
    rpc: bool = False,
    **facts: Any,
) -> RankView:
    """A live rank that stands still in `waits`, which stand at its own place unless they say else."""
    waits = tuple(replace(w, where=frame(at)) if w.where == frame(STEP) else w for w in waits)
    view = process(1000 + (99 if number is None else number), "rank", *waits, at=at, **facts)
    rendezvous = any(isinstance(w, AtRendezvous) for w in waits)
    if state is not None:
        view = replace(view, state=state)
    return RankView(
        number,
        local_rank=number,
        state=view.state,
        process=view,
        children=tuple(children),
        joined=not rendezvous if joined is None else joined,
        rpc=rpc,
        master=facts.get("master"),
    )


def process(pid: int, kind: str, *waits: Wait, at: str | Frame | None = STEP, **facts: Any) -> Any:
    """A live process that stands still in `waits`."""
    facts.pop("master", None)
    where = frame(at)
    state = "waiting" if any(w.blocking for w in waits) else "running"
    if any(isinstance(w, AtRendezvous) for w in waits):
        state = "rendezvous"
    usual: dict[str, Any] = {
        "state": state,
        "where": where,
        "stack": (where,) if where else (),
        "still": 5.0,
        "idle": 5.0,
        "beacon": True,
        "parent": 900,
    }
    return ProcessView(pid, kind, waits=waits, **{**usual, **facts})


def working(number: int, **facts: Any) -> RankView:
    """A healthy rank: it moves and uses CPU."""
    return rank(number, **{"still": 0.0, "idle": 0.0, "cpu": 99.0, **facts})


def sleeping(number: int, at: str = "prep.py:12 wait_a_bit", **facts: Any) -> RankView:
    """A rank in `time.sleep`."""
    return rank(number, at=at, asleep="nanosleep", **facts)


def stopped(number: int, at: str = STEP) -> RankView:
    """A rank that a signal has stopped."""
    return rank(number, at=at, state="stopped")


def frozen(number: int, at: str = STEP) -> RankView:
    """A rank that the kernel stops, since the job is at its limit of memory."""
    return rank(number, at=at, state="stopped", stopped_for_memory=True)


def absent(number: int, state: str = "missing") -> RankView:
    """A rank that was never started here, or that runs on another node."""
    return RankView(number, state=state)  # type: ignore[arg-type]


def ended(
    number: int,
    code: int | None = 0,
    *,
    signal: int | None = None,
    error: ErrorView | None = None,
    time: float = 10.0,
    at: str | None = STEP,
    children: Sequence[ChildView] = (),
    joined: bool = True,
    **facts: Any,
) -> RankView:
    """A rank whose process has ended."""
    view = process(
        1000 + number,
        "rank",
        at=at,
        state="exited",
        ended=time,
        exit_code=None if signal else (1 if error and code == 0 else code),
        signal=signal,
        error=error,
        **facts,
    )
    return RankView(number, number, 0, "exited", view, tuple(children), joined)


def raised(
    number: int, kind: str, message: str, at: str = STEP, *, time: float = 10.0, **facts: Any
) -> RankView:
    """A rank that an exception has ended."""
    return ended(number, error=error(kind, message, at, time=time), time=time + 0.2, **facts)


def error(
    kind: str,
    message: str,
    *places: str | Frame,
    time: float = 10.0,
    masked: tuple[str, ...] = (),
    caused_by: str = "",
) -> ErrorView:
    """An exception; places innermost first."""
    stack = tuple(f for f in map(frame, places) if f is not None)
    return ErrorView(kind, message, stack, time, masked, caused_by=caused_by)


def worker(
    of: int,
    number: int = 0,
    *waits: Wait,
    at: str | Frame | None = "data.py:7 __getitem__",
    idle_worker: bool = False,
    joined_as: int | None = None,
    joined_at: str | None = None,
    **facts: Any,
) -> ChildView:
    """A DataLoader worker that fetches a batch, or waits for its next task."""
    where = frame(at)
    stack = (WORKER_LOOP,) if idle_worker else (where, FETCH, WORKER_LOOP)
    view = process(
        2000 + 10 * of + number,
        "dataloader-worker",
        *waits,
        at=None if idle_worker else where,
        parent=1000 + of,
        **{"stack": tuple(f for f in stack if f), **facts},
    )
    return ChildView(view, number, joined_as, frame(joined_at))


def child(of: int, *waits: Wait, kind: str = "process", **facts: Any) -> ChildView:
    """Any other process that a rank has started."""
    joined_as = facts.pop("joined_as", None)
    view = process(3000 + of, kind, *waits, parent=1000 + of, **facts)
    return ChildView(view, joined_as_rank=joined_as)


def resting(view: RankView, seconds: float = 40.0) -> RankView:
    """The same rank, which has neither moved nor used CPU for so many seconds."""
    assert view.process is not None
    return replace(view, process=replace(view.process, still=seconds, idle=seconds))


def gone(view: ChildView, code: int | None = 1, **facts: Any) -> ChildView:
    """A child that has ended."""
    code = None if facts.get("signal") else code
    end: dict[str, Any] = {"state": "exited", "ended": 9.0, "exit_code": code, **facts}
    return replace(view, process=replace(view.process, waits=(), **end))


def launcher(*waits: Wait, **facts: Any) -> ProcessView:
    """The process that has started the ranks and waits for them."""
    waits = waits or (wait(OnChild, ANY_CHILD, where=None),)
    view: ProcessView = process(900, "launcher", *waits, at=None, **facts)
    return view


def on_nodes(views: Iterable[RankView], each: int) -> list[RankView]:
    """The ranks on machines with so many ranks each: `n0`, `n1`, ..."""
    return [replace(view, node=n // each, host=f"n{n // each}") for n, view in enumerate(views)]


def snapshot(
    *ranks: RankView,
    world: int | None = None,
    time: float = NOW,
    runs: bool = True,
    code: int | None = None,
    launchers: Sequence[ProcessView] = (),
    started_by: str = "torchrun",
    strangers: Sequence[tuple[int, Blocker]] = (),
    stdin: str = "silent",
    memory_kills: int = 0,
    limit: LimitView | None = None,
    **job: Any,
) -> Snapshot:
    """One moment of a job; `code` is the exit code of its command, which then has ended."""
    over = code is not None or not runs
    return Snapshot(
        time=time,
        job=Job(
            command=("torchrun", "train.py"),
            launcher=started_by,
            world_size=len(ranks) if world is None else world,
            exit_code=code,
            ended=time - 1 if over else None,
            **job,
        ),
        ranks=ranks,
        launchers=tuple(launchers),
        strangers=tuple(strangers),
        memory_kills=memory_kills,
        limit=limit,
        stdin=stdin,
    )


def earlier(view: ProcessView, seconds: float) -> ProcessView:
    """What was seen of a process some seconds ago, if nothing has changed since."""
    if not view.alive:
        return view
    return replace(view, still=max(0.0, view.still - seconds), idle=max(0.0, view.idle - seconds))


def steady(newest: Snapshot, seconds: float = 1.5, every: float = 0.25) -> tuple[Snapshot, ...]:
    """A history in which nothing changes but the time."""
    found = []
    for age in (n * every for n in range(round(seconds / every), -1, -1)):
        ranks = tuple(
            replace(
                view,
                process=earlier(view.process, age) if view.process else None,
                children=tuple(replace(c, process=earlier(c.process, age)) for c in view.children),
            )
            for view in newest.ranks
        )
        launchers = tuple(earlier(view, age) for view in newest.launchers)
        found.append(replace(newest, time=newest.time - age, ranks=ranks, launchers=launchers))
    return tuple(found)


def run(*moments: Sequence[RankView], every: float = 0.25, begin: float = 1.0) -> list[Snapshot]:
    """One snapshot for each moment, `every` seconds apart."""
    return [snapshot(*ranks, time=begin + n * every) for n, ranks in enumerate(moments)]


def training(ranks: int, steps: int, late: int | None = None) -> list[Snapshot]:
    """Ranks whose state differs at each look; rank `late` sleeps through the last third."""
    moments = []
    at_work = [working(number) for number in range(ranks)]
    for step in range(steps):
        stands = late is not None and step >= steps * 2 // 3
        still = (step - steps * 2 // 3) * 0.25
        moment = []
        for number in range(ranks):
            if stands and number == late:
                moment.append(sleeping(number, still=still))
            elif stands:
                moment.append(in_collective(number, "all_reduce", start=9000, still=still))
            elif (step * 7 + number * 3 + step * number) % 5 < 3:
                moment.append(at_work[number])
            else:
                moment.append(in_collective(number, "all_reduce", start=step + 1, still=0.0))
        moments.append(moment)
    return run(*moments)


def diverging(ranks: int, odd: int, steps: int = 32) -> list[Snapshot]:
    """Ranks that train, until rank `odd` calls a barrier where all others call all_reduce."""
    before = training(ranks, steps)
    members = tuple(range(ranks))
    stands = [
        [
            in_collective(
                number,
                "barrier" if number == odd else "all_reduce",
                start=9000,
                members=members,
                at="train.py:41 validate" if number == odd else "train.py:33 step",
                still=0.25 * look,
                memory=1_200_000_000 + 10_000_000 * number,
            )
            for number in members
        ]
        for look in range(16)
    ]
    return before + run(*stands, begin=before[-1].time + 0.25)


def store(port: int) -> Port:
    """The job's own store."""
    return Port("127.0.0.1", port, "store")


@dataclass(frozen=True)
class Case:
    """One row: what was seen, and what must be said of it.

    Attributes:
        where: the place of the first cause, as `train.py:10 step`; "" when it does not matter here.
        proved: of any outcome but `running`, which never is.
        says: fragments of the summary; masks: fragments of the masked errors, one each.
    """

    name: str
    newest: Snapshot
    outcome: str
    cause: str
    culprits: tuple[int, ...] = ()
    where: str | None = ""
    proved: bool = True
    says: tuple[str, ...] = ()
    masks: tuple[str, ...] | None = None
    detail: str = ""
    patience: float = 30.0
    final: bool = False

    def check(self, verdict: Verdict) -> None:
        """Compare a verdict with the row."""
        assert (verdict.outcome, verdict.cause) == (self.outcome, self.cause), verdict.summary
        assert verdict.culprits == self.culprits, verdict.summary
        assert verdict.proved is (self.proved and self.outcome != "running")
        if self.where != "":
            assert verdict.where == frame(self.where)
        for part in self.says:
            assert part in verdict.summary
        assert self.detail in verdict.detail
        if self.masks is not None:
            assert len(verdict.masked) == len(self.masks), verdict.masked
            for part in self.masks:
                assert any(part in text for text in verdict.masked), verdict.masked
