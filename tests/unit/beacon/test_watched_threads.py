"""When a thread that stays at one line has moved all the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.beacon import native
from helpers.beacon.record import NativeCall
from helpers.beacon.threads import Watched


def standing() -> Iterator[None]:
    """Its frame stays where it is."""
    yield


def call(name: str | None) -> NativeCall | None:
    return None if name is None else {"call": name, "fd": 1, "target": None, "limited": False}


MOVES = [
    ("a write that goes on", "write", "write", False),
    ("a write that is done", "write", None, True),
    ("a read that is done", "read", None, True),
    ("a poll, which may have come to its time limit", "poll", None, False),
    ("a sleep in slices", "nanosleep", None, False),
    ("a lock, looked for in turns", "futex", None, False),
    ("it has run all the time", None, None, False),
]


@pytest.mark.parametrize(
    ("before", "after", "moves"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES]
)
def test_a_thread_that_has_left_a_call_without_a_time_limit_has_moved(
    before: str | None, after: str | None, moves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = standing()
    next(frames)
    watched = Watched()
    inside = iter((call(before), call(after)))
    monkeypatch.setattr(native, "blocking_call", lambda _thread: next(inside))
    for time in (100.0, 101.0, 105.0):
        watched.look(frames.gi_frame, time, 1, "MainThread", 1, True, True)  # type: ignore[attr-defined]
    assert watched.entry["since"] == (105.0 if moves else 100.0)


@pytest.mark.parametrize("calls", [("futex", "futex"), (None, "futex"), ("nanosleep", "futex")])
def test_a_thread_is_looked_into_as_soon_as_it_waits_inside_its_process(
    calls: tuple[str | None, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at a busy machine may come before the kernel has it in its call."""
    frames = standing()
    next(frames)
    watched, inside = Watched(), iter(map(call, calls))
    monkeypatch.setattr(native, "blocking_call", lambda _thread: next(inside))
    for time in (100.0, 101.0, 102.0):
        watched.look(frames.gi_frame, time, 1, "MainThread", 1, True, True)  # type: ignore[attr-defined]
    assert "joins" in watched.entry and watched.entry["site"] is not None


def counting() -> Iterator[None]:
    step = 0
    while True:
        yield
        step += 1


@pytest.mark.parametrize(
    ("used", "told"),
    [((1.0, 1.0, 1.5, 1.5), "2"), ((1.0, 1.0, 1.0, 1.0), "1"), ((None, None, None, None), "1")],
    ids=["it has run since", "it has not", "that is not known"],
)
def test_values_are_those_of_now_where_a_thread_is_back_at_its_line(
    used: tuple[float | None, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each look a loop may be at one and the same line."""
    frames = counting()
    next(frames)
    watched, times = Watched(), iter(used)
    monkeypatch.setattr(native, "blocking_call", lambda _thread: call("futex"))
    monkeypatch.setattr(native, "processor_time", lambda _thread: next(times))
    for time in (100.0, 100.5, 101.0, 102.0, 103.0):
        watched.look(frames.gi_frame, time, 1, "MainThread", 1, True, True)  # type: ignore[attr-defined]
        if time in (100.0, 101.0):
            next(frames)
    assert watched.entry["values"][0]["step"] == told
