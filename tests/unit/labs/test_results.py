"""A run is judged by what it did; each table row is one way of not being healthy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from example_lab import example, write_programs
from msgspec import structs
from msgspec.structs import replace

from helpers.labs.declaration import (
    Condition,
    Printed,
    ResultIs,
    Results,
)
from helpers.labs.lab import Lab, all_labs
from helpers.labs.results import Check, judge, judge_results
from helpers.model.facts import (
    ChildView,
    ErrorView,
    Job,
    ProcessView,
    RankView,
    Report,
    Snapshot,
    Verdict,
)
from helpers.model.frames import Frame

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
    command = ("python", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()")
    view = ProcessView(
        200, "dataloader-worker", command=command, **{"ended": 5.0, "exit_code": 0} | facts
    )
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
            "ok  `loss`: a finite number on every rank",
            "ok  `loss`: the same value on all ranks",
            "ok  `sum`: the same value on all ranks",
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
        {"every rank ends by itself with exit code 0": "rank 1 did not"},
    ),
    (
        "a rank is not seen at all",
        report(rank(0)),
        GOOD,
        {"every rank ends by itself with exit code 0": "rank 1 did not"},
    ),
    (
        "a rank ends with an error",
        report(rank(0, exit_code=1), rank(1)),
        GOOD,
        {"every rank ends by itself with exit code 0": "rank 0 did not"},
    ),
    (
        "a rank is killed",
        report(rank(0), rank(1, exit_code=None, signal=9)),
        GOOD,
        {"every rank ends by itself with exit code 0": "rank 1 did not"},
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
            "`loss`: a finite number on every rank": "it is not on 1 of 2",
            "`loss`: the same value on all ranks": "a rank has not written it",
            "`sum`: the same value on all ranks": "a rank has not written it",
        },
    ),
    (
        "no result",
        HEALTHY,
        [],
        {
            "every rank leaves one result": "none from ranks 0 and 1",
            "`loss`: a finite number on every rank": "there is no result",
            "`loss`: the same value on all ranks": "there is no result",
            "`sum`: the same value on all ranks": "there is no result",
        },
    ),
    (
        "the loss is lost",
        HEALTHY,
        with_value("loss", NAN),
        {
            "`loss`: a finite number on every rank": "it is not on 1 of 2",
            "`loss`: the same value on all ranks": "the ranks differ",
        },
    ),
    (
        "a loss that is not a number",
        HEALTHY,
        with_value("loss", True),
        {
            "`loss`: a finite number on every rank": "it is not on 1 of 2",
            "`loss`: the same value on all ranks": "the ranks differ",
        },
    ),
    (
        "parameters differ",
        HEALTHY,
        with_value("sum", 1.5),
        {"`sum`: the same value on all ranks": "the ranks differ"},
    ),
    (
        "a worker joined",
        report(
            rank(0, worker(joined=0)), rank(1, worker(joined=1)), cause="duplicate-rank", outcome="error"
        ),
        GOOD,
        {"no two processes act as one rank": "a child joined as ranks 0 and 1"},
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
            "every rank ends by itself with exit code 0": "rank 1 did not",
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


def test_a_run_that_fails_is_told_in_one_line() -> None:
    fault = ErrorView("ValueError", "no", stack=(Frame("mine.py", 5, "main"),))
    failed = report(rank(0, exit_code=1, error=fault), rank(1, **ALIVE), cause="error", outcome="error")
    failed = replace(failed, verdict=replace(failed.verdict, culprits=(0,), where=fault.stack[0]))
    slow = report(rank(0, **ALIVE), rank(1, **ALIVE), cause="missing-rank", outcome="running")
    judged = judge_results(failed, [], 2, KEPT)
    assert repr(judged) == (
        "not yet: the run fails (error): ValueError at mine.py:5. 8 checks not evaluated."
    )
    assert "<table>" not in judged._repr_html_()
    assert not judged.passed
    assert judge_results(slow, GOOD, 2, KEPT).verdict == (
        "not yet: the run does not end in time (missing-rank). 8 checks not evaluated."
    )


CONDITIONS: list[tuple[Condition, dict[str, Any], bool]] = [
    (ResultIs(what="w", otherwise="o", key="x", value=True), {"x": [True, True]}, True),
    (ResultIs(what="w", otherwise="o", key="x", value=True), {"x": [True, False]}, False),
    (ResultIs(what="w", otherwise="o", key="x", value=True), {}, False),
    (Printed(what="w", otherwise="o", text="saved", ranks=(0,)), {"rank 0": ["it is saved"]}, True),
    (Printed(what="w", otherwise="o", text="saved", ranks=(0,)), {"rank 0": ["done"]}, False),
    (
        Printed(what="w", otherwise="o", text="saved", ranks=(0,)),
        {"rank 0": ["saved"], "rank 1": ["done", "saved"]},
        False,
    ),
    (
        ResultIs(what="w", otherwise="o", key="x", value=1, knobs={"mode": "lazy"}),
        {"x": [2, 2]},
        True,
    ),
]


@pytest.mark.parametrize(("condition", "seen", "met"), CONDITIONS)
def test_the_task_has_conditions_of_its_own(
    condition: Condition, seen: dict[str, Any], met: bool, tmp_path: Path
) -> None:
    lab = example(write_programs(tmp_path))
    turn = structs.replace(lab.file.turns["mine"], conditions=(condition,))
    lab = Lab(lab.folder, structs.replace(lab.file, turns={"mine": turn}))
    for number, result in enumerate(GOOD):
        left = result | {"x": seen["x"][number]} if "x" in seen else result
        (tmp_path / f"result-rank{number}.json").write_text(json.dumps(left))
    healthy = judge(lab, "broken", HEALTHY, tmp_path, {})
    judged = judge(lab, "broken", HEALTHY, tmp_path, {}, task=seen)
    assert healthy.passed
    assert judged.passed == met
    if not met:
        assert judged.checks[-1] == Check("w", "o")


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
    assert "<code>&lt;b&gt;</code>: the same value on all ranks" in html
