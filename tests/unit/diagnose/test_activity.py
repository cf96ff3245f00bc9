"""Of which kind the time is in which a rank is waited for, by what its thread and its process used."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from helpers.diagnose.activity import Activity
from helpers.model.frames import Frame
from helpers.model.samples import Sample

TICKS = 50


@dataclass(frozen=True)
class Rates:
    """What a rank does in each second.

    Attributes:
        ran, wanted: seconds in which its thread runs, and in which it waits for a processor.
        besides: processor seconds of the other threads of its process.
        call: the system call in which it is; within: as in a sample.
        load: of the machine, for each core.
        collects: whether all its objects are searched for garbage while it cannot be sampled.
    """

    ran: float
    wanted: float = 0.0
    besides: float = 0.0
    call: str = ""
    within: str = ""
    load: float = 0.0
    collects: bool = False


def activity(rates: Rates, line: int = 5) -> Activity:
    """What a rank has done that does the same all the time, and for which the others wait."""
    done, every = Activity(), 3 if rates.collects else 1
    for tick in range(0, TICKS, every):
        done.take(
            Sample(
                tick=tick,
                due=tick,
                at=0.1 * tick,
                doing="works",
                where=Frame("train.py", line, "train"),
                within=rates.within,
                call=rates.call,
                ran=0.1 * tick * rates.ran,
                wanted=0.1 * tick * rates.wanted,
                used=0.1 * tick * (rates.ran + rates.besides),
                load=rates.load,
                collections=tick if rates.collects else 0,
            )
        )
    for tick in range(TICKS):
        done.count(tick, "unable" if tick % every else "works", waited_for=True)
    return done


@pytest.mark.parametrize(
    ("rates", "kind"),
    [
        pytest.param(Rates(ran=0.98), "compute", id="computes"),
        pytest.param(Rates(ran=0.98, besides=2.9), "compute", id="computes with several threads"),
        pytest.param(Rates(ran=0.5, wanted=0.48), "quota", id="gets half of a core"),
        pytest.param(Rates(ran=0.25, wanted=0.74, besides=0.02), "quota", id="a core of four"),
        pytest.param(Rates(ran=0.25, wanted=0.74, load=4.5), "compute", id="a fair part of four"),
        pytest.param(Rates(ran=0.05, wanted=0.94, load=4.5), "quota", id="an unfair part"),
        pytest.param(Rates(ran=0.02, besides=0.97), "gil", id="another thread has the lock"),
        pytest.param(Rates(ran=0.49, besides=0.49), "gil", id="takes turns with another thread"),
        pytest.param(
            Rates(ran=0.02, wanted=0.35, besides=0.28), "gil", id="the same, on a busy machine"
        ),
        pytest.param(Rates(ran=0.06, wanted=0.63, besides=0.2), "gil", id="on a busier machine"),
        pytest.param(Rates(ran=0.01, wanted=0.38, besides=0.18), "gil", id="where both get too little"),
        pytest.param(Rates(ran=0.06, wanted=0.89, besides=0.02), "quota", id="a core of nine"),
        pytest.param(Rates(ran=0.02, wanted=0.63, besides=0.02), "quota", id="waits for others, too"),
        pytest.param(Rates(ran=0.2), "unknown", id="waits for a page of memory"),
        pytest.param(Rates(ran=0.0, call="futex"), "unknown", id="waits for a thread"),
        pytest.param(Rates(ran=0.0, besides=0.9, call="futex"), "unknown", id="for one that computes"),
        pytest.param(Rates(ran=0.0, call="fsync"), "io", id="writes"),
        pytest.param(Rates(ran=0.9, within="loader"), "input", id="loads"),
        pytest.param(Rates(ran=0.9, within="compiler"), "compile", id="compiles"),
        pytest.param(Rates(ran=0.98, collects=True), "gc", id="collects garbage"),
    ],
)
def test_the_kind_is_told_by_what_was_used(rates: Rates, kind: str) -> None:
    assert activity(rates).kind([activity(Rates(ran=0.9, wanted=0.05), line=6)]) == kind


def test_where_all_get_too_little_of_a_processor_none_is_slow_by_that() -> None:
    starved = Rates(ran=0.4, wanted=0.58)
    assert activity(starved).kind([activity(starved)]) != "quota"
