"""What holds for every history, found out by making many up."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from histories import (
    absent,
    collective,
    ended,
    in_collective,
    irecv,
    issued,
    joining,
    key,
    loading,
    lock,
    raised,
    rank,
    reading,
    recv,
    resting,
    sleeping,
    snapshot,
    steady,
    stopped,
    worker,
    working,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.graph import Graph
from helpers.model.facts import (
    STILL,
    Blocker,
    ChildView,
    Collective,
    ErrorView,
    Job,
    Port,
    ProcessView,
    RankView,
    Snapshot,
)
from helpers.model.frames import Frame
from helpers.model.network import StoreView
from helpers.model.waits import (
    AtRendezvous,
    Communication,
    InCollective,
    InP2P,
    InStore,
    OnChild,
    OnInput,
    OnIO,
    OnLock,
    Wait,
)

QUICK = settings(max_examples=120, deadline=None, derandomize=True, database=None)
WIDE = settings(QUICK, max_examples=100)

# Part one: jobs put together from ranks that may well occur.

SIZES = "appears not to match sizes of the same param"
WORLD = 4

ALIVE: dict[str, Callable[[int], RankView]] = {
    "works": working,
    "imports": lambda n: working(n, state="importing", joined=False),
    "sleeps": sleeping,
    "is stopped": stopped,
    "asks": lambda n: rank(n, reading()),
    "needs a key": lambda n: rank(n, key("ready")),
    "joins": lambda n: rank(n, joining()),
    "receives from the next": lambda n: rank(n, recv((n + 1) % WORLD)),
    "receives from the one after": lambda n: rank(n, recv((n + 2) % WORLD)),
    "reduces 4": lambda n: in_collective(n, "all_reduce[4]"),
    "reduces 8": lambda n: in_collective(n, "all_reduce[8]"),
    "is at a barrier": lambda n: in_collective(n, "barrier"),
    "broadcasts from itself": lambda n: broadcasting(n, n),
    "broadcasts from the next": lambda n: broadcasting(n, (n + 1) % WORLD),
    "is in the group of two": lambda n: in_pair(n, "all_reduce"),
    "is at the barrier of the group of two": lambda n: in_pair(n, "barrier"),
    "waits for a handle": lambda n: rank(n, irecv()),
    "receives in a thread": lambda n: rank(n, reading(), threaded(recv((n + 1) % WORLD))),
    "is at the barrier after": lambda n: in_collective(n, "all_reduce[4]", "barrier"),
    "needs the next one's lock": lambda n: rank(n, lock("shared", 1000 + (n + 1) % WORLD)),
    "needs an old lock": lambda n: rank(n, lock("left", "no process")),
    "has a stopped worker": lambda n: rank(n, loading(), children=[worker(n, state="stopped")]),
    "was never started": absent,
}


def broadcasting(number: int, root: int) -> RankView:
    """A rank in a broadcast from `root`."""
    return rank(number, collective("broadcast", root=root), **issued("broadcast", done=0))


def in_pair(number: int, op: str) -> RankView:
    """A rank in a collective of a group that it has with its neighbour: 0 with 1, 2 with 3."""
    pair = (number - number % 2, number - number % 2 + 1)
    wait = collective(op, group=f"pair {pair[0]}", members=pair)
    return rank(number, wait, **issued(op, group=f"pair {pair[0]}", done=0))


def threaded(wait: Wait) -> Wait:
    """The same wait, of a thread beside the main one."""
    return replace(wait, thread="listener")


FAILED: dict[str, Callable[[int], RankView]] = {
    "raises": lambda n: raised(n, "ValueError", "bad", f"f.py:{n + 1} g", time=9 + n / 10),
    "is out of memory": lambda n: raised(n, "MemoryError", "", time=9 + n / 10),
    "finds its port taken": lambda n: raised(n, "OSError", "port: 9 EADDRINUSE", time=9 + n / 10),
    "loses its peer": lambda n: raised(n, "RuntimeError", "Broken pipe", time=9 + n / 10),
    "differs in size": lambda n: raised(n, "RuntimeError", SIZES, time=9.0),
    "crashes": lambda n: ended(n, signal=11, time=9 + n / 10),
    "is terminated": lambda n: ended(n, signal=15, time=9 + n / 10),
    "exits with 3": lambda n: ended(n, 3, time=9 + n / 10),
    "is done": lambda n: ended(n, 0, time=9 + n / 10),
}
EACH = {**ALIVE, **FAILED}

names = st.lists(st.sampled_from(sorted(EACH)), min_size=2, max_size=WORLD)
failing = st.tuples(st.sampled_from(sorted(FAILED)), names).map(lambda pair: [pair[0], *pair[1][1:]])


def job(what: Sequence[str]) -> tuple[RankView, ...]:
    """The ranks of a job, by what each of them does."""
    return tuple(EACH[name](number) for number, name in enumerate(what))


def with_numbers(wait: Wait, numbers: Mapping[int, int]) -> Wait:
    """The same wait, with other numbers for the ranks that it names."""
    if isinstance(wait, InP2P):
        wait = replace(wait, peers=tuple(numbers.get(peer, peer) for peer in wait.peers))
    if isinstance(wait, InCollective) and wait.root is not None:
        wait = replace(wait, root=numbers.get(wait.root, wait.root))
    if isinstance(wait, Communication):
        return replace(wait, members=tuple(sorted(numbers.get(r, r) for r in wait.members)))
    return wait


def renumbered(view: RankView, numbers: Mapping[int, int]) -> RankView:
    """The same rank under another number, with the others' numbers changed as well."""
    process = view.process
    if process is not None:
        waits = tuple(with_numbers(wait, numbers) for wait in process.waits)
        process = replace(process, waits=waits)
    assert view.rank is not None
    number = numbers[view.rank]
    return replace(view, rank=number, local_rank=number, process=process)


@QUICK
@given(what=names, data=st.data())
def test_renumbered_ranks_get_the_same_verdict_under_their_new_numbers(
    what: list[str], data: st.DataObject
) -> None:
    ranks = job(what)
    order = data.draw(st.permutations(range(len(ranks))))
    numbers = dict(enumerate(order))
    moved = sorted((renumbered(view, numbers) for view in ranks), key=lambda view: view.rank or 0)
    first = diagnose(steady(snapshot(*ranks)))
    second = diagnose(steady(snapshot(*moved)))
    assert (second.outcome, second.cause) == (first.outcome, first.cause)
    assert set(second.culprits) == {numbers[rank] for rank in first.culprits}


@QUICK
@given(what=failing, more=st.integers(1, 3))
def test_more_healthy_ranks_do_not_change_what_an_error_comes_from(what: list[str], more: int) -> None:
    ranks = job(what)
    before = diagnose(steady(snapshot(*ranks)))
    if before.outcome != "error":
        return
    healthy = [working(len(ranks) + n) for n in range(more)]
    after = diagnose(steady(snapshot(*ranks, *healthy)))
    assert (after.outcome, after.cause) == (before.outcome, before.cause)


OPEN = ("needs a key", "waits for a handle", "is stopped", "has a stopped worker")
"""What any rank may end, one that is added too."""

closed = st.lists(st.sampled_from(sorted(ALIVE.keys() - set(OPEN))), min_size=WORLD, max_size=WORLD)


@QUICK
@given(what=closed, more=st.integers(1, 3))
def test_more_healthy_ranks_do_not_change_what_a_hang_comes_from(what: list[str], more: int) -> None:
    ranks = tuple(among(view, range(len(what))) for view in job(what))
    before = diagnose(steady(snapshot(*ranks)))
    if before.outcome != "hang":
        return
    healthy = [working(len(ranks) + n) for n in range(more)]
    after = diagnose(steady(snapshot(*ranks, *healthy)))
    assert (after.outcome, after.cause) == (before.outcome, before.cause)
    assert after.culprits == before.culprits


def among(view: RankView, members: Sequence[int]) -> RankView:
    """The same rank, with collectives of a group of these members only."""
    if view.process is None:
        return view
    waits = tuple(
        replace(wait, members=wait.members or tuple(members))
        if isinstance(wait, Communication)
        else wait
        for wait in view.process.waits
    )
    return replace(view, process=replace(view.process, waits=waits))


@QUICK
@given(what=names, data=st.data())
def test_a_rank_that_has_just_moved_is_no_culprit_of_a_proved_hang(
    what: list[str], data: st.DataObject
) -> None:
    ranks = job(what)
    mover = data.draw(st.sampled_from(range(len(ranks))))
    history = list(steady(snapshot(*ranks)))
    number = data.draw(st.sampled_from(range(len(history) - 2, len(history))))
    moved = history[number]
    history[number] = replace(
        moved, ranks=tuple(working(mover) if view.rank == mover else view for view in moved.ranks)
    )
    verdict = diagnose(history)
    if verdict.outcome == "hang" and verdict.proved:
        assert mover not in verdict.culprits


@QUICK
@given(what=names)
def test_a_verdict_does_not_depend_on_how_often_the_job_was_looked_at(what: list[str]) -> None:
    newest = snapshot(*job(what))
    often, seldom = steady(newest, every=0.1), steady(newest, every=0.5)
    assert diagnose(often) == diagnose(seldom)


@QUICK
@given(what=names)
def test_a_rank_that_works_is_no_culprit_of_a_hang(what: list[str]) -> None:
    verdict = diagnose(steady(snapshot(*job(what))), patience=1.0, final=True)
    if verdict.outcome == "hang":
        works = {n for n, name in enumerate(what) if name in ("works", "imports")}
        assert not works & set(verdict.culprits)


SINCE = st.sampled_from((0.3, 5.0, 12.0, 40.0))
rested = st.lists(st.tuples(st.sampled_from(sorted(EACH)), SINCE), min_size=2, max_size=WORLD)


def rested_job(what: Sequence[tuple[str, float]]) -> Snapshot:
    """A job, by what each of its ranks does and for how long it has rested there."""
    ranks = []
    for number, (name, seconds) in enumerate(what):
        view = EACH[name](number)
        at_rest = view.process is not None and view.process.alive and view.process.idle
        ranks.append(resting(view, seconds) if at_rest else view)
    return snapshot(*ranks)


@QUICK
@given(what=rested, patience=SINCE)
def test_what_is_proved_is_found_whatever_is_assumed(
    what: list[tuple[str, float]], patience: float
) -> None:
    history = steady(rested_job(what))
    proved = diagnose(history, patience=1e9)
    if proved.outcome in ("hang", "error"):
        assert diagnose(history, patience=patience, final=True) == proved


@QUICK
@given(what=rested, patience=SINCE)
def test_a_suspicion_is_not_proved_and_names_nobody_who_has_just_moved(
    what: list[tuple[str, float]], patience: float
) -> None:
    newest = rested_job(what)
    history = steady(newest)
    verdict = diagnose(history, patience=patience, final=True)
    if diagnose(history, patience=1e9, final=True).outcome == "hang" or verdict.outcome != "hang":
        return
    live = diagnose(history, patience=patience)
    assert not verdict.proved
    assert live.outcome == "running" and live.suspicion is not None
    doubt, _, found = verdict.summary.partition(" not known. ")
    assert doubt.startswith("Probably a hang: ") and found == live.suspicion
    for view in newest.ranks:
        if view.process is not None and view.process.alive and view.process.still < STILL:
            assert view.rank not in verdict.culprits


# Part two: anything that the types allow.

NUMBERS = st.integers(0, 4)
PIDS = st.sampled_from((0, 1000, 1001, 1002, 2000, 4711))
WORDS = st.sampled_from(
    (
        "all_reduce",
        "barrier",
        "recv",
        "send",
        "irecv",
        "wait",
        "Timed out waiting 5000ms for recv operation to complete",
        "Rank 1 failed to pass monitoredBarrier in 4000 ms",
        "DataLoader",
        "lock file",
        "default",
        "tp",
        "Connection closed by peer",
        "port: 29500 EADDRINUSE",
        "Address already in use",
        "CUDA out of memory",
        "waiting for clients. 1/2 clients joined",
        "appears not to match sizes of the same param",
        "Expected all tensors to be on the same device",
        "DataLoader worker (pid 2000) exited unexpectedly",
        "ValueError",
        "",
    )
)
SECONDS = st.sampled_from((0.0, 0.3, 1.0, 5.0, 40.0))
FRAMES = st.builds(Frame, WORDS, st.integers(1, 9), st.sampled_from(("f", "_worker_loop", "fetch")))
MAYBE_FRAME = st.none() | FRAMES
STACKS = st.lists(FRAMES, max_size=2).map(tuple)
SHAPES = st.sampled_from(((), ((4,),), ((4, 2), ())))
RANK_SETS = st.lists(NUMBERS, max_size=3, unique=True).map(tuple)
GROUPS = st.sampled_from(("default", "tp"))

COMMON = {"op": WORDS, "where": MAYBE_FRAME, "blocking": st.booleans()}
IN_GROUP = {"group": st.none() | GROUPS, "members": RANK_SETS, "sizes": SHAPES, **COMMON}
WAITS = st.one_of(
    st.builds(InCollective, seq=st.none() | st.integers(1, 3), root=st.none() | NUMBERS, **IN_GROUP),
    st.builds(InP2P, peers=RANK_SETS, **IN_GROUP),
    st.builds(AtRendezvous, **COMMON),
    st.builds(InStore, key=st.none() | WORDS, **COMMON),
    st.builds(
        OnLock,
        path=st.none() | WORDS,
        holder=st.sampled_from(("no process", "unknown")) | PIDS,
        **COMMON,
    ),
    st.builds(OnChild, **COMMON),
    st.builds(OnInput, source=st.none() | WORDS, **COMMON),
    st.builds(OnIO, target=st.none() | WORDS, **COMMON),
)
ERRORS = st.builds(ErrorView, WORDS, WORDS, STACKS, SECONDS, st.lists(WORDS, max_size=1).map(tuple))
PROCESSES = st.builds(
    ProcessView,
    pid=PIDS,
    kind=st.sampled_from(("rank", "dataloader-worker", "process", "helper", "launcher")),
    state=st.sampled_from(
        ("starting", "importing", "rendezvous", "running", "waiting", "stopped", "exited")
    ),
    stack=STACKS,
    where=MAYBE_FRAME,
    waits=st.lists(WAITS, max_size=2).map(tuple),
    collectives=st.lists(
        st.builds(Collective, GROUPS, st.integers(1, 3), WORDS, SHAPES, st.booleans()), max_size=2
    ).map(tuple),
    ports=st.lists(st.builds(Port, WORDS, st.just(29500), WORDS), max_size=1).map(tuple),
    still=SECONDS,
    idle=SECONDS,
    asleep=st.sampled_from((None, "nanosleep")),
    gil_held=st.booleans(),
    ended=st.none() | SECONDS,
    exit_code=st.sampled_from((None, 0, 1)),
    signal=st.sampled_from((None, 9, 11, 15, 99)),
    error=st.none() | ERRORS,
    interpreter_finished=st.booleans(),
    ended_in_call=st.booleans(),
    acting_thread=st.sampled_from((None, None, "listener")),
)
RANKS = st.builds(
    RankView,
    rank=st.none() | NUMBERS,
    state=st.sampled_from(("missing", "unseen", "rendezvous", "running", "waiting", "exited")),
    process=st.none() | PROCESSES,
    children=st.lists(
        st.builds(ChildView, PROCESSES, st.none() | NUMBERS, st.none() | NUMBERS, st.none() | FRAMES),
        max_size=2,
    ).map(tuple),
    joined=st.booleans(),
    master=st.sampled_from((None, "a:1", "b:2")),
)
JOBS = st.builds(
    Job,
    command=st.just(("python", "train.py")),
    launcher=st.sampled_from(("python", "torchrun")),
    world_size=st.none() | st.integers(0, 5),
    exit_code=st.sampled_from((None, 0, 1)),
    signal=st.sampled_from((None, 9)),
    ended=st.none() | SECONDS,
    script_error=st.sampled_from((None, None, None, "SyntaxError: x")),
)
SNAPSHOTS = st.builds(
    Snapshot,
    time=st.sampled_from((10.0, 10.3, 10.9, 60.0)),
    job=JOBS,
    ranks=st.lists(RANKS, max_size=3, unique_by=lambda view: view.rank).map(tuple),
    launchers=st.lists(PROCESSES, max_size=1).map(tuple),
    strangers=st.lists(
        st.tuples(st.just(29500), st.builds(Blocker, PIDS, WORDS, WORDS)), max_size=1
    ).map(tuple),
    memory_kills=st.integers(0, 1),
    stdin=st.sampled_from(("inherit", "silent")),
    stores=st.lists(st.builds(StoreView, WORDS, WORDS, WORDS), max_size=1).map(tuple),
)


@WIDE
@given(
    history=st.lists(SNAPSHOTS, min_size=1, max_size=3),
    patience=SECONDS,
    final=st.booleans(),
)
def test_no_history_makes_diagnose_raise(history: list[Snapshot], patience: float, final: bool) -> None:
    verdict = diagnose(history, patience=patience, final=final)
    assert verdict.summary
    assert (verdict.cause == "none") == (verdict.outcome in ("ok", "running"))


@WIDE
@given(newest=SNAPSHOTS)
def test_a_rank_that_moves_is_no_culprit_of_a_proved_hang(newest: Snapshot) -> None:
    verdict = diagnose(steady(newest), patience=1e9)
    if verdict.outcome != "hang":
        return
    moving = {
        view.rank
        for view in newest.ranks
        if view.process is not None and view.process.alive and view.process.still < STILL
    }
    assert not moving & set(verdict.culprits)


@WIDE
@given(newest=SNAPSHOTS, patiences=st.lists(SECONDS, min_size=2, max_size=2).map(sorted))
def test_with_less_patience_more_ranks_are_given_up_and_no_fewer_are_stuck(
    newest: Snapshot, patiences: list[float]
) -> None:
    less, more, proof = (Graph.of(newest, patience) for patience in (*patiences, math.inf))
    assert less.given_up >= more.given_up >= proof.given_up == frozenset()
    assert less.stuck >= more.stuck >= proof.stuck


@WIDE
@given(newest=SNAPSHOTS, patience=SECONDS)
def test_a_rank_that_moved_or_used_cpu_within_patience_is_not_given_up(
    newest: Snapshot, patience: float
) -> None:
    graph = Graph.of(newest, patience)
    for number, process in graph.alive.items():
        if min(process.still, process.idle) < patience:
            assert number not in graph.given_up


@WIDE
@given(newest=SNAPSHOTS, final=st.booleans())
def test_ranks_of_other_nodes_are_no_culprits(newest: Snapshot, final: bool) -> None:
    elsewhere = [view for view in newest.ranks if view.state == "unseen"]
    ranks = tuple(RankView(v.rank, state=v.state) if v in elsewhere else v for v in newest.ranks)
    newest = replace(newest, ranks=ranks)
    unseen = {view.rank for view in elsewhere}
    verdict = diagnose(steady(newest), final=final)
    assert not unseen & set(verdict.culprits)
