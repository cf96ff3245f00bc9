"""Who is waited for in jobs on several machines, of which no two clocks agree."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from helpers.beacon.ticks import first_after, moment
from helpers.diagnose.coupling import slow
from helpers.model.pace import Pace
from helpers.model.samples import Sample
from helpers.model.slow import Slow
from helpers.observe.pacing import Pacing
from tests.support.steps import EVERY, Steps, Work

CLOCKS = [(0.0, 1.0), (5000.0, 1.0), (-700.3, 1.001), (0.04, 0.9995)]
"""Seconds by which the clock of a machine is ahead, and its seconds for each of the job."""


def pace(steps: Steps, ranks: Sequence[int], ahead: float = 0.0, drift: float = 1.0) -> Pace:
    """What one machine shows of a job."""

    def clock(time: float) -> float:
        return steps.begins + (time - steps.begins - ahead) / drift

    pacing = Pacing()
    first, last = (
        steps.begins + ahead + drift * (at - steps.begins) for at in (steps.begins, steps.ends)
    )
    new: dict[int, list[Sample]] = {rank: [] for rank in ranks}
    for tick in range(first_after(first), first_after(last)):
        for rank in ranks:
            new[rank].append(steps.sample(rank, tick, tick, clock))
        if tick % EVERY == 0:
            pacing.take(new, clock(moment(tick)) - steps.begins)
            new = {rank: [] for rank in ranks}
    found = pacing.pace()
    assert found is not None
    return found


def slow_of(steps: Steps, machines: Sequence[Sequence[int]], shift: int = 0) -> Slow | None:
    """Who is waited for, by what all machines show."""
    clocks = [CLOCKS[(number + shift) % len(CLOCKS)] for number in range(len(machines))]
    paces = [pace(steps, ranks, *clock) for ranks, clock in zip(machines, clocks, strict=True)]
    return slow(paces, steps.ranks)


def straggler(extra: float, base: float, ranks: Sequence[int] = (1,), call: str = "nanosleep") -> Work:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, base, ""), *([(7, extra, call)] if own in ranks else [])]

    return work


def noise(seed: int, scale: float) -> Work:
    chance = random.Random(seed)
    return lambda step, own: [(5, chance.expovariate(1 / scale), "")]


def one_outlier(at: int, seconds: float) -> Work:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.1, ""), *([(6, seconds, "nanosleep")] if own == 1 and step == at else [])]

    return work


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize("period", [0.05, 0.6, 1.7])
@pytest.mark.parametrize("part", [0.25, 0.6])
@pytest.mark.parametrize(
    "machines",
    [
        pytest.param([[0], [1]], id="a rank on each of two"),
        pytest.param([[0], [1], [2], [3]], id="on each of four"),
        pytest.param([[0, 1], [2, 3]], id="beside another rank"),
    ],
)
def test_a_slow_rank_is_named_whatever_the_clocks_say(
    machines: Sequence[Sequence[int]], part: float, period: float, shift: int
) -> None:
    work = straggler(period * part, period * (1 - part))
    steps = Steps(sum(map(len, machines)), work, seconds=40, meets=period / 10)
    found = slow_of(steps, machines, shift)
    assert found is not None
    assert (found.ranks, found.asleep) == ((1,), True)
    assert found.where is not None and found.where.line == 7
    assert found.share == pytest.approx(steps.shares[1], abs=0.1)


def test_a_machine_is_waited_for_as_a_whole() -> None:
    steps = Steps(4, straggler(0.2, 0.2, ranks=(2, 3)), seconds=40)
    found = slow_of(steps, [[0, 1], [2, 3]])
    assert found is not None
    assert (found.rank, found.ranks) == (None, (2, 3))
    assert found.share == pytest.approx(0.2 / 0.42, abs=0.1)


@pytest.mark.parametrize(
    ("work", "line", "kind"),
    [
        pytest.param(straggler(0.2, 0.2, call=""), 7, "compute", id="another line"),
        pytest.param(straggler(0.2, 0.2, call="fsync"), 7, "io", id="a system call"),
        pytest.param(lambda step, own: [(5, 0.4 if own else 0.2, "")], 5, "data", id="more of the same"),
    ],
)
def test_what_takes_the_time_is_what_the_others_do_not_do(work: Work, line: int, kind: str) -> None:
    found = slow_of(Steps(2, work, seconds=40), [[0], [1]])
    assert found is not None and found.where is not None
    assert (found.where.line, found.kind) == (line, kind)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("scale", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("machines", [[[0], [1]], [[0, 1], [2, 3]]])
def test_noise_blames_nobody(machines: Sequence[Sequence[int]], scale: float, seed: int) -> None:
    steps = Steps(sum(map(len, machines)), noise(seed, scale), seconds=30)
    *_, second, first = sorted(steps.shares)
    assert slow_of(steps, machines, seed) is None or first > 1.5 * second


@pytest.mark.parametrize("shift", [0, 2])
@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda step, own: [(5, 0.3, "")], id="all alike"),
        pytest.param(lambda step, own: [(5, 0.05, "")], id="all alike, and mostly in collectives"),
        pytest.param(lambda step, own: [(5, 0.4 if step % 2 == own else 0.1, "")], id="in turn"),
        pytest.param(straggler(0.01, 0.19), id="five percent"),
        pytest.param(one_outlier(0, 3.0), id="once, at first"),
        pytest.param(one_outlier(60, 3.0), id="once, later"),
    ],
)
def test_who_does_not_stand_out_is_not_blamed(work: Work, shift: int) -> None:
    assert slow_of(Steps(2, work, seconds=30, meets=0.1), [[0], [1]], shift) is None


def test_nobody_is_named_where_a_machine_is_missing() -> None:
    steps = Steps(3, straggler(0.3, 0.1), seconds=20)
    assert slow_of(steps, [[0], [1]]) is None
    assert slow_of(steps, [[0], [1], [2]]) is not None


@pytest.mark.parametrize("make", [lambda: straggler(0.02, 0.01), lambda: noise(3, 0.1)])
def test_a_long_job_takes_no_more_room(make: Callable[[], Work]) -> None:
    found = pace(Steps(2, make(), seconds=600), [0, 1])
    assert sum(len(sets) for sets in found.groups["0"].blocks.values()) <= 128 * 4
