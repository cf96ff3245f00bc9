"""When a run is over, and that nobody who looks on can end it."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import pytest
from histories import ended, rank, snapshot

from helpers.model.facts import RankView
from helpers.session import STATUS_COMES, Ended, Event, Sample, Session, _is_over


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


@pytest.mark.real
def test_a_run_starts_although_what_is_left_of_others_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def reap(spared: Iterable[int]) -> int:
        raise PermissionError("not yours")

    monkeypatch.setattr("helpers.session.reap_leftovers", reap)
    assert Session(["true"]).start().wait(60).verdict.outcome == "ok"
    assert "not yours" in caplog.text


@pytest.mark.real
@pytest.mark.parametrize("failure", [ValueError("a widget is gone"), SystemExit(3)])
def test_a_listener_that_fails_is_logged_once_and_ends_nothing(
    failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[Event] = []
    all_told = threading.Event()

    def fails(event: Event) -> None:
        raise failure

    def goes_on(event: Event) -> None:
        seen.append(event)
        if isinstance(event, Ended):
            all_told.set()

    session = Session(["true"])
    session.subscribe(fails)
    session.subscribe(goes_on)
    assert session.start().wait(60).verdict.outcome == "ok"
    assert all_told.wait(60)
    assert {Sample, Ended} <= {type(event) for event in seen}
    (record,) = caplog.records
    assert "fails" in record.getMessage()
    assert record.exc_info is not None and record.exc_info[1] is failure
