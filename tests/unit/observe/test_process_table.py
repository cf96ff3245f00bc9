"""What counts as work of a process and of its threads, from histories of what they use and do."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pytest

from helpers.observe.look import Look, Program, Usage
from helpers.observe.process_table import SEEN_FOR, WAKES_SAVED, Motion, Row, Table, Work

EVERY = 0.2


def idle(uses: Sequence[float]) -> float:
    """Seconds without work at the end of looks between which so many seconds were used."""
    work, used, now = Work(0.0, 0.0, 0.0), 0.0, 0.0
    for seconds in uses:
        now, used = now + EVERY, used + seconds
        work.take(now, used)
    return now - work.active


def ticking(every: int, seconds: float, looks: int) -> list[float]:
    """Something that wakes up once in so many looks."""
    return [seconds if look % every == 0 else 0.0 for look in range(looks)]


@pytest.mark.parametrize(
    ("uses", "least", "most"),
    [
        pytest.param([0.2] * 10, 0.0, 0.0, id="computes"),
        pytest.param([0.2] * 10 + [0.0] * 10, 2.0, 2.0, id="has come to rest"),
        pytest.param([0.0] * 50 + [0.01] + [0.0] * 5, 11.2, 11.2, id="one tick of the kernel's clock"),
        pytest.param(ticking(25, 0.01, 200), 39.0, 40.1, id="looks around every five seconds"),
        pytest.param(ticking(5, 0.01, 200), 39.0, 40.1, id="uses one percent"),
        pytest.param(ticking(5, 0.03, 200), 0.0, 3.0, id="uses three percent"),
    ],
)
def test_how_long_something_has_not_been_at_work(
    uses: Sequence[float], least: float, most: float
) -> None:
    assert least <= round(idle(uses), 6) <= most


MAIN, BEAT, NATIVE, LATER = 1, 2, 3, 4


def row(*looks: dict[int, float], names: dict[int, str] | None = None) -> tuple[Row, float]:
    """A process whose threads have used so much at looks a second apart; and the time of the last."""
    made, now = Row(MAIN, 0, 0.0, ("python",), look_time=0.0), 0.0
    for used in looks:
        now += 1.0
        made.work.take(now, sum(used.values()))
        named = names or {}
        made.take_threads(now, [(thread, s, named.get(thread, "")) for thread, s in used.items()])
    return made, now


def test_a_thread_that_is_set_apart_does_not_keep_its_process_at_work() -> None:
    beats = [{MAIN: 1.0, BEAT: 0.1 * second} for second in range(6)]
    made, now = row(*beats)
    assert made.idle(now) == 0.0
    assert made.idle(now, {BEAT}) == 5.0


def test_where_every_thread_is_set_apart_nothing_has_ever_been_at_work() -> None:
    made, now = row(*[{MAIN: 1.0 * second} for second in range(6)])
    assert made.idle(now) == 0.0
    assert made.idle(now, {MAIN}) == now - made.first_look


def test_a_thread_that_begins_later_counts_from_what_it_does() -> None:
    made, now = row({MAIN: 1.0}, {MAIN: 1.0, LATER: 0.0}, {MAIN: 1.0, LATER: 0.01})
    assert made.idle(now) == 2.0
    made, now = row({MAIN: 1.0}, {MAIN: 1.0, LATER: 0.5})
    assert made.idle(now) == 0.0


def test_a_thread_that_looks_for_messages_all_the_time_is_not_at_work() -> None:
    spins = [{MAIN: 1.0, NATIVE: 0.5 * second} for second in range(4)]
    for name in ("TP_SHM_reactor", "pt_tcpstore_uv"):
        made, now = row(*spins, names={NATIVE: name})
        assert made.idle(now) == 3.0


@pytest.mark.parametrize("traced", [False, True])
def test_the_time_for_which_something_has_stopped_a_process_is_no_rest(traced: bool) -> None:
    table = Table()
    begun = Program(MAIN, 1, 0, 0.0, ("python",))
    table.take(Look(1.0, programs=(begun,), alive=(Usage(MAIN),)), {})
    table.rows[MAIN].take_threads(1.0, [(MAIN, 0.0, ""), (NATIVE, 0.0, "")])
    table.take(Look(30.0, alive=(Usage(MAIN, stopped=True, traced=traced),)), {})
    assert table.rows[MAIN].idle(30.0) == 29.0
    table.take(Look(31.0, alive=(Usage(MAIN),)), {})
    assert table.rows[MAIN].idle(31.0) == 0.0


def test_without_a_look_at_its_threads_the_process_counts() -> None:
    made, now = row({MAIN: 1.0}, {MAIN: 2.0})
    made.threads.clear()
    assert made.idle(now, {MAIN}) == 0.0


LOADER = 4 / 5
"""Wake-ups a second that a loader explains, which looks around every five seconds."""


def unmoved(
    scheduled: Callable[[float], int],
    seconds: float = 60.0,
    *,
    polls: float = 0.0,
    runs: bool = False,
    every: float = EVERY,
) -> float:
    """Seconds for which a thread has not moved, by looks at how often it had been scheduled by then."""
    motion, now = Motion(0.0, scheduled(0.0)), 0.0
    for look in range(1, round(seconds / every) + 1):
        now = look * every
        motion.take(now, runs, scheduled(now), polls)
    return now - motion.moved


def hangs(_: float) -> int:
    """It is never scheduled again."""
    return 7


def wakes(period: float) -> Callable[[float], int]:
    """It is scheduled once in so many seconds."""
    return lambda now: 7 + int(now / period + 1e-6)


def wakes_until(end: float) -> Callable[[float], int]:
    """It is scheduled five times a second until a time."""
    return lambda now: wakes(0.2)(min(now, end))


@pytest.mark.parametrize(
    ("scheduled", "polls", "least", "most"),
    [
        pytest.param(hangs, 0.0, 60.0, 60.0, id="it hangs"),
        pytest.param(hangs, LOADER, 60.0, 60.0, id="it hangs where a loader would look around"),
        pytest.param(wakes(1.0), 0.0, 0.0, 1.0, id="a loop that sleeps"),
        pytest.param(wakes(0.01), 0.0, 0.0, 0.0, id="a loop that hardly sleeps"),
        pytest.param(wakes_until(20.0), 0.0, 40.0, 42.0, id="it has come to rest"),
        pytest.param(wakes(5.0), LOADER, 60.0, 60.0, id="a loader looks around"),
        pytest.param(wakes(5 / 4), LOADER, 60.0, 60.0, id="a loader has to wait for the interpreter"),
        pytest.param(wakes(0.2), LOADER, 0.0, 3.0, id="a loader does more than look around"),
        pytest.param(wakes(0.01), math.inf, 60.0, 60.0, id="the store polls as often as it likes"),
    ],
)
def test_how_long_a_thread_has_not_moved(
    scheduled: Callable[[float], int], polls: float, least: float, most: float
) -> None:
    assert least <= round(unmoved(scheduled, polls=polls), 6) <= most


@pytest.mark.parametrize(("polls", "expected"), [(0.0, 0.0), (LOADER, 60.0), (math.inf, 60.0)])
def test_who_could_run_does_not_rest_unless_its_place_looks_around(
    polls: float, expected: float
) -> None:
    assert round(unmoved(hangs, polls=polls, runs=True), 6) == expected


def test_polling_that_comes_late_comes_at_once() -> None:
    late = WAKES_SAVED - 1
    assert unmoved(lambda now: int(late) if now > 30 else 0, polls=LOADER) == pytest.approx(60.0)
    assert unmoved(lambda now: 3 * int(late) if now > 30 else 0, polls=LOADER) < 30.0


@pytest.mark.parametrize(
    ("every", "counts"),
    [
        pytest.param(1.0, 1.0, id="looks that are near each other"),
        pytest.param(SEEN_FOR, SEEN_FOR, id="looks that are just near enough"),
        pytest.param(4.0, SEEN_FOR, id="between far looks much may happen"),
    ],
)
def test_the_time_between_two_looks_counts_as_far_as_they_show_it(every: float, counts: float) -> None:
    assert unmoved(hangs, 20 * every, every=every) == pytest.approx(20 * counts)


def test_a_pause_between_two_looks_is_no_rest() -> None:
    motion = Motion(0.0, 7)
    for now in (1.0, 2.0, 32.0, 33.0):
        motion.take(now, False, 7, 0.0)
    assert 33.0 - motion.moved == pytest.approx(3.0 + SEEN_FOR)


def moves(*looks: dict[int, int], runs: Sequence[int] = (), **facts: bool) -> tuple[Row, float]:
    """A process whose threads were scheduled so often by looks a second apart; the time of the last."""
    made, now = Row(MAIN, 0, 0.0, ("python",), look_time=0.0, **facts), 0.0  # type: ignore[arg-type]
    for seen in looks:
        now += 1.0
        made.take_motions(now, [(thread, thread in runs, n) for thread, n in seen.items()], {})
    return made, now


def test_each_thread_moves_by_itself() -> None:
    made, now = moves(*({MAIN: 5, BEAT: 9 * second} for second in range(11)))
    assert now - made.moved(MAIN) == 10.0
    assert now - made.moved(BEAT) == 0.0


def test_without_a_thread_the_main_one_is_meant() -> None:
    made, now = moves(*({MAIN: 5, BEAT: 9 * second} for second in range(11)))
    assert made.moved(None) == made.moved(MAIN) == now - 10.0


def test_a_thread_that_begins_later_has_moved_then() -> None:
    made, now = moves({MAIN: 5}, {MAIN: 5}, {MAIN: 5, LATER: 3}, {MAIN: 5, LATER: 3})
    assert now - made.moved(MAIN) == 3.0
    assert now - made.moved(LATER) == 1.0


def test_who_could_run_is_not_still() -> None:
    made, now = moves(*[{MAIN: 5, BEAT: 5}] * 5, runs=(BEAT,))
    assert now - made.moved(BEAT) == 0.0
    assert now - made.moved(MAIN) == 4.0


def test_what_its_control_group_keeps_from_running_is_not_still() -> None:
    made, now = moves(*[{MAIN: 5}] * 5, frozen=True)
    assert now - made.moved(MAIN) == 0.0


def test_a_process_that_was_roused_has_moved_whatever_its_thread_shows() -> None:
    made, now = moves(*[{MAIN: 5}] * 11)
    made.roused = now - 3.0
    assert now - made.moved(MAIN) == 3.0
    made.roused = now - 20.0
    assert now - made.moved(MAIN) == 10.0


def test_of_a_thread_at_which_nobody_has_looked_nothing_shows_that_it_moves() -> None:
    made, now = moves({MAIN: 5})
    assert now - made.moved(NATIVE) == math.inf
    made.roused = now
    assert now - made.moved(NATIVE) == 0.0


@pytest.mark.parametrize(
    "seen", [pytest.param([], id="the process ends"), pytest.param([(BEAT, False, 3)], id="it alone")]
)
def test_a_thread_that_could_not_be_looked_at_is_not_still(seen: list[tuple[int, bool, int]]) -> None:
    made = Row(MAIN, 0, 0.0, ("python",), look_time=0.0)
    for second in range(10):
        made.take_motions(float(second), [(MAIN, False, 5), (BEAT, False, 3)], {MAIN: 0.0, BEAT: 0.0})
    made.take_motions(10.0, seen, {MAIN: 0.0, BEAT: 0.0})
    assert made.moved(MAIN) == 10.0


def test_the_wake_ups_of_a_place_are_those_of_its_thread() -> None:
    made = Row(MAIN, 0, 0.0, ("python",), look_time=0.0)
    for second in range(61):
        seen = [(thread, False, 2 * second) for thread in (MAIN, BEAT)]
        made.take_motions(float(second), seen, {MAIN: 2.0})
    assert made.moved(MAIN) == 0.0
    assert made.moved(BEAT) == 60.0


def test_a_frozen_process_is_told_from_a_look() -> None:
    table = Table()
    begun = Program(MAIN, 1, 0, 0.0, ("python",))
    table.take(Look(1.0, programs=(begun,), alive=(Usage(MAIN, frozen=True),)), {})
    assert table.rows[MAIN].frozen
    table.take(Look(2.0, alive=(Usage(MAIN),)), {})
    assert not table.rows[MAIN].frozen
