"""Who waits for whom: the branches of the graph that the table of verdicts does not reach."""

from __future__ import annotations

import math

import pytest
from histories import (
    NOW,
    absent,
    child,
    collective,
    ended,
    frozen,
    gone,
    in_collective,
    irecv,
    issued,
    joining,
    key,
    launcher,
    loading,
    lock,
    rank,
    reading,
    recv,
    resting,
    send,
    sleeping,
    snapshot,
    stopped,
    wait,
    worker,
    working,
)
from msgspec.structs import replace

from helpers.diagnose.graph import SOON, Graph
from helpers.diagnose.matching import addresses, divergence
from helpers.model.facts import UNTOLD, Blocker, ChildView, RankView, Snapshot
from helpers.model.waits import InP2P, InStore, OnChild, OnCondition, OnDevice, OnIO, Wait


def stuck(*ranks: RankView, **facts: object) -> set[int]:
    return set(Graph.of(snapshot(*ranks, **facts)).stuck)  # type: ignore[arg-type]


WAITED_FOR = [
    ("a collective", (in_collective(0, "barrier"), working(1), working(2)), {0: {1, 2}}),
    (
        "members only",
        (in_collective(0, "barrier", members=(0, 2)), working(1), working(2)),
        {0: {2}},
    ),
    ("not who has arrived", (in_collective(0, "barrier"), in_collective(1, "barrier")), {}),
    ("a receive", (rank(0, recv(1)), working(1), working(2)), {0: {1}}),
    ("a receive from anybody", (rank(0, recv(None)), working(1), working(2)), {0: {1, 2}}),
    ("not the sender that is there", (rank(0, recv(1)), rank(1, send(0))), {}),
    ("nobody more when one sends", (rank(0, recv(None)), rank(1, send(0)), working(2)), {}),
    (
        "not the sender to someone else",
        (rank(0, recv(1)), rank(1, send(2)), working(2)),
        {0: {1}, 1: {2}},
    ),
    ("the rendezvous", (rank(0, joining()), working(1, joined=False), absent(2)), {0: {1, 2}}),
    ("not who has joined before", (rank(0, joining()), working(1)), {}),
    ("the holder of a lock", (rank(0, lock("l", 1001)), working(1)), {0: {1}}),
    (
        "the rank whose child holds it",
        (rank(0, lock("l", 3001)), working(1, children=[child(1)])),
        {0: {1}},
    ),
    ("no stranger", (rank(0, lock("l", 4711)), working(1)), {}),
    ("a key: anybody, so nobody by name", (rank(0, key("k")), working(1)), {}),
]


@pytest.mark.parametrize(
    ("ranks", "expected"), [row[1:] for row in WAITED_FOR], ids=[row[0] for row in WAITED_FOR]
)
def test_whom_a_rank_waits_for(ranks: tuple[RankView, ...], expected: dict[int, set[int]]) -> None:
    found = Graph.of(snapshot(*ranks)).waited_for
    assert {number: set(peers) for number, peers in found.items() if peers} == expected


LISTENING = [replace(recv(source), thread="listener") for source in (0, 1)]
"""The wait of a thread that receives beside the main one."""

STUCK: list[tuple[str, tuple[RankView, ...], set[int]]] = [
    ("a chain that ends at one who works", (rank(0, recv(1)), rank(1, recv(2)), working(2)), set()),
    ("a chain that ends at one who left", (rank(0, recv(1)), rank(1, recv(2)), ended(2)), {0, 1}),
    ("a receive from anybody while one works", (rank(0, recv(None)), ended(1), working(2)), set()),
    ("a receive from anybody of those who left", (rank(0, recv(None)), ended(1)), {0}),
    (
        "reading a file is nobody's to end",
        (rank(0, wait(OnIO, "read")), in_collective(1, "barrier")),
        set(),
    ),
    (
        "a condition that a loop tests may change",
        (rank(0, wait(OnCondition, "not done")), in_collective(1, "barrier")),
        set(),
    ),
    ("a rank on another node may come", (in_collective(0, "barrier"), absent(1, "unseen")), set()),
    (
        "the interpreter lock is no wait",
        (rank(0, joining(), gil_held=True), in_collective(1, "barrier")),
        set(),
    ),
    ("its own lock", (rank(0, lock("l", 1000)),), set()),
    ("its own child's lock", (rank(0, lock("l", 3000), children=[child(0)]),), set()),
    ("a program that cannot be seen", (rank(0, wait(OnChild, "wait")),), set()),
    (
        "a bookkeeping child wakes nobody, and blocks nobody",
        (rank(0, wait(OnChild, "wait"), children=[child(0, kind="helper")]),),
        set(),
    ),
    (
        "a child that has ended wakes its rank",
        (rank(0, wait(OnChild, "wait"), children=[gone(child(0), 0)]), in_collective(1, "barrier")),
        set(),
    ),
    (
        "a rank that waits only for some time for its child",
        (
            rank(0, wait(OnChild, "wait", limited=True), children=[child(0, joining())]),
            rank(1, recv(0)),
        ),
        set(),
    ),
    (
        "one of two workers goes on",
        (
            rank(0, loading(), children=[worker(0, 0, joining()), worker(0, 1)]),
            in_collective(1, "barrier"),
        ),
        set(),
    ),
    (
        "a worker that joins a group which will not meet",
        (rank(0, loading(), children=[worker(0, 0, joining())]), in_collective(1, "barrier")),
        {0, 1},
    ),
    (
        "an asynchronous operation does not block",
        (rank(0, collective("all_reduce", blocking=False)), in_collective(1, "barrier")),
        set(),
    ),
    (
        "one of its threads may go on",
        (
            rank(0, collective("all_reduce"), LISTENING[1], **issued("all_reduce", done=0)),
            rank(1, collective("all_reduce"), LISTENING[0], **issued("all_reduce", done=0)),
            working(2),
        ),
        set(),
    ),
    (
        "none of its threads can go on",
        (
            rank(0, collective("barrier"), LISTENING[1], **issued("barrier", done=0)),
            rank(1, collective("all_reduce"), LISTENING[0], **issued("all_reduce", done=0)),
        ),
        {0, 1},
    ),
    (
        "the same broadcast from two ranks",
        tuple(
            rank(n, collective("broadcast", root=1 - n), **issued("broadcast", done=0)) for n in (0, 1)
        ),
        {0, 1},
    ),
    (
        "the same broadcast from one rank",
        tuple(rank(n, collective("broadcast", root=1), **issued("broadcast", done=0)) for n in (0, 1)),
        set(),
    ),
    (
        "handles of two receives",
        (rank(0, irecv()), rank(1, irecv())),
        {0, 1},
    ),
    (
        "the handle of a receive that somebody may still serve",
        (rank(0, irecv()), rank(1, irecv()), working(2)),
        set(),
    ),
    (
        "handles that say from whom, whoever else works",
        (rank(0, irecv(1)), rank(1, irecv(0)), working(2)),
        {0, 1},
    ),
    (
        "the handle of a receive and that of a send",
        (rank(0, irecv()), rank(1, wait(InP2P, "isend"))),
        set(),
    ),
    (
        "a handle of which nobody knows what it is for",
        (rank(0, recv(1)), rank(1, wait(InP2P, "wait", peers=(0,)))),
        set(),
    ),
    (
        "a thread of one may still do what the other waits for",
        (in_collective(0, "barrier"), rank(1, recv(0), acting_thread="upload")),
        set(),
    ),
    ("a message on its way", (rank(0, recv(1), idle=0.2), in_collective(1, "barrier")), set()),
    (
        "a rank that computes although its operation will never match",
        (in_collective(0, "barrier", idle=0.0), in_collective(1, "all_reduce", idle=0.0)),
        {0, 1},
    ),
    (
        "no thread makes up for a rank that has left",
        (rank(0, recv(1), acting_thread="upload"), ended(1)),
        {0},
    ),
    (
        "no thread makes another operation of one that was issued",
        (in_collective(0, "barrier", acting_thread="upload"), in_collective(1, "all_reduce")),
        {0, 1},
    ),
    (
        "a key that a program of a rank may set",
        (rank(0, key("k"), children=[child(0)]), in_collective(1, "barrier")),
        set(),
    ),
    (
        "a key that a child will not set: it waits itself, has no code of the user's, or is a worker",
        (
            rank(0, key("k"), children=[child(0, key("k")), child(0, at=None), worker(0, 0)]),
            in_collective(1, "barrier"),
        ),
        {0, 1},
    ),
    (
        "a new group for which only a sleeping member is missing",
        (
            in_collective(0, "barrier", groups_made=2),
            rank(1, collective("new_group", None, group_number=2), groups_made=2),
            sleeping(2, groups_made=1),
        ),
        set(),
    ),
    (
        "new groups of the same number and of other members",
        tuple(
            rank(n, collective("new_group", None, members=pair, group_number=2), groups_made=2)
            for n, pair in enumerate(((0, 1), (1, 2), (0, 2)))
        ),
        {0, 1, 2},
    ),
    (
        "a key that a rank will do without before long",
        (rank(0, wait(InStore, "get", key="k", limited=True)), in_collective(1, "barrier")),
        set(),
    ),
    (
        "whoever is past the operation has arrived",
        (
            in_collective(0, "all_reduce", "barrier"),
            ended(1),
            rank(2, joining(), **issued("broadcast", "broadcast", start=9)),
        ),
        {0},
    ),
]


@pytest.mark.parametrize(
    ("ranks", "expected"), [row[1:] for row in STUCK], ids=[row[0] for row in STUCK]
)
def test_who_is_stuck(ranks: tuple[RankView, ...], expected: set[int]) -> None:
    assert stuck(*ranks) == expected


CORE: list[tuple[str, tuple[RankView, ...], set[int]]] = [
    (
        "two part in a small group while the rest waits for them",
        (
            rank(0, collective("all_reduce", group="tp", members=(0, 1))),
            rank(1, collective("barrier", group="tp", members=(0, 1))),
            in_collective(2, "barrier"),
            in_collective(3, "barrier"),
        ),
        {0, 1},
    ),
    ("who waits for one that is stopped for memory is behind it", (rank(0, recv(1)), frozen(1)), {1}),
    ("a chain behind a ring", (rank(0, recv(1)), rank(1, recv(2)), rank(2, recv(1))), {1, 2}),
    (
        "a key that nobody of a ring will set",
        (rank(0, key("k")), rank(1, recv(2)), rank(2, recv(1))),
        {1, 2},
    ),
    (
        "two rings",
        (rank(0, recv(1)), rank(1, recv(0)), rank(2, recv(3)), rank(3, recv(2))),
        {0, 1, 2, 3},
    ),
    ("who waits for one that left waits for nobody else", (rank(0, recv(1)), ended(1)), {0}),
    ("nobody is stuck", (rank(0, recv(1)), working(1)), set()),
]


@pytest.mark.parametrize(("ranks", "expected"), [row[1:] for row in CORE], ids=[row[0] for row in CORE])
def test_on_whom_the_stuck_ranks_wait(ranks: tuple[RankView, ...], expected: set[int]) -> None:
    assert Graph.of(snapshot(*ranks)).core == expected


RESTING_CHILD = child(0, still=40.0, idle=40.0)
ROUSED_CHILD = child(0, still=40.0, idle=40.0, woken=29.0)
POLLS = [launcher(wait(OnIO, "poll"))]


def pipe(*ends: int) -> OnIO:
    """What stands at a pipe whose other end these processes hold."""
    return wait(OnIO, "read", target="pipe:[7]", ends=ends)


def polling() -> OnCondition:
    return wait(OnCondition, "not done")


def family(*waits: Wait, of: ChildView) -> RankView:
    """Rank 0, which rests, with a child."""
    return resting(rank(0, *waits, children=[of]))


GIVEN_UP: list[tuple[str, tuple[RankView, ...], set[int], set[int]]] = [
    ("asleep while another waits for it", (in_collective(0, "barrier"), resting(sleeping(1))), {1}, {1}),
    (
        "asleep for less than patience",
        (in_collective(0, "barrier"), resting(sleeping(1), 29)),
        set(),
        set(),
    ),
    (
        "still, but it computes",
        (in_collective(0, "barrier"), sleeping(1, still=40, idle=0)),
        set(),
        set(),
    ),
    ("idle, but it moves", (in_collective(0, "barrier"), sleeping(1, still=0, idle=40)), set(), set()),
    ("everybody asleep", (resting(sleeping(0)), resting(sleeping(1))), {0, 1}, {0, 1}),
    ("one that nobody waits for, while another works", (resting(sleeping(0)), working(1)), set(), set()),
    (
        "it waits for a child that rests, too",
        (resting(rank(0, wait(OnChild, "wait"), children=[RESTING_CHILD])), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "it waits for a child that computes",
        (resting(rank(0, wait(OnChild, "wait"), children=[child(0, idle=0)])), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "it waits for one at work",
        (rank(0, recv(1)), resting(rank(1, recv(2))), working(2)),
        {1},
        set(),
    ),
    (
        "it waits for a key that one at work may set",
        (resting(rank(0, key("k"))), rank(1, recv(0)), working(2)),
        {0},
        set(),
    ),
    (
        "it waits for a key that the other one could set, but sleeps",
        (resting(rank(0, key("k"))), resting(sleeping(1))),
        {0, 1},
        {1},
    ),
    (
        "a signal has stopped it, and one at work may let it go on",
        (resting(stopped(0)), rank(1, recv(0)), working(2)),
        {0},
        {0},
    ),
    (
        "it has a thread that may act, and its call will never match",
        (resting(rank(0, recv(1), acting_thread="heartbeat")), resting(in_collective(1, "barrier"))),
        {0, 1},
        {0, 1},
    ),
    (
        "all have arrived, and the operation does not end",
        (resting(in_collective(0, "all_reduce")), resting(in_collective(1, "all_reduce"))),
        {0, 1},
        {0, 1},
    ),
    (
        "the rest waits for one that was never started",
        (resting(rank(0, joining())), absent(1)),
        {0, 1},
        {0},
    ),
    (
        "a rank may still be started while another one works",
        (resting(rank(0, joining())), absent(1), working(2, joined=False)),
        set(),
        set(),
    ),
    (
        "the others may come from another node",
        (resting(rank(0, joining())), absent(1, "unseen")),
        {0},
        set(),
    ),
    (
        "who waits for one that a signal has stopped is behind it",
        (resting(rank(0, recv(1))), resting(stopped(1))),
        {0, 1},
        {1},
    ),
    (
        "a signal has stopped it, while the other one is asleep",
        (resting(sleeping(0)), resting(stopped(1))),
        {0, 1},
        {0, 1},
    ),
    (
        "everybody asleep but one, which waits for them",
        (resting(in_collective(0, "barrier")), resting(sleeping(1)), resting(sleeping(2))),
        {0, 1, 2},
        {1, 2},
    ),
    (
        "everybody waits for what is outside of the job",
        (resting(rank(0, pipe(4711))), resting(rank(1, polling()))),
        set(),
        set(),
    ),
    (
        "everybody waits for what is outside of the job, but one for a process of it",
        (resting(rank(0, pipe(1001))), resting(rank(1, pipe(4711)))),
        {0, 1},
        {0, 1},
    ),
    (
        "asleep, but it ran lately",
        (in_collective(0, "barrier"), resting(sleeping(1, woken=29.0))),
        set(),
        set(),
    ),
    (
        "asleep, and it has not run for as long as patience",
        (in_collective(0, "barrier"), resting(sleeping(1, woken=30.0))),
        {1},
        {1},
    ),
    (
        "its sleep ends in half a minute",
        (in_collective(0, "barrier"), resting(sleeping(1, ends=NOW + 31))),
        set(),
        set(),
    ),
    (
        "its sleep ends soon, if only just",
        (in_collective(0, "barrier"), resting(sleeping(1, ends=NOW + SOON))),
        set(),
        set(),
    ),
    (
        "its sleep does not end soon",
        (in_collective(0, "barrier"), resting(sleeping(1, ends=NOW + SOON + 1))),
        {1},
        {1},
    ),
    (
        "its control group keeps it from running",
        (in_collective(0, "barrier"), resting(sleeping(1, frozen=True))),
        set(),
        set(),
    ),
    (
        "the child that it waits for ran lately",
        (family(wait(OnChild, "wait"), of=ROUSED_CHILD), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "a child that it does not wait for ran lately",
        (resting(sleeping(0, children=[ROUSED_CHILD])), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "the child that it waits for is frozen",
        (family(wait(OnChild, "wait"), of=child(0, still=40, idle=40, frozen=True)), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "the sleep of the child that it waits for ends soon",
        (family(wait(OnChild, "wait"), of=child(0, still=40, idle=40, ends=NOW)), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "the child at the other end of its pipe ran lately",
        (family(pipe(3000), of=ROUSED_CHILD), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "the child at the other end of its pipe rests, too",
        (family(pipe(3000), of=RESTING_CHILD), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "the child that may be at the other end of its socket ran lately",
        (family(pipe(), of=ROUSED_CHILD), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "the child that may be at the other end of its socket rests, too",
        (family(pipe(), of=RESTING_CHILD), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "the rank at the other end of its pipe ran lately",
        (resting(rank(0, pipe(1001))), resting(sleeping(1, woken=29.0)), rank(2, recv(0))),
        set(),
        set(),
    ),
    (
        "the rank at the other end of its pipe rests, too",
        (resting(rank(0, pipe(1001))), resting(sleeping(1)), rank(2, recv(0))),
        {0},
        {0},
    ),
    (
        "at the other end of its pipe is none of the job's",
        (family(pipe(4711), of=ROUSED_CHILD), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "the child that holds its lock ran lately",
        (family(lock("l", 3000), of=ROUSED_CHILD), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "the child that holds its lock rests, too",
        (family(lock("l", 3000), of=RESTING_CHILD), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "a child that may hold its lock ran lately",
        (family(lock("l", "unknown"), of=ROUSED_CHILD), rank(1, recv(0))),
        set(),
        set(),
    ),
    (
        "a child that may hold its lock rests, too",
        (family(lock("l", "unknown"), of=RESTING_CHILD), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "a rank that may hold its lock ran lately",
        (
            resting(rank(0, lock("l", "unknown"))),
            resting(sleeping(1, woken=29.0)),
            resting(rank(2, recv(0))),
        ),
        set(),
        set(),
    ),
    (
        "the rank that may hold its lock waits for it",
        (resting(rank(0, lock("l", "unknown"))), rank(1, recv(0))),
        {0},
        {0},
    ),
    (
        "another rank's child holds its lock, and ran lately",
        (
            resting(rank(0, lock("l", 3001))),
            working(1, children=[child(1, still=40, idle=40, woken=29.0)]),
            rank(2, recv(0)),
        ),
        set(),
        set(),
    ),
    (
        "another rank's child holds its lock, and rests, too, while that rank works",
        (
            resting(rank(0, lock("l", 3001))),
            working(1, children=[child(1, still=40, idle=40)]),
            rank(2, recv(0)),
        ),
        {0},
        set(),
    ),
    (
        "its child waits for a rank that ran lately",
        (
            family(wait(OnChild, "wait"), of=child(0, pipe(1001), still=40, idle=40)),
            resting(sleeping(1, woken=29.0)),
            rank(2, recv(0)),
        ),
        set(),
        set(),
    ),
    (
        "two that wait for each other's pipe",
        (resting(rank(0, pipe(1001))), resting(rank(1, pipe(1000))), rank(2, recv(0))),
        {0},
        {0, 1},
    ),
    (
        "it tests a condition again and again while another waits for it",
        (resting(rank(0, polling())), in_collective(1, "barrier")),
        {0},
        {0},
    ),
    (
        "it tests a condition again and again, and all others wait for it",
        (resting(rank(0, polling())), resting(in_collective(1, "barrier"))),
        {0, 1},
        {0},
    ),
    (
        "it tests a condition that a child at work may change while another waits for it",
        (family(polling(), of=ROUSED_CHILD), in_collective(1, "barrier")),
        set(),
        set(),
    ),
    (
        "it tests a condition that a child might change which rests, too",
        (family(polling(), of=RESTING_CHILD), in_collective(1, "barrier")),
        {0},
        {0},
    ),
    (
        "it tests a condition, and nobody waits for it",
        (resting(rank(0, polling())), working(1)),
        set(),
        set(),
    ),
    (
        "all test a condition",
        (resting(rank(0, polling())), resting(rank(1, polling()))),
        set(),
        set(),
    ),
]


@pytest.mark.parametrize(
    ("ranks", "given_up", "core"), [row[1:] for row in GIVEN_UP], ids=[row[0] for row in GIVEN_UP]
)
def test_which_ranks_are_given_up_after_patience(
    ranks: tuple[RankView, ...], given_up: set[int], core: set[int]
) -> None:
    newest = snapshot(*ranks, started_by="python", launchers=POLLS)
    graph = Graph.of(newest, patience=30.0)
    assert graph.given_up == given_up
    assert graph.core == core
    assert Graph.of(newest).given_up == set()


def rests(view: RankView) -> RankView:
    """The same rank, which rests, and its children with it."""
    children = (replace(c, process=replace(c.process, still=40.0, idle=40.0)) for c in view.children)
    return replace(resting(view), children=tuple(children))


STOPPED: list[tuple[str, tuple[RankView, ...], set[int], set[int]]] = [
    ("a key that only a stopped rank could set", (rank(0, key("k")), stopped(1)), {0, 1}, {0, 1}),
    (
        "a key that a stopped rank could set, for which nobody else waits, while another works",
        (rank(0, key("k")), stopped(1), working(2, idle=0)),
        set(),
        set(),
    ),
    ("nobody waits for it, and another works", (stopped(0), working(1)), set(), set()),
    ("another waits for it", (stopped(0), rank(1, recv(0))), {0, 1}, {0, 1}),
    (
        "another waits for it that has a thread beside",
        (stopped(0), in_collective(1, "barrier", acting_thread="heartbeat")),
        {0, 1},
        {0, 1},
    ),
    ("the other one is on another node", (stopped(0), absent(1, "unseen")), {0}, {0}),
    (
        "it has a child that works: whether that would let it go on, nothing shows",
        (rank(0, state="stopped", children=[child(0)]), rank(1, recv(0))),
        {0, 1},
        {0, 1},
    ),
    (
        "its child is stopped, too",
        (rank(0, state="stopped", children=[child(0, state="stopped")]), rank(1, recv(0))),
        {0, 1},
        {0, 1},
    ),
    ("everybody is stopped", (stopped(0), stopped(1)), {0, 1}, {0, 1}),
    (
        "a worker, and nobody waits for its rank, while another works",
        (rank(0, loading(), children=[worker(0, 0, state="stopped")]), working(1)),
        set(),
        set(),
    ),
    (
        "a worker while the other ranks wait",
        (rank(0, loading(), children=[worker(0, 0, state="stopped")]), in_collective(1, "barrier")),
        {0, 1},
        {0, 1},
    ),
    (
        "a child for which its rank waits while another waits for that one",
        (
            rank(0, wait(OnChild, "wait"), children=[child(0, state="stopped")]),
            rank(1, recv(0)),
        ),
        {0, 1},
        {0, 1},
    ),
    ("a debugger holds it", (rank(0, state="stopped", traced=True), rank(1, recv(0))), set(), set()),
]


@pytest.mark.parametrize(
    ("ranks", "given_up", "expected"), [row[1:] for row in STOPPED], ids=[row[0] for row in STOPPED]
)
def test_what_a_signal_has_stopped_is_stuck_only_after_patience(
    ranks: tuple[RankView, ...], given_up: set[int], expected: set[int]
) -> None:
    assert stuck(*ranks) == set()
    at_work = [view for view in ranks if view.process is not None and view.process.cpu]
    long = snapshot(
        *(view if view in at_work or view.process is None else rests(view) for view in ranks)
    )
    assert Graph.of(long).stuck == set(), "somebody may undo it at any time"
    graph = Graph.of(long, patience=30.0)
    assert (graph.given_up, graph.stuck) == (given_up, expected)
    assert Graph.of(long, patience=41.0).stuck == set()


@pytest.mark.parametrize(
    ("other", "given_up"),
    [
        pytest.param(worker(0, 1, still=0.0, idle=0.0), set(), id="works"),
        pytest.param(worker(0, 1, still=40.0, idle=40.0, woken=29.0), set(), id="ran lately"),
        pytest.param(worker(0, 1, still=40.0, idle=40.0), {0, 1}, id="rests"),
    ],
)
def test_a_stopped_worker_is_given_up_once_no_other_one_moves(
    other: ChildView, given_up: set[int]
) -> None:
    """The next batch may come from any of them."""
    halted = worker(0, 0, state="stopped", still=40.0, idle=40.0)
    loads = resting(rank(0, loading(), children=[halted, other]))
    newest = snapshot(loads, resting(in_collective(1, "barrier")))
    assert Graph.of(newest).stuck == set()
    graph = Graph.of(newest, patience=30.0)
    assert (graph.given_up, graph.stuck) == (given_up, given_up)


def test_a_tail_that_begins_later_means_that_the_operation_is_done() -> None:
    ahead = rank(1, **issued("broadcast", "broadcast", start=9, done=9))
    graph = Graph.of(snapshot(in_collective(0, "barrier", start=2), ahead))
    assert graph.waited_for[0] == frozenset()


def test_a_prompt_is_stuck_only_when_nobody_can_answer_it() -> None:
    assert stuck(rank(0, reading()), stdin="silent") == {0}
    assert stuck(rank(0, reading()), stdin="inherit") == set()


def test_a_launcher_that_does_not_wait_yet_may_start_the_rank_that_is_missing() -> None:
    busy = launcher(wait(OnIO, "poll"))
    assert stuck(rank(0, joining()), absent(1), started_by="python", launchers=[busy]) == set()
    assert stuck(rank(0, joining()), absent(1), started_by="python", launchers=[launcher()]) == {0}


def test_a_launcher_that_does_not_wait_may_set_a_key() -> None:
    ranks = (rank(0, key("k")), rank(1, key("k")))
    assert stuck(*ranks, started_by="python", launchers=[launcher(wait(OnIO, "poll"))]) == set()
    assert stuck(*ranks, started_by="python", launchers=[launcher()]) == {0, 1}
    assert stuck(*ranks, started_by="torchrun", launchers=[launcher(wait(OnIO, "poll"))]) == {0, 1}


def test_a_rank_that_waits_for_its_device_goes_on_by_itself() -> None:
    on_device = rank(0, wait(OnDevice, "item"))
    for other in (rank(1, recv(0)), rank(1, wait(OnDevice, "item"))):
        assert stuck(on_device, other) == set()
        assert Graph.of(snapshot(on_device, other), patience=1.0).given_up == frozenset()


@pytest.mark.parametrize(
    ("on_device", "still", "given_up"),
    [(True, 60.0, set()), (False, 60.0, {0, 1}), (True, UNTOLD, {0, 1})],
    ids=["a device may have other work before", "no device", "a dump, made after a timeout"],
)
def test_what_all_have_come_to_is_up_to_the_device(
    on_device: bool, still: float, given_up: set[int]
) -> None:
    calls = collective("barrier", on_device=on_device, members=(0, 1))
    ranks = [rank(number, calls, still=still, idle=still, **issued("barrier")) for number in (0, 1)]
    assert Graph.of(snapshot(*ranks), patience=3.0).given_up == given_up


def test_a_rank_that_does_not_come_is_given_up_on_a_device_too() -> None:
    calls = collective("barrier", on_device=True, members=(0, 1))
    ranks = (rank(0, calls, still=60.0, idle=60.0), rank(1, recv(None), still=60.0, idle=60.0))
    assert Graph.of(snapshot(*ranks), patience=3.0).given_up == {0, 1}


def test_what_takes_processor_time_may_end_a_wait() -> None:
    ranks = (rank(0, recv(1), idle=0.0), rank(1, recv(0), idle=0.0))
    for hardware in ("cpu", "cuda"):
        seen = snapshot(*ranks)
        assert Graph.of(replace(seen, job=replace(seen.job, hardware=hardware))).stuck == set()


def test_an_agent_starts_all_its_ranks_at_once() -> None:
    busy = launcher(wait(OnIO, "poll"))
    assert stuck(rank(0, joining()), absent(1), started_by="torchrun", launchers=[busy]) == {0}


def test_ranks_that_meet_at_two_addresses_never_meet() -> None:
    ranks = [replace(rank(n, joining()), master=f"host:{n}") for n in (0, 1)]
    graph = Graph.of(snapshot(*ranks))
    assert graph.stuck == {0, 1}
    assert addresses(graph.ranks) == {"host:0": [0], "host:1": [1]}


DIVERGENCE = [
    ("the same calls", (issued("barrier", done=0), issued("barrier", done=0)), None),
    ("all is done", (issued("barrier"), issued("all_reduce")), None),
    ("one call each", (issued("barrier", done=0), issued("all_reduce", done=0)), 1),
    (
        "the first of several places",
        (
            issued("barrier", "broadcast", "barrier", done=1),
            issued("barrier", "all_gather", "broadcast", done=1),
        ),
        2,
    ),
    ("groups are apart", (issued("barrier", group="tp", done=0), issued("broadcast", done=0)), None),
]


@pytest.mark.parametrize(
    ("tails", "seq"), [row[1:] for row in DIVERGENCE], ids=[row[0] for row in DIVERGENCE]
)
def test_where_calls_part(tails: tuple[dict[str, object], ...], seq: int | None) -> None:
    ranks = [rank(number, **tail) for number, tail in enumerate(tails)]  # type: ignore[arg-type]
    found = divergence(Graph.of(snapshot(*ranks)).ranks)
    assert (found and found[1]) == seq


def test_calls_part_among_the_ranks_that_are_asked() -> None:
    tails = (issued("barrier", done=0), issued("barrier", done=0), issued("all_reduce", done=0))
    graph = Graph.of(snapshot(*(rank(n, **tail) for n, tail in enumerate(tails))))
    assert divergence(graph.ranks, {0, 1}) is None
    found = divergence(graph.ranks, {0, 2})
    assert found is not None and found[2].keys() == {0, 1, 2}


def test_a_rank_of_unknown_number_is_left_out() -> None:
    graph = Graph.of(snapshot(rank(None, reading()), working(1)))
    assert set(graph.ranks) == {1}
    assert graph.stuck == frozenset()


def test_the_rank_behind_a_pid() -> None:
    graph = Graph.of(snapshot(working(0), working(1, children=[child(1)]), absent(2)))
    assert [graph.needs.rank_of(pid) for pid in (1000, 1001, 3001, 4711)] == [0, 1, 1, None]


STANDS = [
    ("in a wait", rank(0, reading()), True),
    ("in a wait, but moving", rank(0, reading(), still=0.9), False),
    ("asleep", sleeping(0), False),
    ("stopped by a signal, which somebody may undo", stopped(0), False),
    ("stopped for memory", frozen(0), True),
    ("holding the interpreter lock", rank(0, reading(), gil_held=True), False),
    ("with something pending only", rank(0, collective("barrier", blocking=False)), False),
    ("ended", ended(0), False),
]


@pytest.mark.parametrize(
    ("view", "expected"), [row[1:] for row in STANDS], ids=[row[0] for row in STANDS]
)
def test_who_stands_still(view: RankView, expected: bool) -> None:
    assert view.process is not None
    assert view.process.blocked is expected


def test_only_what_a_thread_stands_in_blocks() -> None:
    pending: Wait = collective("all_reduce", blocking=False)
    standing = recv(1)
    view = rank(0, pending, standing)
    assert view.process is not None
    assert [found.op for found in view.process.blocking] == ["recv"]


def test_an_empty_job_has_an_empty_graph() -> None:
    nothing = Snapshot(0.0, snapshot().job, strangers=((1, Blocker(1, "", "")),))
    assert Graph.of(nothing).stuck == frozenset()


@pytest.mark.parametrize(("seen", "expected"), [(11.9, set()), (12.0, {0}), (math.inf, {0})])
def test_what_was_read_before_a_rank_ended_does_not_show_that_another_still_waits(
    seen: float, expected: set[int]
) -> None:
    """Rank 1 may have come to the barrier before it ended: where reading is slow, nobody saw that."""
    ranks = in_collective(0, "barrier", read_at=seen, still=60.0, idle=60.0), ended(1, time=12.0)
    assert stuck(*ranks) == expected
    assert set(Graph.of(snapshot(*ranks), 5.0).given_up) == expected
