"""When a verdict stands and when a run is over, from tables of histories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from histories import (
    absent,
    child,
    ended,
    in_collective,
    launcher,
    raised,
    rank,
    resting,
    sleeping,
    snapshot,
    working,
)
from msgspec.structs import replace

from helpers.diagnose.settling import (
    ARRIVES,
    ENDED,
    SETTLE,
    SETTLE_QUIET,
    STATUS_COMES,
    WATCHED_LEAST,
    Ruling,
    Settling,
    SettlingOfAttached,
    is_over,
)
from helpers.model.facts import RankView, Snapshot
from helpers.model.frames import Frame

EVERY = 0.25
MISMATCH = (in_collective(0, "barrier"), in_collective(1, "all_reduce"))
FAILED = raised(1, "ValueError", "no data", "train.py:9 load")


def last(seconds_ago: float, **facts: Any) -> RankView:
    return ended(1, None, time=20.0 - seconds_ago, **facts)


@pytest.mark.parametrize(
    ("other", "over"),
    [
        (ended(1, 0), True),
        (ended(1, None, signal=9), True),
        (rank(1), False),
        (last(0.1), False),
        (last(STATUS_COMES), True),
    ],
    ids=["exit code", "signal", "runs", "just gone, nobody knows how", "gone, nobody will know how"],
)
def test_a_run_is_over_when_every_end_is_known(other: RankView, over: bool) -> None:
    assert is_over(snapshot(ended(0, 0), other, code=0, time=20.0)) == over


def test_a_run_is_not_over_while_its_command_runs() -> None:
    assert not is_over(snapshot(ended(0, 0), ended(1, 0)))


def during(seconds: float, *ranks: RankView, begin: float = 10.0, **facts: Any) -> Iterator[Snapshot]:
    """A job in which nothing changes for some seconds."""
    for step in range(int(seconds / EVERY) + 1):
        yield snapshot(*ranks, time=begin + step * EVERY, **facts)


def settled_after(settling: Settling, history: Iterable[Snapshot]) -> tuple[float, Ruling] | None:
    """Seconds from the first snapshot until the verdict stands, and the ruling; None if it does not."""
    first = None
    for moment in history:
        first = moment.time if first is None else first
        ruling = settling.take(moment)
        if ruling.settled:
            return moment.time - first, ruling
    return None


@dataclass(frozen=True)
class Case:
    """A job in which nothing changes any more, and the seconds after which its verdict stands.

    Attributes:
        within: None: it does not stand within 40 s.
    """

    name: str
    ranks: Sequence[RankView]
    within: tuple[float, float] | None
    outcome: str = ""
    facts: tuple[tuple[str, Any], ...] = ()


CASES = [
    Case("all work", (working(0), working(1)), None),
    Case("a proved hang", MISMATCH, (0.5, 1.0), "hang"),
    Case(
        "a proved hang while a rank still imports",
        (*MISMATCH, rank(2, state="importing", at=None)),
        (SETTLE, SETTLE + 1.0),
        "hang",
    ),
    Case(
        "a proved hang while a rank has not come to where it blocks",
        (in_collective(0, "barrier"), in_collective(1, "barrier", still=0.2, idle=0.2), absent(2)),
        (ARRIVES, ARRIVES + 1.0),
        "hang",
    ),
    Case(
        "a proved hang beside a rank that works on",
        (*MISMATCH, working(2)),
        (ARRIVES, ARRIVES + 1.0),
        "hang",
    ),
    Case(
        "a proved hang beside a rank that sleeps", (*MISMATCH, resting(sleeping(2))), (0.0, 1.0), "hang"
    ),
    Case("a suspicion alone", (in_collective(0, "barrier"), resting(sleeping(1))), None),
    Case("an error, and the other rank works on", (working(0), FAILED), (SETTLE, SETTLE + 1.0), "error"),
    Case(
        "an error, and the other rank is blocked for good",
        (in_collective(0, "barrier"), FAILED),
        (1.0, 1.5),
        "error",
    ),
    Case(
        "an error, and the launcher is about to end the job",
        (in_collective(0, "barrier"), FAILED),
        (SETTLE, SETTLE + 1.0),
        "error",
        (("launchers", [replace(launcher(), still=0.0, waits=())]),),
    ),
    Case(
        "an error, and all have ended",
        (ended(0, 1), FAILED),
        (0.0, 0.0),
        "error",
        (("code", 1),),
    ),
    Case("all ended well", (ended(0, 0), ended(1, 0)), (0.0, 0.0), "ok", (("code", 0),)),
    Case("all ended well, the command runs on", (ended(0, 0), ended(1, 0)), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_when_a_verdict_stands(case: Case) -> None:
    found = settled_after(Settling(patience=5.0), during(40.0, *case.ranks, **dict(case.facts)))
    if case.within is None:
        assert found is None
        return
    assert found is not None
    seconds, ruling = found
    assert case.within[0] <= seconds <= case.within[1]
    assert ruling.verdict.outcome == case.outcome


def test_an_error_waits_until_the_launcher_may_start_no_more_ranks() -> None:
    restarts = replace(snapshot().job, restarts=2)
    history = (replace(look, job=restarts) for look in during(40.0, in_collective(0, "barrier"), FAILED))
    assert settled_after(Settling(), history) is None


def test_a_rank_that_is_there_twice_is_given_time_to_end() -> None:
    ranks = (working(0), working(1, children=[child(1, joined_as=1)]))
    found = settled_after(Settling(), during(60.0, *ranks))
    assert found is not None
    assert found[1].verdict.cause == "duplicate-rank" and found[0] >= SETTLE_QUIET


@pytest.mark.parametrize("stop", [True, False])
def test_a_suspicion_stands_only_where_that_is_asked_for(stop: bool) -> None:
    ranks = (in_collective(0, "barrier"), resting(sleeping(1)))
    found = settled_after(Settling(patience=5.0, stop_on_suspicion=stop), during(10.0, *ranks))
    assert (found is not None) == stop
    if found is not None:
        assert (found[1].verdict.outcome, found[1].verdict.proved) == ("hang", False)


def test_when_the_time_is_up_a_suspicion_is_the_outcome_and_the_run_is_over() -> None:
    ranks = (in_collective(0, "barrier"), resting(sleeping(1)))
    found = settled_after(Settling(patience=5.0, max_seconds=12.0), during(10.0, *ranks))
    assert found is not None and found[0] == 2.0
    assert found[1].over and (found[1].verdict.outcome, found[1].verdict.proved) == ("hang", False)


def test_a_verdict_that_goes_back_to_running_starts_to_settle_again() -> None:
    settling = Settling()
    assert settled_after(settling, during(8.0, working(0), FAILED)) is None
    assert settled_after(settling, during(2.0, working(0), working(1), begin=19.0)) is None
    found = settled_after(settling, during(20.0, working(0), FAILED, begin=22.0))
    assert found is not None and found[0] >= SETTLE


@pytest.mark.parametrize(
    ("ranks", "after"),
    [
        ((working(0), working(1)), WATCHED_LEAST),
        ((in_collective(0, "barrier"), resting(sleeping(1), 0.5)), 6.0),
        ((in_collective(0, "barrier"), in_collective(1, "barrier")), WATCHED_LEAST + ARRIVES),
        (MISMATCH, 0.5),
    ],
    ids=["all work", "one rests", "all wait for each other", "a proved hang"],
)
def test_how_long_a_running_job_is_watched(ranks: Sequence[RankView], after: float) -> None:
    settling = SettlingOfAttached(patience=5.0, since=10.0)
    found = settled_after(settling, during(20.0, *ranks))
    assert found is not None and found[0] == pytest.approx(after, abs=0.5)


def test_who_all_wait_for_each_other_are_looked_at_until_a_proof_has_lasted() -> None:
    """On a busy machine the first look that shows a rank at rest may come late."""
    settling = SettlingOfAttached(patience=5.0, since=10.0)
    assert settled_after(settling, during(2.0, MISMATCH[0], working(1), begin=10.0)) is None
    assert not settling.take(snapshot(*MISMATCH, time=13.5)).settled
    ruling = settling.take(snapshot(*MISMATCH, time=14.2))
    assert (ruling.settled, ruling.verdict.outcome, ruling.verdict.proved) == (True, "hang", True)


@pytest.mark.parametrize(("ranks", "after"), [((working(0), working(1)), 8.0), (MISMATCH, 0.5)])
def test_a_job_is_watched_as_long_as_is_asked_unless_it_hangs(
    ranks: Sequence[RankView], after: float
) -> None:
    settling = SettlingOfAttached(patience=5.0, since=10.0, least=8.0)
    found = settled_after(settling, during(20.0, *ranks))
    assert found is not None and found[0] == pytest.approx(after, abs=0.5)


def test_a_proof_waits_for_what_the_job_has_been_asked() -> None:
    settling = SettlingOfAttached(patience=5.0, since=10.0)
    asked = [replace(look, asked=True) for look in during(4.0, *MISMATCH)]
    assert settled_after(settling, asked) is None
    found = settled_after(settling, during(1.0, *MISMATCH, begin=14.25))
    assert found is not None and found[1].verdict.proved


@pytest.mark.parametrize(("call", "settled"), [("next_rendezvous", False), ("_monitor_workers", True)])
def test_a_launcher_that_waits_for_nodes_is_watched_on(call: str, settled: bool) -> None:
    at = Frame("/env/torch/distributed/elastic/api.py", 70, call, user=False)
    agent = replace(launcher(still=3.0, idle=3.0, stack=(at,)), waits=())
    settling = SettlingOfAttached(patience=5.0, since=10.0)
    assert settling.take(snapshot(time=10.0 + WATCHED_LEAST, launchers=(agent,))).settled == settled


def test_a_job_that_ends_while_it_is_watched_says_so() -> None:
    gone = snapshot(ended(0, None), time=11.0)
    gone = replace(gone, job=replace(gone.job, ended=11.0))
    ruling = SettlingOfAttached(patience=5.0, since=10.0).take(gone)
    assert ruling.settled and ruling.verdict.summary == ENDED


def test_a_running_job_is_watched_from_the_first_stack_on() -> None:
    """On a busy machine it takes seconds to read one."""
    ranks = (working(0), working(1))
    blind = [replace(view, process=replace(view.process, stack=(), where=None)) for view in ranks]
    settling = SettlingOfAttached(patience=5.0, since=10.0)
    assert settled_after(settling, during(2.5, *blind)) is None
    found = settled_after(settling, during(20.0, *ranks, begin=12.75))
    assert found is not None and found[0] == pytest.approx(WATCHED_LEAST, abs=0.5)
