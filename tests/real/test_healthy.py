"""No healthy program is called hung, and a thread that goes on beside a hang hides nothing."""

from __future__ import annotations

import sys

import pytest
from soak.controls import SHORT, all_ways
from soak.loops import Hang, Loop, all_hangs, some_loops

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


def faults(programs: list[Loop] | list[Hang]) -> list[str]:
    return [run.fault for run in all_ways(programs, 1, SHORT) if not run.is_right]


def test_a_loop_comes_back_to_its_line_and_has_moved() -> None:
    assert faults([Loop("sleeps", "main", 0.7), Loop("items of a thread", "main", 9.0)]) == []


def test_a_thread_that_beats_hides_no_hang() -> None:
    assert faults([Hang("a queue", "prints"), Hang("an event", "computes")]) == []


@pytest.mark.nightly
def test_loops_at_random() -> None:
    assert faults(some_loops(11, 18)) == []


@pytest.mark.nightly
def test_hangs_beside_which_a_thread_goes_on() -> None:
    assert faults(all_hangs()[::3]) == []
