"""A repair is judged by what the job still does; each shortcut is refused for its own reason."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.labs.repair import RankWork, Work, judge_repair, work_of
from helpers.model.facts import ChildView, Job, ProcessView, RankView, Report, Snapshot, Verdict

HUNG = Work(2, {0: RankWork(5, 1), 1: RankWork(5, 1)}, {"epoch # loss #": 2})
FIXED = Work(
    2,
    {0: RankWork(8, 1, finished=True), 1: RankWork(8, 1, finished=True)},
    {"epoch # loss #": 4, "saved #": 1},
    ["saved #"],
)
OUTPUT = {
    "rank 0": ["epoch 0 loss 0.5", "epoch 1 loss 4e-1", "saved 3.pt"],
    "rank 1": ["x.py:7: UserWarning: no accelerator", "  warnings.warn("],
}


def rank(number: int, *, workers: int = 1, **facts: Any) -> RankView:
    known = {"ended": 5.0, "exit_code": 0, "interpreter_finished": True, "calls": 8} | facts
    process = ProcessView(100 + number, "rank", state="exited", **known)
    loaders = [
        ChildView(ProcessView(200 + at, "dataloader-worker", ended=5.0, exit_code=0), worker_id=at)
        for at in range(workers)
    ]
    return RankView(number, state="exited", process=process, children=tuple(loaders))


def report(*ranks: RankView, cause: Any = "none", outcome: Any = "ok", size: int = 2) -> Report:
    job = Job(("python", "train.py"), world_size=size, exit_code=0, ended=6.0)
    return Report(Verdict(outcome, cause), Snapshot(7.0, job, ranks))


def test_a_repair_passes() -> None:
    judged = judge_repair(HUNG, FIXED, report(rank(0), rank(1)), OUTPUT)
    assert judged.passed, judged


def test_what_a_run_does_is_its_calls_its_workers_and_its_kinds_of_lines() -> None:
    assert work_of(report(rank(0), rank(1, workers=0)), OUTPUT) == Work(
        2,
        {0: RankWork(8, 1, finished=True), 1: RankWork(8, 0, finished=True)},
        {"epoch # loss #": 2, "saved #": 1},
        ["saved #"],
    )


@pytest.mark.parametrize(
    ("run", "output", "why"),
    [
        (report(rank(0), rank(1, calls=3)), OUTPUT, "rank 1 made 3 calls"),
        (report(rank(0, calls=4), rank(1, calls=4)), OUTPUT, "ranks 0 and 1 made 4, 4 calls"),
        (report(rank(0), rank(1, workers=0)), OUTPUT, "rank 1 had none"),
        (report(rank(0), rank(1, exit_code=3)), OUTPUT, "rank 1 did not"),
        (report(rank(0), rank(1, interpreter_finished=False)), OUTPUT, "rank 1 left before"),
        (report(rank(0), size=1), OUTPUT, "it is 1"),
        (report(rank(0), rank(1)), {}, "nothing like `saved #` was printed"),
        (
            report(rank(0), rank(1)),
            {"rank 0": OUTPUT["rank 0"][:2]},
            "nothing like `saved #` was printed",
        ),
        (report(rank(0), rank(1)), {"rank 0": OUTPUT["rank 0"][1:]}, "2 of 5 lines were printed"),
    ],
)
def test_a_shortcut_is_refused(run: Report, output: dict[str, list[str]], why: str) -> None:
    judged = judge_repair(HUNG, FIXED, run, output)
    assert not judged.passed
    assert why in repr(judged)


def test_a_run_that_still_hangs_says_so() -> None:
    hangs = report(rank(0), rank(1), outcome="hang", cause="file-lock")
    assert judge_repair(HUNG, FIXED, hangs, OUTPUT).verdict.startswith("not yet: the run hangs")


def test_one_rank_less_may_be_counted_where_one_was_missing() -> None:
    hung = Work(3, {0: RankWork(), 1: RankWork()}, {})
    fixed = Work(2, FIXED.ranks, FIXED.lines, FIXED.last)
    assert judge_repair(hung, fixed, report(rank(0), rank(1)), OUTPUT).passed
    three = report(rank(0), rank(1), rank(2), size=3)
    assert judge_repair(hung, fixed, three, OUTPUT).passed
