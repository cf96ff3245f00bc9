"""What counts as work of a process and of its threads, from histories of the processor time they use."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from helpers.observe.look import Look, Program, Usage
from helpers.observe.process_table import Row, Table, Work

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
    made, now = Row(MAIN, 0, 0.0, ("python",), seen=0.0), 0.0
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


def test_a_thread_that_begins_later_counts_from_what_it_does() -> None:
    made, now = row({MAIN: 1.0}, {MAIN: 1.0, LATER: 0.0}, {MAIN: 1.0, LATER: 0.01})
    assert made.idle(now) == 2.0
    made, now = row({MAIN: 1.0}, {MAIN: 1.0, LATER: 0.5})
    assert made.idle(now) == 0.0


def test_a_thread_that_looks_for_messages_all_the_time_is_not_at_work() -> None:
    spins = [{MAIN: 1.0, NATIVE: 0.5 * second} for second in range(4)]
    made, now = row(*spins, names={NATIVE: "TP_SHM_reactor"})
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
