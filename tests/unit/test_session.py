"""When a run is over; each table row is the last look at a job of two ranks."""

from __future__ import annotations

from typing import Any

import pytest
from histories import ended, rank, snapshot

from helpers.model.facts import RankView
from helpers.session import STATUS_COMES, _is_over


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
    assert _is_over(snapshot(ended(0, 0), other, code=0, time=20.0)) == over


def test_a_run_is_not_over_while_its_command_runs() -> None:
    assert not _is_over(snapshot(ended(0, 0), ended(1, 0)))
