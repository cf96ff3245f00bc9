"""A job of which each file shows some ranks is judged as if all had been seen from one place."""

from __future__ import annotations

import pytest
from histories import joining, rank, snapshot
from msgspec.structs import replace
from repository import RECORDINGS

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.network import SEE_THE_REST
from helpers.diagnose.nodes import judge, together, with_rest
from helpers.model.facts import ErrorView, ProcessView, RankView, Snapshot, Verdict
from helpers.model.part import Part
from helpers.observe.recording import load

JOBS = ("barrier_for_one", "skips_bad_loss", "uneven_batches", "left_early")


def whole_of(name: str) -> Snapshot:
    *_, whole = load(RECORDINGS / f"{name}.jsonl.gz").snapshots()
    return whole


def seen_by(whole: Snapshot, ranks: set[int], host: str = "") -> Snapshot:
    """What a node with some of the ranks sees."""
    views = [
        replace(view, host=host)
        if view.rank in ranks
        else RankView(view.rank, view.local_rank, state="unseen")
        for view in whole.ranks
    ]
    return replace(whole, ranks=tuple(views), job=replace(whole.job, single_node=False))


def halves(name: str) -> tuple[Snapshot, Snapshot]:
    """Rank 0 on one node, the others on another one whose clock runs ahead."""
    whole = whole_of(name)
    rest = {view.rank for view in whole.ranks if view.rank}
    return seen_by(whole, {0}, "n0"), seen_by(whole, rest, "n1")


def cut_off(seen: Snapshot) -> Snapshot:
    """The same, after a rank elsewhere has gone."""
    error = ErrorView("RuntimeError", "Connection closed by peer [10.0.0.1]:7", time=seen.time)

    def failed(process: ProcessView) -> ProcessView:
        ended = {"ended": seen.time, "exit_code": 1, "error": error, "state": "exited", "waits": ()}
        return replace(process, **ended)  # type: ignore[arg-type]

    views = [
        view if view.process is None else replace(view, state="exited", process=failed(view.process))
        for view in seen.ranks
    ]
    return replace(seen, ranks=tuple(views))


def judged(newest: Snapshot) -> tuple[object, ...]:
    found = diagnose([replace(newest, time=newest.time - 1.0), newest], final=True)
    return found.outcome, found.cause, found.culprits, found.where


def later(process: ProcessView, by: float) -> ProcessView:
    ended = None if process.ended is None else process.ended + by
    return replace(process, read_at=process.read_at + by, ended=ended)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("ahead", [0.0, 500.0, -500.0])
def test_two_halves_are_the_whole(name: str, ahead: float) -> None:
    whole = whole_of(name)
    first, second = halves(name)
    shifted = replace(
        second,
        time=second.time + ahead,
        ranks=tuple(
            view if view.process is None else replace(view, process=later(view.process, ahead))
            for view in second.ranks
        ),
    )
    found = together([first, shifted])
    assert judged(found) == judged(replace(whole, job=replace(whole.job, single_node=False)))
    assert [(view.node, view.host) for view in found.ranks] == [
        (0, "n0"),
        *((1, "n1") for _ in found.ranks[1:]),
    ]
    assert found.job.nodes_seen == 2


def test_ranks_of_one_host_are_on_one_node() -> None:
    whole = whole_of("barrier_for_one")
    found = together([seen_by(whole, {view.rank or 0}, "n0") for view in whole.ranks])
    assert {(view.node, view.host) for view in found.ranks} == {(0, "n0")}
    assert found.job.nodes_seen == 1


def test_what_follows_from_the_end_of_another_node_is_taken_back() -> None:
    whole = whole_of("barrier_for_one")
    first, second = halves("barrier_for_one")
    verdict, shown = judge([Part(first, first), Part(cut_off(second), second)])
    found = verdict.outcome, verdict.cause, verdict.culprits, verdict.where
    assert found == judged(replace(whole, job=replace(whole.job, single_node=False)))
    assert verdict.masked == ("RuntimeError: Connection closed by peer [10.0.0.1]:7 (rank 1)",)
    assert {view.state for view in shown.ranks} == {"waiting"}


def test_ranks_are_lost_whose_recording_breaks_off_as_others_lose_them() -> None:
    first, second = halves("well_endless")
    verdict, _ = judge([Part(first, first, over=False), Part(cut_off(second), second)])
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "rank-exited", (0,))
    assert "in a way that nobody here saw" in verdict.summary


def test_nobody_is_lost_where_the_instrument_has_ended_the_job() -> None:
    first, second = halves("well_endless")
    verdict, _ = judge([Part(first, first), Part(cut_off(second), second)])
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("running", "none", ())


def test_a_failure_of_its_own_is_not_taken_back() -> None:
    first, second = halves("well_endless")
    broken = cut_off(second)
    error = ErrorView("ValueError", "no such file")
    views = [
        view if view.process is None else replace(view, process=replace(view.process, error=error))
        for view in broken.ranks
    ]
    failed = replace(broken, ranks=tuple(views))
    verdict, _ = judge([Part(first, first, over=False), Part(failed, second)])
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "error", (1,))


@pytest.mark.parametrize(
    ("patience", "attached", "outcome"),
    [(30.0, False, "running"), (10.0, False, "hang"), (30.0, True, "hang")],
    ids=["not yet", "with less patience", "attached, and all wait for each other"],
)
def test_recordings_are_judged_with_the_patience_of_those_who_looked(
    patience: float, attached: bool, outcome: str
) -> None:
    waits = [rank(number, joining(), still=12.0, idle=12.0) for number in (0, 1)]
    whole = snapshot(*waits, time=60.0)
    first, second = seen_by(whole, {0}, "n0"), seen_by(whole, {1}, "n1")
    parts = [Part(first, first, patience=patience, attached=attached), Part(second, second)]
    verdict, _ = judge(parts)
    assert (verdict.outcome, verdict.proved) == (outcome, False)


def test_a_machine_alone_says_how_to_see_the_others() -> None:
    seen, _ = halves("barrier_for_one")
    said = with_rest(seen, Verdict("running", "none")).not_seen[-1]
    assert said.startswith(
        "rank 1 runs on other machines. To see all of them, put `stuck-ranks diagnose"
    )
    whole = whole_of("barrier_for_one")
    assert with_rest(seen, Verdict("ok", "none")) == seen
    assert with_rest(seen, Verdict("error", "unknown", summary=f"It failed. {SEE_THE_REST}.")) == seen
    assert with_rest(whole, Verdict("running", "none")) == whole


def test_half_of_a_job_blames_nobody_that_it_has_not_seen() -> None:
    *_, whole = load(RECORDINGS / "barrier_for_one.jsonl.gz").snapshots()
    _, cause, culprits, _ = judged(seen_by(whole, {0}))
    assert cause in ("none", "unknown")
    assert culprits == ()
