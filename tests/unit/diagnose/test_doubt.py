"""What the first sentence of a hang that is not proved says: who is still, and what is not known."""

from __future__ import annotations

import pytest
from histories import (
    absent,
    child,
    frame,
    in_collective,
    joining,
    loading,
    lock,
    process,
    rank,
    reading,
    resting,
    sleeping,
    snapshot,
    steady,
    stopped,
    wait,
    worker,
)
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import UNTOLD, ChildView, RankView
from helpers.model.waits import InRPC, OnChild, OnCondition, OnIO, OnLock, OnThread

AT = "prep.py:12 wait_a_bit"
CHANGED_AT = (frame("a.py:3 finish"), frame("a.py:9 stop"))
STAYS = "rank 1 has not moved from prep.py:12 for 40 s"


def doubted(*ranks: RankView, **facts: object) -> str:
    """The first sentence of the report on ranks that have not moved for 40 s."""
    ranks = tuple(resting(view) if view.process is not None else view for view in ranks)
    verdict = diagnose(steady(snapshot(*ranks, **facts)), final=True)  # type: ignore[arg-type]
    assert (verdict.outcome, verdict.proved) == ("hang", False), verdict.summary
    return verdict.summary.partition(" not known. ")[0] + " not known."


def beside(view: RankView, **facts: object) -> str:
    """The same of one rank for which another one waits in a barrier."""
    return doubted(in_collective(0, "barrier", members=(0, 1)), view, **facts)


def old(view: ChildView) -> ChildView:
    return replace(view, process=replace(view.process, still=40.0, idle=40.0))


KINDS = {
    "a stop": (stopped(1, AT), "whether somebody lets it go on"),
    "a sleep": (sleeping(1), "how long it sleeps"),
    "a long sleep": (
        sleeping(1, ends=3620.0),
        "whether something wakes it before 3600 s more of sleep are over",
    ),
    "a C call": (rank(1, at=AT, gil_held=True), "whether the C call that it is in returns"),
    "no wait": (rank(1, at=AT), "what it waits for"),
    "an event": (
        rank(1, wait(OnThread, "wait"), at=AT),
        "whether another thread of it, or a callback, still ends the wait",
    ),
    "a lock of its own": (
        rank(1, wait(OnLock, "acquire"), at=AT),
        "whether another thread of it, or a callback, still ends the wait",
    ),
    "a condition": (
        rank(1, wait(OnCondition, "not path.exists()"), at=AT, asleep="nanosleep"),
        "whether something outside still changes `not path.exists()`",
    ),
    "a condition that the program itself changes": (
        rank(1, wait(OnCondition, "not self.ready", changed_at=CHANGED_AT), at=AT, asleep="nanosleep"),
        "whether finish (a.py:3) or stop (a.py:9) still changes `not self.ready`",
    ),
    "a peer outside": (
        rank(1, wait(OnIO, "recvfrom", target="10.0.0.9:443"), at=AT),
        "whether anything still happens at 10.0.0.9:443",
    ),
    "a signal": (
        rank(1, wait(OnIO, "pause", target="a signal"), at=AT),
        "whether somebody still sends it a signal",
    ),
    "a file that nobody knows": (
        rank(1, wait(OnIO, "open"), at=AT),
        "whether something outside still ends `open`",
    ),
    "a lock of a stranger": (
        rank(1, lock("data.lock", 4711), at=AT),
        "whether process 4711, which is outside the job, releases the lock data.lock",
    ),
    "a lock of nobody knows whom": (
        rank(1, lock("data.lock", "unknown"), at=AT),
        "whether somebody who is not seen releases the lock data.lock",
    ),
    "a child that is not seen": (
        rank(1, wait(OnChild, "wait"), at=AT),
        "whether the process that it waits for goes on",
    ),
    "a worker asleep": (
        rank(1, loading(), at=AT, children=[old(worker(1, asleep="nanosleep"))]),
        "how long the DataLoader worker that it waits for sleeps",
    ),
    "a worker stopped": (
        rank(1, loading(), at=AT, children=[old(worker(1, state="stopped"))]),
        "whether somebody lets the DataLoader worker that it waits for go on",
    ),
    "a child": (
        rank(1, wait(OnChild, "wait"), at=AT, children=[old(child(1, stack=()))]),
        "whether the process that it waits for goes on",
    ),
    "a remote call": (
        rank(1, wait(InRPC, "rpc_sync", peers=(0,)), at=AT),
        "whether rpc_sync to rank 0 is still answered",
    ),
}


@pytest.mark.parametrize(("view", "unknown"), KINDS.values(), ids=KINDS)
def test_each_kind_of_wait_has_its_own_doubt(view: RankView, unknown: str) -> None:
    assert beside(view) == f"Probably a hang: {STAYS}; {unknown} is not known."


def test_input_may_be_typed_where_the_terminal_is_the_users() -> None:
    said = beside(rank(1, reading(), at=AT), stdin="inherit")
    assert said == f"Probably a hang: {STAYS}; whether somebody types what it waits for is not known."


def test_kinds_of_doubt_are_told_with_their_ranks() -> None:
    everybody = tuple(range(5))
    said = doubted(
        in_collective(0, "barrier", members=everybody),
        sleeping(1),
        sleeping(2),
        stopped(3, "data.py:3 load"),
        rank(4, at="data.py:3 load"),
    )
    assert said == (
        "Probably a hang: ranks 1 and 2 have not moved from prep.py:12 for 40 s and ranks 3 and 4 have "
        "not moved from data.py:3 for 40 s; how long ranks 1 and 2 sleep, whether somebody lets rank 3 "
        "go on and what rank 4 waits for are not known."
    )


def test_a_rank_that_was_never_started_may_still_be() -> None:
    starting = process(900, "launcher", at=None, still=40.0, idle=40.0)
    said = doubted(rank(0, joining()), absent(1), launchers=[starting], started_by="python")
    assert said == (
        "Probably a hang: rank 0 has not moved from train.py:10 for 40 s; whether rank 1 is still "
        "started is not known."
    )


def test_a_call_to_which_all_have_come_may_still_finish() -> None:
    both = [in_collective(number, "all_reduce", members=(0, 1)) for number in (0, 1)]
    assert doubted(*both) == (
        "Probably a hang: ranks 0 and 1 have not moved from train.py:10 for 40 s; whether all_reduce #1 "
        "still finishes is not known."
    )


def test_what_a_file_tells_of_a_rank_has_no_length() -> None:
    views = [in_collective(0, "barrier", members=(0, 1)), rank(1, at=AT)]
    told = [replace(v, process=replace(v.process, still=UNTOLD, idle=UNTOLD)) for v in views]
    verdict = diagnose(steady(snapshot(*told)), final=True)
    assert verdict.summary.startswith(
        "Probably a hang: rank 1 was last seen at prep.py:12; whether it has moved since is not known. "
    )


def test_a_proved_hang_has_no_doubt() -> None:
    views = [in_collective(0, "barrier"), in_collective(1, "all_reduce")]
    assert "not known" not in diagnose(steady(snapshot(*views))).summary
