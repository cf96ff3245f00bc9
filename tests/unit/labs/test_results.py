"""A run is judged by what it did; each table row is one way of not being healthy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from helpers.labs.declaration import Results
from helpers.labs.lab import Lab, all_labs
from helpers.labs.results import judge_results
from helpers.model.facts import ChildView, Job, ProcessView, RankView, Report, Snapshot, Verdict

KEPT = Results("RESULTS_DIR", "result-rank{rank}.json", equal=("loss", "sum"), finite=("loss",))
GOOD: list[dict[str, Any]] = [
    {"rank": rank, "world_size": 2, "loss": 0.5, "sum": 1.25} for rank in (0, 1)
]
NAN = float("nan")


def process(rank: int, **facts: Any) -> ProcessView:
    return ProcessView(100 + rank, "rank", state="exited", **{"ended": 5.0, "exit_code": 0} | facts)


def report(
    *ranks: RankView, cause: Any = "none", outcome: Any = "ok", ended: float | None = 6.0
) -> Report:
    job = Job(("python", "x.py"), world_size=2, exit_code=0, ended=ended)
    return Report(Verdict(outcome, cause), Snapshot(7.0, job, ranks))


def rank(number: int, *children: ChildView, **facts: Any) -> RankView:
    return RankView(number, state="exited", process=process(number, **facts), children=children)


def worker(joined: int | None = None, **facts: Any) -> ChildView:
    view = ProcessView(200, "dataloader-worker", **{"ended": 5.0, "exit_code": 0} | facts)
    return ChildView(view, worker_id=0, joined_as_rank=joined)


HEALTHY = report(rank(0, worker()), rank(1, worker()))


def test_a_healthy_run_passes() -> None:
    judgement = judge_results(HEALTHY, GOOD, 2, KEPT)
    assert judgement.passed
    assert repr(judgement) == "\n".join(
        [
            "passed: 8 checks",
            "ok  the world size is 2",
            "ok  every rank ends by itself with exit code 0",
            "ok  every rank leaves one result",
            "ok  loss is a finite number on every rank",
            "ok  loss is equal on all ranks",
            "ok  sum is equal on all ranks",
            "ok  no two processes act as one rank",
            "ok  nothing is left running",
        ]
    )


def with_value(key: str, value: object) -> list[dict[str, Any]]:
    """GOOD with another value on rank 1."""
    return [GOOD[0], GOOD[1] | {key: value}]


ALIVE = {"ended": None, "exit_code": None}
SICK: list[tuple[str, Report, list[dict[str, Any]], dict[str, str]]] = [
    (
        "one rank trains alone",
        HEALTHY,
        [GOOD[0] | {"world_size": 1}],
        {"the world size is 2": "it is 1", "every rank leaves one result": "none from rank 1"},
    ),
    (
        "a rank never started",
        report(rank(0), RankView(1)),
        GOOD,
        {"every rank ends by itself with exit code 0": "not rank 1"},
    ),
    (
        "a rank is not seen at all",
        report(rank(0)),
        GOOD,
        {"every rank ends by itself with exit code 0": "not rank 1"},
    ),
    (
        "a rank ends with an error",
        report(rank(0, exit_code=1), rank(1)),
        GOOD,
        {"every rank ends by itself with exit code 0": "not rank 0"},
    ),
    (
        "an error ends the run while the other rank and its worker are still there",
        report(
            rank(0, worker(exit_code=1), exit_code=1),
            rank(1, worker(joined=1, **ALIVE), **ALIVE),
            cause="address-in-use",
            outcome="error",
        ),
        GOOD,
        {
            "every rank ends by itself with exit code 0": "not rank 0, 1",
            "no two processes act as one rank": "the run failed before this could be seen",
            "nothing is left running": "the run failed before this could be seen",
        },
    ),
    (
        "a rank is killed",
        report(rank(0), rank(1, exit_code=None, signal=9)),
        GOOD,
        {"every rank ends by itself with exit code 0": "not rank 1"},
    ),
    (
        "two results of one rank",
        HEALTHY,
        [GOOD[0], GOOD[0], GOOD[1]],
        {"every rank leaves one result": "more than one from rank 0"},
    ),
    (
        "a result that is cut off",
        HEALTHY,
        [GOOD[0], {}],
        {
            "the world size is 2": "it is unknown",
            "every rank leaves one result": "none from rank 1; 1 without a rank of this job",
            "loss is a finite number on every rank": "it is not on 1 of 2",
            "loss is equal on all ranks": "a rank has not written it",
            "sum is equal on all ranks": "a rank has not written it",
        },
    ),
    (
        "no result",
        HEALTHY,
        [],
        {
            "every rank leaves one result": "none from rank 0, 1",
            "loss is a finite number on every rank": "there is no result",
            "loss is equal on all ranks": "there is no result",
            "sum is equal on all ranks": "there is no result",
        },
    ),
    (
        "the loss is lost",
        HEALTHY,
        with_value("loss", NAN),
        {
            "loss is a finite number on every rank": "it is not on 1 of 2",
            "loss is equal on all ranks": "the ranks differ",
        },
    ),
    (
        "a loss that is not a number",
        HEALTHY,
        with_value("loss", True),
        {
            "loss is a finite number on every rank": "it is not on 1 of 2",
            "loss is equal on all ranks": "the ranks differ",
        },
    ),
    (
        "parameters differ",
        HEALTHY,
        with_value("sum", 1.5),
        {"sum is equal on all ranks": "the ranks differ"},
    ),
    (
        "a worker joined",
        report(
            rank(0, worker(joined=0)), rank(1, worker(joined=1)), cause="duplicate-rank", outcome="error"
        ),
        GOOD,
        {"no two processes act as one rank": "a child joined as rank 0, 1"},
    ),
    (
        "duplicates that are no children",
        report(rank(0), rank(1), cause="duplicate-rank"),
        GOOD,
        {"no two processes act as one rank": "the report says they do"},
    ),
    (
        "a rank is left",
        report(rank(0), rank(1, **ALIVE)),
        GOOD,
        {
            "every rank ends by itself with exit code 0": "not rank 1",
            "nothing is left running": "a rank or a worker was still there when the run was ended",
        },
    ),
    (
        "a worker is left",
        report(rank(0, worker(**ALIVE)), rank(1)),
        GOOD,
        {"nothing is left running": "a rank or a worker was still there when the run was ended"},
    ),
    (
        "the launcher goes on",
        report(rank(0), rank(1), ended=None),
        GOOD,
        {"nothing is left running": "the job did not end by itself"},
    ),
]


@pytest.mark.parametrize(
    ("run", "results", "failed"), [row[1:] for row in SICK], ids=[row[0] for row in SICK]
)
def test_a_sick_run_fails_the_checks_that_it_should(
    run: Report, results: list[dict[str, Any]], failed: dict[str, str]
) -> None:
    judgement = judge_results(run, results, 2, KEPT)
    assert {check.what: check.why for check in judgement.checks if not check.passed} == failed
    assert not judgement.passed
    assert judgement.verdict == f"not yet: {len(failed)} of 8 fail"


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_what_each_lab_keeps_of_a_run_is_judged(lab: Lab) -> None:
    kept = lab.file.results
    assert "loss" in kept.finite
    assert {"loss", "parameters"} <= set(kept.equal)
    keys = dict.fromkeys([*kept.finite, *kept.equal], 0.5)
    good = [{"rank": number, "world_size": 2, **keys} for number in (0, 1)]
    assert judge_results(HEALTHY, good, 2, kept).passed
    for key in keys:
        changed = judge_results(HEALTHY, [good[0], good[1] | {key: 0.75}], 2, kept)
        assert changed.passed == (key not in kept.equal)
    for key in kept.finite:
        assert not judge_results(HEALTHY, [result | {key: NAN} for result in good], 2, kept).passed


def test_helper_processes_of_python_may_end_a_little_later() -> None:
    tracker = replace(worker(**ALIVE), worker_id=None)
    assert judge_results(report(rank(0, tracker), rank(1)), GOOD, 2, KEPT).passed


def test_html_says_the_same_and_escapes() -> None:
    kept = structs.replace(KEPT, equal=("<b>",))
    html = judge_results(HEALTHY, GOOD, 2, kept)._repr_html_()
    assert "not yet: 1 of 7 fail" in html
    assert "<b>" not in html
    assert "&lt;b&gt; is equal on all ranks" in html
