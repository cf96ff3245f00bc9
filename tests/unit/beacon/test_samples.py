"""What a rank is said to do at a tick, and when the ticks are."""

from __future__ import annotations

import _thread
import inspect
import os
import threading
import time

import pytest

from helpers.beacon import samples, ticks
from helpers.beacon.record import FrameEntry, NativeCall

USER: FrameEntry = ("/job/train.py", 9, "main", True)
REDUCE: FrameEntry = ("/lib/torch/distributed/distributed_c10d.py", 3000, "all_reduce", False)
LOGGER: FrameEntry = ("/lib/torch/distributed/c10d_logger.py", 80, "wrapper", False)
BACKWARD: FrameEntry = ("/lib/torch/autograd/graph.py", 800, "_engine_run_backward", False)
LOADER: FrameEntry = ("/lib/torch/utils/data/dataloader.py", 1200, "_try_get_data", False)
FETCH: FrameEntry = ("/lib/torch/utils/data/_utils/fetch.py", 50, "fetch", False)
COMPILER: FrameEntry = ("/lib/torch/_dynamo/convert_frame.py", 90, "__call__", False)
SLEEP: NativeCall = {"call": "nanosleep", "fd": None, "target": None, "limited": False}
FUTEX: NativeCall = {"call": "futex", "fd": None, "target": None, "limited": False}


@pytest.mark.parametrize(
    ("frames", "call", "pending", "expected"),
    [
        pytest.param([REDUCE, LOGGER, USER], FUTEX, False, "waits", id="in a collective"),
        pytest.param([REDUCE, LOGGER, USER], None, False, "works", id="before it, or behind it"),
        pytest.param([BACKWARD, USER], FUTEX, True, "waits", id="in backward, for DDP's reduction"),
        pytest.param([BACKWARD, USER], None, True, "works", id="in backward, at work"),
        pytest.param([BACKWARD, USER], FUTEX, False, "works", id="in backward, without a reduction"),
        pytest.param([USER], FUTEX, True, "waits", id="at a handle"),
        pytest.param([USER], FUTEX, False, "works", id="at a lock"),
        pytest.param([USER], SLEEP, True, "works", id="asleep beside a reduction"),
        pytest.param([LOADER, USER], FUTEX, False, "child", id="for a worker of a loader"),
        pytest.param([USER, REDUCE, USER], FUTEX, False, "works", id="called back by torch"),
    ],
)
def test_what_a_rank_does(
    frames: list[FrameEntry], call: NativeCall | None, pending: bool, expected: str
) -> None:
    assert samples.doing(frames, call, pending) == expected


def test_on_a_device_a_wait_looks_like_work() -> None:
    assert samples.doing([USER], None, pending=True, on_device=True) == "device"


def test_work_within_a_loader_or_a_compiler() -> None:
    assert samples.within([USER, FETCH, USER]) == "loader"
    assert samples.within([COMPILER, USER]) == "compiler"
    assert samples.within([("/lib/torch/serialization.py", 9, "save", False), USER]) == "storage"
    assert samples.within([BACKWARD, USER]) == ""


def test_a_wait_for_the_interpreter_lock_ends_at_once() -> None:
    now = time.monotonic()
    assert samples.for_interpreter({**FUTEX, "until": now + 0.005}, now)
    assert not samples.for_interpreter({**FUTEX, "until": now + 1800.0}, now)
    assert not samples.for_interpreter(FUTEX, now)


def test_the_newest_samples_are_told_with_their_lines() -> None:
    log = samples.SampleLog()
    frame = inspect.currentframe()
    assert frame is not None
    for tick in range(samples.KEPT + 3):
        log.take(tick, tick, frame, None, pending=False, issued={"0": tick}, on_device=False)
    told = log.newest()
    assert [one["tick"] for one in told["samples"]] == list(range(3, samples.KEPT + 3))
    assert {one["place"] for one in told["samples"]} == {0}
    assert told["places"][0][0] == __file__
    assert told["samples"][-1]["issued"] == {"0": samples.KEPT + 2}


def test_they_are_written_again_at_the_first_tick_that_is_met() -> None:
    log, frame = samples.SampleLog(), inspect.currentframe()
    assert frame is not None
    met = (3, 7, 8, 9, 21, 23, 24)
    due = [
        tick
        for tick in met
        if log.take(tick, tick, frame, None, pending=False, issued={}, on_device=False)
    ]
    assert samples.WRITTEN == 8
    assert due == [3, 8, 21, 24]


def test_the_time_of_a_thread_is_told() -> None:
    worked, held, known, frame = threading.Event(), threading.Event(), [0], inspect.currentframe()
    assert frame is not None

    def works() -> None:
        known[0] = _thread.get_native_id()
        end = time.thread_time() + 0.05
        while time.thread_time() < end:
            pass
        worked.set()
        held.wait()

    thread = threading.Thread(target=works)
    thread.start()
    log = samples.SampleLog()
    try:
        worked.wait()  # before, it is in `futex` whenever it waits for the GIL
        while not log.newest()["samples"] or log.newest()["samples"][-1]["call"] != "futex":
            log.take(1, 1, frame, known[0], pending=False, issued={}, on_device=False)
    finally:
        held.set()
        thread.join()
    assert log.newest()["samples"][-1]["ran"] >= 0.05
    assert os.getpid() != known[0]


def test_there_is_one_tick_in_each_tenth_of_a_second() -> None:
    for number in range(1000, 2000):
        assert number * ticks.TICK <= ticks.moment(number) < (number + 1) * ticks.TICK


@pytest.mark.parametrize("period", [0.1, 0.2, 0.4, 0.515, 0.5236, 1.0])
def test_ticks_show_all_parts_of_a_job_alike_that_does_the_same_again(period: float) -> None:
    parts = [ticks.moment(number) % period / period for number in range(445000, 445400)]
    for part in range(4):
        share = sum(part / 4 <= where < (part + 1) / 4 for where in parts) / len(parts)
        assert share == pytest.approx(0.25, abs=0.06)


def test_a_tick_is_met_unless_it_is_long_gone() -> None:
    for number in range(40, 60):
        at = ticks.moment(number)
        assert ticks.first_after(at) == number
        assert ticks.first_after(at + 1e-6) == number + 1
        assert ticks.met(number, at + 0.03) == number
        assert ticks.met(number - 5, at + 1e-6) in (number, number + 1)
