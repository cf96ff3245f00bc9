"""A run from its first look to its report, on looks from a table; no listener of it can end it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import beacon_records
import pytest
from looks import FakeEyes, FakeJob

from helpers.beacon.record import NativeCall, Record
from helpers.observe.look import Look, Output, Program, Told, Usage, Watched
from helpers.observe.recording import Tape
from helpers.session import (
    EVERY,
    LONGEST,
    LOOKS,
    SHARE,
    Decided,
    Ended,
    Event,
    Sample,
    Session,
    Signalled,
)

PID = 1000
COMMAND = ("python", "train.py")
WATCHED = Watched(COMMAND, "/job", PID, 0.0, host="here")


def record(native: NativeCall | None = None, **facts: Any) -> Record:
    """What the beacon of the one process tells; `native` is the system call that it is in."""
    main = beacon_records.thread(since=0.0, frames=[("/job/train.py", 7, "main", True)], native=native)
    return beacon_records.record(main, ppid=1, started=0.0, argv=list(COMMAND), torch="", **facts)


def runs(time: float, **facts: Any) -> Look:
    """The program runs, and its beacon tells so."""
    program = Program(PID, 0, 1, 0.0, COMMAND, {})
    told = Told(PID, time, record(**facts))
    return Look(time, programs=(program,), alive=(Usage(PID, cpu=time),), told=(told,))


def ends(time: float, code: int, **facts: Any) -> Look:
    """The program has ended."""
    told = (Told(PID, time, record(**facts)),) if facts else ()
    return Look(time, status=code << 8, told=told)


RAISED = {"type": "ValueError", "message": "no data", "frames": [["/job/train.py", 9, "load", True]]}
ERROR = {"error": {**RAISED, "time": 1.0, "masked": []}}


def session(
    looks: Sequence[Look], job: FakeJob | None = None, **options: Any
) -> tuple[Session, FakeEyes, list[Event]]:
    """A session on looks, and what it is told to tell; no time passes between two of them."""
    eyes, events = FakeEyes(WATCHED, looks), list[Event]()
    given = {"start_job": lambda: job or FakeJob(), "look_at": lambda _: eyes, "pause": lambda _: False}
    made = Session(COMMAND, **given | options)
    made.subscribe(events.append)
    return made, eyes, events


def test_a_run_that_ends_well() -> None:
    job = FakeJob()
    run, eyes, events = session([runs(0.2), runs(0.4), ends(0.6, 0)], job)
    report = run.start().wait(60)
    assert (report.verdict.outcome, report.interrupted, report.verdict_at) == ("ok", False, 0.6)
    assert (report.first_rank, report.stall) == (0.2, None)
    assert (job.calls, eyes.closed) == (["stop", "close"], True)
    assert [type(event) for event in events] == [Sample, Sample, Sample, Decided, Ended]
    assert run.report == report


def test_an_error_is_reported_with_its_line() -> None:
    run, _, _ = session([runs(0.2), ends(1.2, 1, **ERROR)])
    verdict = run.start().wait(60).verdict
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "error", (0,))
    assert verdict.where is not None and (verdict.where.file, verdict.where.line) == ("train.py", 9)


def test_what_a_look_brings_up_is_asked_for_at_once() -> None:
    """Without a record, the error is read from what the program has printed."""
    printed = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in f\nKeyError: 3\n'
    answered = Look(0.8, status=1 << 8, answers=((Output(PID), printed),))
    lost = Look(0.6, status=1 << 8, told=(Told(PID, 0.2, lost=True),))
    run, eyes, events = session([runs(0.2), lost, answered])
    assert run.start().wait(60).verdict.summary == "Rank 0 raised KeyError: 3 at train.py:3."
    assert Output(PID) in eyes.asked[2]
    assert sum(isinstance(event, Sample) for event in events) == 2


def test_a_replay_shows_what_the_run_has_shown() -> None:
    """Looks of one moment, the first of which brings up what the second finds out, are one."""
    printed = 'Traceback (most recent call last):\n  File "/job/train.py", line 3, in f\nKeyError: 3\n'
    answered = Look(0.6, status=1 << 8, answers=((Output(PID), printed),))
    lost = Look(0.6, status=1 << 8, told=(Told(PID, 0.2, lost=True),))
    run, _, events = session([runs(0.2), lost, answered])
    tape = Tape()
    run.record(tape)
    run.start().wait(60)
    shown = [event.snapshot for event in events if isinstance(event, Sample)]
    assert list(tape.recording().snapshots()) == shown


def test_what_each_look_brings_up_anew_is_left_to_the_next_sample() -> None:
    """Each look finds the program at another lock, whose holder is asked for."""

    def at_lock(number: int) -> Look:
        lock = {"call": "flock", "fd": 5, "target": f"/job/{number}.lock", "limited": False}
        return runs(number / 10, native=lock)

    run, eyes, events = session([*map(at_lock, range(1, 3 * LOOKS + 1)), ends(9.0, 0)])
    assert run.start().wait(60).verdict.outcome == "ok"
    assert sum(isinstance(event, Sample) for event in events) == 4
    assert len(eyes.asked) == 3 * LOOKS + 1


def test_the_longer_a_look_takes_the_less_often_it_comes() -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> bool:
        pauses.append(seconds)
        return False

    def take_long(event: Event) -> None:
        until = time.thread_time() + 2 * SHARE * LONGEST
        while time.thread_time() < until:
            pass

    run, _, _ = session([runs(0.2), runs(0.4), ends(0.6, 0)], pause=pause)
    run.subscribe(take_long)
    assert run.start().wait(60).verdict.outcome == "ok"
    assert pauses == [EVERY, LONGEST, LONGEST]


def test_a_run_that_is_stopped_is_interrupted() -> None:
    stopped = threading.Event()
    run, _, events = session([runs(0.2)], pause=lambda _: stopped.is_set())

    def stop(event: Event) -> None:
        run.stop()
        stopped.set()

    run.subscribe(stop)
    report = run.start().wait(60)
    assert (report.interrupted, report.verdict.outcome) == (True, "running")
    assert not any(isinstance(event, Decided) for event in events)


@pytest.mark.parametrize(
    ("sent", "reports"),
    [
        ([signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT], 0),
        ([signal.SIGUSR1, signal.SIGUSR1, signal.SIGWINCH], 1),
        ([signal.SIGUSR1, signal.SIGUSR1, signal.SIGTERM], 2),
    ],
)
def test_a_report_is_due_at_the_first_of_each_signal_that_may_be_the_last(
    sent: list[signal.Signals], reports: int
) -> None:
    todo = iter(sent)

    def pause(_: float) -> bool:
        if number := next(todo, None):
            run.signal(number, 0.0)
        return False

    looks = [*(runs(moment / 10) for moment in range(2, 8)), ends(0.9, 0)]
    run, _, events = session(looks, pause=pause)
    run.start().wait(60)
    assert sum(isinstance(event, Signalled) for event in events) == reports


def test_a_run_that_is_kept_running_is_decided_once_and_ends_with_its_job() -> None:
    failed = [runs(1.0 + n / 4, **ERROR) for n in range(60)]
    run, _, events = session([*failed, ends(20.0, 1)], keep_running=True)
    report = run.start().wait(60)
    decided = [event for event in events if isinstance(event, Decided)]
    assert [event.report for event in decided] == [report]
    assert report.verdict_at is not None and report.verdict_at < 20.0
    assert events.index(decided[0]) < len(events) - 2


def test_when_the_time_is_up_the_run_ends() -> None:
    run, _, _ = session([runs(n / 4) for n in range(40)], max_seconds=5.0)
    report = run.start().wait(60)
    assert (report.verdict.outcome, report.verdict_at) == ("running", 5.0)


@pytest.mark.parametrize("place", ["close", "look"])
def test_a_fault_of_the_instrument_reaches_whoever_waits(place: str) -> None:
    job = FakeJob(fails_to_close=place == "close")
    run, eyes, _ = session([ends(0.2, 0)] if place == "close" else [], job)
    kind = OSError if place == "close" else IndexError
    with pytest.raises(kind):
        run.start().wait(60)
    assert run.report is None and "close" in job.calls and eyes.closed
    with pytest.raises(kind):
        asyncio.run(run.result())


def test_a_notebook_cell_gets_the_same_report() -> None:
    run, _, _ = session([ends(0.2, 0)])

    async def cell() -> object:
        return await run.start().result()

    assert asyncio.run(cell()) is run.report


def test_who_waits_some_time_only_is_told_so() -> None:
    over = threading.Event()
    run, _, _ = session([runs(0.2), ends(0.4, 0)], pause=lambda _: not over.wait(60))
    run.start()
    with pytest.raises(TimeoutError):
        run.wait(0.01)
    over.set()
    assert run.wait(60).verdict.outcome == "ok"


@pytest.mark.parametrize("failure", [ValueError("a widget is gone"), SystemExit(3)])
def test_a_listener_that_fails_is_logged_once_and_ends_nothing(
    failure: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(event: Event) -> None:
        raise failure

    run, _, first = session([runs(0.2), runs(0.4), ends(0.6, 0)])
    second: list[Event] = []
    run.subscribe(fails)
    run.subscribe(second.append)
    assert run.start().wait(60).verdict.outcome == "ok"
    assert [type(event) for event in second[:4]] == [Sample, Sample, Sample, Decided]
    assert first[:4] == second[:4]
    (logged,) = caplog.records
    assert "fails" in logged.getMessage()
    assert logged.exc_info is not None and logged.exc_info[1] is failure


@pytest.mark.real
def test_a_run_starts_although_what_is_left_of_others_cannot_be_removed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def reap(spared: Iterable[int]) -> int:
        raise PermissionError("not yours")

    monkeypatch.setattr("helpers.launch.run_folder.records", lambda: [Path("run.json")])
    monkeypatch.setattr("helpers.launch.leftovers.reap_leftovers", reap)
    with caplog.at_level(logging.WARNING):
        assert Session(["true"]).start().wait(60).verdict.outcome == "ok"
    assert "not yours" in caplog.text
