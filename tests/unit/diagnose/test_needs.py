"""What could end a wait, kind by kind: told by what a job comes to in which nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from histories import (
    child,
    collective,
    in_collective,
    key,
    loading,
    lock,
    raised,
    rank,
    recv,
    resting,
    sleeping,
    snapshot,
    steady,
    stopped,
    wait,
    worker,
    working,
)
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.graph import Graph
from helpers.diagnose.scene import Facts, odd_ones
from helpers.model.facts import Attempt, ChildView, Group, RankView, Snapshot, Verdict
from helpers.model.waits import (
    ANY_CHILD,
    InCollective,
    InRPC,
    JoinsRPC,
    OnChild,
    OnIO,
    OnLock,
    OnThread,
)

JOIN = wait(OnChild, ANY_CHILD)


def judged(*ranks: RankView, **facts: Any) -> Verdict:
    return diagnose(steady(snapshot(*ranks, **facts)))


def suspected(*ranks: RankView, final: bool = True, **facts: Any) -> Verdict:
    return diagnose(steady(snapshot(*map(resting, ranks), **facts)), final=final)


# Locks and threads of the process itself

OWN_LOCK = wait(OnLock, "acquire", holder="this thread")
OWN_THREAD = wait(OnThread, "join", circular=True)


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        pytest.param(OWN_LOCK, "a lock that it already holds", id="its own lock"),
        pytest.param(
            wait(OnLock, "acquire", holder="a waiting thread"),
            "a lock held by a thread that waits for this one",
            id="a thread's lock",
        ),
        pytest.param(OWN_THREAD, "another thread (join), which waits for this one", id="join"),
    ],
)
def test_a_wait_for_a_thread_that_waits_for_this_one_never_ends(
    inside: OnLock | OnThread, said: str
) -> None:
    verdict = judged(rank(0, inside, at="train.py:7 add"), in_collective(1, "barrier"))
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "missing-rank", (0,))
    assert verdict.proved
    assert said in verdict.summary


@pytest.mark.parametrize(
    "inside",
    [wait(OnLock, "acquire"), wait(OnThread, "get"), wait(OnThread, "result")],
    ids=["lock", "queue", "future"],
)
def test_what_another_thread_may_bring_is_a_suspicion(inside: OnLock | OnThread) -> None:
    ranks = rank(0, inside), in_collective(1, "barrier")
    assert judged(*ranks).outcome == "running"
    verdict = suspected(*ranks)
    assert (verdict.outcome, verdict.culprits, verdict.proved) == ("hang", (0,), False)


def test_a_thread_that_may_act_could_still_release_a_lock() -> None:
    assert judged(rank(0, OWN_LOCK, acting_thread="timer")).outcome == "running"


# Pipes


def pipe(*ends: int, op: str = "write") -> OnIO:
    return wait(OnIO, op, target="pipe:[4711]", ends=ends)


def fed(*ends: int, **facts: Any) -> ChildView:
    """A child of rank 0, which has the pid 3000, at a pipe."""
    return child(0, pipe(*ends), **facts)


def test_a_child_at_a_pipe_that_only_the_rank_reads_which_waits_for_it() -> None:
    verdict = judged(rank(0, JOIN, at="train.py:9 <module>", children=[fed(1000)]), world=1)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "missing-rank", (0,))
    assert verdict.proved
    assert "write on pipe:[4711]" in verdict.summary


@pytest.mark.parametrize(
    "children",
    [
        pytest.param([fed()], id="nobody knows who holds it"),
        pytest.param([fed(1000, 4711)], id="a stranger holds it, too"),
        pytest.param([fed(1000, still=0.0)], id="it moves"),
        pytest.param([fed(1000, acting_thread="feeder")], id="another thread of it is at work"),
        pytest.param([fed(1000, traced=True, state="stopped")], id="a debugger holds it"),
        pytest.param([], id="there is no child that could tell"),
    ],
)
def test_a_child_that_may_still_go_on(children: list[ChildView]) -> None:
    assert judged(rank(0, JOIN, children=children), world=1).outcome == "running"


def test_two_ranks_that_write_to_each_other() -> None:
    verdict = judged(rank(0, pipe(1001)), rank(1, pipe(1000)))
    assert (verdict.outcome, verdict.culprits, verdict.proved) == ("hang", (0, 1), True)


def test_a_pipe_whose_other_end_a_working_rank_holds() -> None:
    assert judged(rank(0, pipe(1001)), working(1)).outcome == "running"


# Debuggers


def test_a_rank_that_a_debugger_holds_is_no_hang_and_no_suspicion() -> None:
    held = rank(1, state="stopped", traced=True)
    ranks = in_collective(0, "barrier"), held
    verdict = judged(*ranks)
    assert verdict.outcome == "running"
    assert "held by a debugger" in verdict.summary
    assert suspected(*ranks).outcome == "running"


def test_a_rank_that_a_signal_has_stopped_is_a_suspicion() -> None:
    ranks = in_collective(0, "barrier"), stopped(1)
    verdict = judged(*ranks)
    assert verdict.outcome == "running"
    assert "Rank 0 waits for rank 1" in verdict.summary and "stopped by a signal" in verdict.summary
    verdict = suspected(*ranks)
    assert (verdict.outcome, verdict.culprits, verdict.proved) == ("hang", (1,), False)


# Remote calls


def calls(number: int, *peers: int, op: str = "rpc_sync", **facts: Any) -> RankView:
    return rank(number, wait(InRPC, op, peers=peers), rpc=True, **facts)


def test_a_rank_that_never_comes_to_init_rpc() -> None:
    joins = [
        replace(rank(n, wait(JoinsRPC, "init_rpc"), at="a.py:3 main"), joined=False) for n in range(2)
    ]
    late = replace(sleeping(2), joined=False)
    assert judged(*joins, late).outcome == "running"
    verdict = suspected(*joins, late)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "rendezvous-incomplete", (2,))
    assert "init_rpc" in verdict.summary


def test_a_rank_that_has_a_process_group_but_does_not_come_to_init_rpc() -> None:
    joins = replace(rank(0, wait(JoinsRPC, "init_rpc")), joined=True)
    verdict = suspected(joins, replace(sleeping(1), joined=True))
    assert (verdict.cause, verdict.culprits) == ("rendezvous-incomplete", (1,))


def test_a_peer_that_does_not_answer() -> None:
    served = sleeping(2, at="train.py:12 answer")
    ranks = calls(0, 2), calls(1, op="shutdown"), replace(served, rpc=True)
    verdict = judged(*ranks)
    assert verdict.outcome == "running"
    assert "Rank 0 waits for rank 2" in verdict.summary
    verdict = suspected(*ranks)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "missing-rank", (2,))


def test_a_call_may_be_answered_whatever_its_peer_waits_for() -> None:
    assert judged(calls(0, 1), calls(1, op="shutdown")).outcome == "running"


# Groups


def in_group(number: int, *members: int, op: str = "all_reduce") -> RankView:
    made = Group("1", "1", members)
    return rank(number, collective(op, group="1", members=members), groups=(made,))


def test_a_group_with_other_members_on_other_ranks() -> None:
    ranks = [in_group(n, *((0, 1) if n < 2 else (2, 3))) for n in range(4)]
    verdict = judged(*ranks)
    assert (verdict.outcome, verdict.cause) == ("hang", "collective-mismatch")
    assert verdict.culprits == (0, 1, 2, 3)
    assert "group 1 has ranks 0 and 1 on ranks 0 and 1" in verdict.summary


def test_of_unequal_groups_those_of_the_fewer_ranks_are_named() -> None:
    ranks = [in_group(n, *((0, 1, 2, 3) if n != 2 else (2, 3))) for n in range(4)]
    assert judged(*ranks).culprits == (2,)


def test_a_lost_connection_in_a_group_that_is_not_the_same_everywhere() -> None:
    lost = raised(0, "RuntimeError", "Connection closed by peer [127.0.0.1]:4711")
    assert lost.process is not None
    lost = replace(lost, process=replace(lost.process, groups=(Group("1", "1", (0, 1)),)))
    verdict = judged(lost, in_group(1, 1, 2), world=2)
    assert (verdict.outcome, verdict.cause) == ("error", "collective-mismatch")


def test_groups_that_are_the_same_everywhere_are_no_matter() -> None:
    assert judged(in_group(0, 0, 1), working(1)).outcome == "running"


@pytest.mark.parametrize("group", [None, "default"])
def test_calls_of_groups_that_cannot_be_seen_differ_where_no_rank_is_in_anything_else(
    group: str | None,
) -> None:
    def seen(number: int, op: str, group: str | None = None) -> RankView:
        return rank(number, collective(op, None, group=group), groups_made=None)

    reduces = [seen(number, "backward") for number in (1, 2)]
    ranks = seen(0, "barrier", group), *reduces
    assert judged(*ranks).outcome == "running"
    verdict = suspected(*ranks)
    assert (verdict.cause, verdict.culprits, verdict.proved) == ("collective-mismatch", (0,), False)
    assert "Rank 0 is blocked in barrier" in verdict.summary
    assert "ranks 1 and 2 are waiting" in verdict.summary
    assert suspected(seen(0, "barrier", group), sleeping(1)).cause != "collective-mismatch"


# The odd ones out


def odd(*ranks: RankView, places: dict[int, object] | None = None) -> tuple[int, ...]:
    facts = Facts(snapshot(*ranks))
    here = {r: tuple(w.op for w in facts.waits(r)) for r in facts.stuck}
    return odd_ones(facts, places or here)


def test_the_fewest_ranks_without_which_the_others_go_on() -> None:
    two_of_eight = [in_collective(n, "barrier" if n in (2, 6) else "all_reduce") for n in range(8)]
    assert odd(*two_of_eight) == (2, 6)
    two_of_four = [in_collective(n, "barrier" if n < 2 else "all_reduce") for n in range(4)]
    assert odd(*two_of_four) == (0, 1, 2, 3)


def test_each_rank_of_a_ring_would_do() -> None:
    ring = [rank(n, recv((n - 1) % 5)) for n in range(5)]
    assert odd(*ring, places={n: n for n in range(5)}) == (0, 1, 2, 3, 4)


def test_of_ranks_that_only_wait_for_two_others_none_is_odd() -> None:
    """A mesh of 2 x 2, where rank 1 receives from rank 0 in place of a call with it."""

    def column(*members: int) -> InCollective:
        return collective("all_reduce", group=f"column {members[0]}", members=members)

    ranks = [
        rank(0, collective("all_reduce", group="row", members=(0, 1))),
        rank(1, recv(0)),
        rank(2, column(0, 2)),
        rank(3, column(1, 3)),
    ]
    verdict = judged(*ranks)
    assert (verdict.cause, verdict.culprits) == ("collective-mismatch", (0, 1))


def test_two_places_that_are_odd_together() -> None:
    ops = ["all_reduce"] * 6 + ["barrier", "broadcast"]
    assert odd(*(in_collective(n, op) for n, op in enumerate(ops))) == (6, 7)


def test_what_goes_on_once_a_rank_does() -> None:
    graph = Graph.of(snapshot(rank(0, recv(1)), rank(1, recv(2)), rank(2, recv(0))))
    assert graph.stuck == {0, 1, 2}
    assert graph.freed_by({1}) == {0, 1, 2}
    assert graph.freed_by(()) == frozenset()


# Holders and workers that patience gives up


def test_a_lock_whose_holder_is_given_up_is_a_matter_of_the_lock() -> None:
    ranks = sleeping(0), rank(1, lock("cache.lock", 1000)), in_collective(2, "barrier")
    verdict = suspected(*ranks)
    assert (verdict.cause, verdict.culprits, verdict.proved) == ("file-lock", (0,), False)


def test_a_worker_that_is_given_up_is_a_matter_of_the_loader() -> None:
    stuck = worker(1, asleep="nanosleep", still=40.0, idle=40.0)
    verdict = suspected(in_collective(0, "barrier"), rank(1, loading(), children=[stuck]))
    assert (verdict.cause, verdict.culprits) == ("worker-stall", (1,))


def test_a_key_that_only_a_rank_could_set_which_a_debugger_holds() -> None:
    assert judged(rank(0, key("go")), rank(1, state="stopped", traced=True)).outcome == "running"


# Attempts


def test_the_first_attempt_has_the_first_failure() -> None:
    first = Attempt(0, (raised(1, "ValueError", "the loss is not a number", "train.py:30 step"),))
    last = raised(0, "DistNetworkError", "The client socket has failed to connect", "train.py:8 main")
    newest: Snapshot = replace(
        snapshot(last, raised(1, "DistNetworkError", "The client socket has failed to connect"), code=1),
        earlier=(first,),
    )
    newest = replace(newest, job=replace(newest.job, attempt=1))
    verdict = diagnose(steady(newest))
    assert (verdict.cause, verdict.culprits) == ("error", (1,))
    assert verdict.where is not None and verdict.where.line == 30
    assert verdict.summary.startswith("In attempt 0: Rank 1 raised ValueError")
    assert "Attempt 1, the last, then failed: rank 0: DistNetworkError" in verdict.summary
    assert any("DistNetworkError" in said for said in verdict.masked)
