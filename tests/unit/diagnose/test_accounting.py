"""Who is said to be waited for, of made-up jobs of which that is known."""

import random
from collections.abc import Callable

import pytest

from helpers.diagnose.accounting import Accounting
from helpers.model.slow import Slow
from tests.support.steps import Steps, Work


def accounted(steps: Steps) -> Accounting:
    accounting = Accounting()
    for snapshot in steps.snapshots():
        accounting.take(snapshot)
    return accounting


def slow_of(steps: Steps) -> Slow | None:
    return accounted(steps).slow()


def straggler(extra: float, base: float = 0.03, rank: int = 1) -> Work:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, base, ""), *([(7, extra, "nanosleep")] if own == rank else [])]

    return work


def noise(seed: int, scale: float) -> Work:
    chance = random.Random(seed)

    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, chance.expovariate(1 / scale), "")]

    return work


def each_tenth(step: int, own: int) -> list[tuple[int, float, str]]:
    return [(5, 0.2, ""), *([(9, 1.5, "fsync")] if own == 0 and step % 10 == 9 else [])]


def one_outlier(at: int, seconds: float, base: float = 0.1) -> Work:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, base, ""), *([(6, seconds, "nanosleep")] if own == 1 and step == at else [])]

    return work


def in_turn(step: int, own: int) -> list[tuple[int, float, str]]:
    return [(5, 0.3 if step % 3 == own else 0.05, "")]


@pytest.mark.parametrize("period", [0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 1.0, 1.7])
@pytest.mark.parametrize("part", [0.25, 0.5, 0.9])
@pytest.mark.parametrize("ranks", [2, 3])
def test_a_slow_rank_is_named_with_its_line_and_share(period: float, part: float, ranks: int) -> None:
    steps = Steps(ranks, straggler(period * part, period * (1 - part)), meets=period / 10)
    slow = slow_of(steps)
    assert slow is not None
    assert (slow.rank, slow.ranks) == (1, (1,))
    assert slow.where is not None and slow.where.line == 7
    assert slow.share == pytest.approx(steps.shares[1], abs=0.09)
    assert slow.asleep


def test_what_is_done_now_and_then_counts() -> None:
    steps = Steps(3, each_tenth, seconds=40)
    slow = slow_of(steps)
    assert slow is not None
    assert (slow.rank, slow.kind) == (0, "io")
    assert slow.share == pytest.approx(steps.shares[0], abs=0.09)


def test_a_group_is_waited_for_together() -> None:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.05, ""), *([(8, 0.2, "")] if own >= 2 else [])]

    slow = slow_of(Steps(4, work))
    assert slow is not None
    assert (slow.rank, slow.ranks) == (None, (2, 3))


def test_the_time_of_each_rank_is_shared_out() -> None:
    steps = Steps(3, straggler(0.3, 0.1), meets=0.04)
    slow = slow_of(steps)
    assert slow is not None
    first, *others = slow.shares
    assert (first.ranks, first.waited_for, first.kind) == ((1,), slow.share, slow.kind)
    assert (first.where, first.waits, first.waits_at) == (slow.where, 0.0, None)
    assert [share.ranks for share in others] == [(0,), (2,)]
    for share in others:
        assert share.waits == pytest.approx(steps.shares[1], abs=0.09)
        assert share.waits_at is not None and share.waits_at.line == 99
        assert (share.waited_for, share.where, share.kind) == (0.0, None, "unknown")


def test_who_comes_second_has_a_line_where_it_was_waited_for_long_enough() -> None:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        late, line, seconds, call = (2, 8, 0.35, "fsync") if step % 4 == 0 else (1, 7, 0.45, "")
        return [(5, 0.05, ""), *([(line, seconds, call)] if own == late else [])]

    slow = slow_of(Steps(3, work, seconds=60))
    assert slow is not None
    assert [share.ranks for share in slow.shares] == [(1,), (2,), (0,)]
    second = slow.shares[1]
    assert second.where is not None and second.where.line == 8
    assert second.kind == "io" and second.waits > second.waited_for


def test_a_group_has_a_share_together() -> None:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.05, ""), *([(8, 0.2, "")] if own >= 2 else [])]

    slow = slow_of(Steps(4, work))
    assert slow is not None
    assert [share.ranks for share in slow.shares] == [(2, 3), (0,), (1,)]


def test_whoever_is_fast_makes_no_group_of_the_others() -> None:
    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.05 if own == 1 else 0.2 + 0.05 * ((step + own) % 3), "")]

    assert slow_of(Steps(4, work)) is None


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("scale", [0.05, 0.3])
def test_noise_blames_nobody_but_who_was_waited_for_by_chance(seed: int, scale: float) -> None:
    steps = Steps(2 + seed % 3, noise(seed, scale))
    *_, second, first = sorted(steps.shares)
    assert slow_of(steps) is None or first > 1.5 * second


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(straggler(0.0, 0.5), id="all alike"),
        pytest.param(in_turn, id="another at each step"),
        pytest.param(straggler(0.01, 0.19), id="five percent"),
        *(
            pytest.param(one_outlier(step, seconds), id=f"{seconds} s at step {step}")
            for step in (0, 3, 60, 140)
            for seconds in (3.0, 5.0)
        ),
    ],
)
@pytest.mark.parametrize("seconds", [3.0, 12.0, 20.0, 60.0])
def test_who_does_not_stand_out_is_not_blamed(work: Work, seconds: float) -> None:
    assert slow_of(Steps(3, work, seconds=seconds)) is None


def test_a_rank_that_cannot_run_is_waited_for() -> None:
    def unable(rank: int, time: float) -> bool:
        return rank == 1 and time % 1.0 < 0.5

    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.5 if own == 1 else 0.01, ""), (6, 0.47, "")]

    slow = slow_of(Steps(2, work, unable=unable))
    assert slow is not None
    assert slow.rank == 1


def test_time_in_which_no_rank_can_run_counts() -> None:
    def unable(rank: int, time: float) -> bool:
        return time % 1.0 < (0.8 if rank == 1 else 0.5)

    def work(step: int, own: int) -> list[tuple[int, float, str]]:
        return [(5, 0.5, ""), *([(6, 0.3, "")] if own == 1 else [])]

    slow = slow_of(Steps(2, work, unable=unable, meets=0.2))
    assert slow is not None
    assert slow.share == pytest.approx(0.3, abs=0.05)


def test_a_line_at_which_all_spend_their_time() -> None:
    accounting = accounted(Steps(3, lambda step, own: [(5, 0.05, ""), (6, 0.3, "read")]))
    alike = accounting.alike()
    assert accounting.slow() is None
    assert alike is not None
    assert (alike.where.line, alike.kind) == (6, "io")
    assert alike.share == pytest.approx(0.3 / 0.37, abs=0.09)


@pytest.mark.parametrize("make", [lambda: straggler(0.4), lambda: noise(3, 0.1)])
def test_a_long_job_takes_no_more_room(make: Callable[[], Work]) -> None:
    accounting = Accounting()
    for snapshot in Steps(2, make(), seconds=3000).snapshots():
        accounting.take(snapshot)
        assert len(accounting._windows._windows) <= 16
