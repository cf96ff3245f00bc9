"""What is asked about a job that waits for one of its ranks."""

from __future__ import annotations

from typing import get_args

import pytest
from histories import snapshot, working
from msgspec.structs import replace

from helpers.labs.asked import Asked
from helpers.labs.prediction import practised
from helpers.labs.stragglers import KINDS, SEEN
from helpers.model.facts import Report, Verdict
from helpers.model.frames import Frame
from helpers.model.slow import Share, Slow, SlowKind

DATA, STEP = Frame("data.py", 31, "decode"), Frame("train.py", 12, "step")
SLOW = Slow(
    (1,),
    0.6,
    "input",
    9.0,
    DATA,
    shares=(
        Share((1,), 0.6, 0.0, DATA, "input"),
        Share((0,), 0.02, 0.6, waits_at=STEP),
        Share((2,), 0.0, 0.6, waits_at=STEP),
    ),
)


def asked(slow: Slow | None, outcome: str = "ok") -> dict[str, Asked]:
    verdict = Verdict(outcome, "none", slow=slow)  # type: ignore[arg-type]
    report = Report(verdict, snapshot(working(0), working(1), working(2)))
    texts = {DATA: "pixels = decode(raw)", STEP: "loss.backward()"}
    return {one.text.partition("?")[0]: one for one in practised(report, lambda at: texts[at])}


def test_the_rank_the_line_and_what_takes_the_time_are_asked_for() -> None:
    who, where, kind = asked(SLOW).values()
    assert who.choices == ("rank 0", "rank 1", "rank 2")
    assert who.right == {"rank 1"}
    assert who.feedback(["rank 0"]) == (
        "No: rank 1. Rank 0: others wait for it 2 % of the time, it waits for others 60 %."
    )
    assert where.choices == ("data.py:31: pixels = decode(raw)", "train.py:12: loss.backward()")
    assert where.right == {"data.py:31: pixels = decode(raw)"}
    assert where.feedback(["train.py:12: loss.backward()"]).endswith(
        "There ranks 0 and 2 wait for others."
    )
    assert kind.right == {"input: it loads data"}
    assert len(kind.choices) == KINDS


def test_several_that_are_waited_for_together_have_to_be_named_together() -> None:
    shares = (Share((1, 2), 0.6, 0.0, DATA, "input"), Share((0,), 0.0, 0.6, waits_at=STEP))
    who, *_ = asked(replace(SLOW, ranks=(1, 2), shares=shares)).values()
    assert who.is_right(["rank 1", "rank 2"])
    assert not who.is_right(["rank 1"])


@pytest.mark.parametrize("kind", list(SEEN))
def test_what_takes_the_time_is_among_the_choices(kind: SlowKind) -> None:
    shares = (replace(SLOW.shares[0], kind=kind), *SLOW.shares[1:])
    *_, what = asked(replace(SLOW, kind=kind, shares=shares)).values()
    (right,) = what.right
    assert right in what.choices and right.startswith(f"{kind}: ")
    assert set(what.instead) == set(what.choices) - {right}


def test_what_nothing_tells_is_not_asked() -> None:
    assert SEEN.keys() == {*get_args(SlowKind)} - {"unknown"}
    shares = (Share((1,), 0.6, 0.0, None, "unknown"), *SLOW.shares[1:])
    assert len(asked(replace(SLOW, shares=shares))) == 1


def test_a_job_that_waits_for_nobody_or_has_failed_is_not_asked_about_it() -> None:
    for found in (asked(None), asked(SLOW, "error")):
        assert "For which rank do the others wait" not in found
