"""A kernel's event loop that a cell holds is told from one that answers."""

from __future__ import annotations

import asyncio

from panel_fakes import DEADLINE, Clock, FakeSession, click

from helpers.panel.run.job_panel import JobPanel
from helpers.panel.run.pulse import HELD, WARNING, Pulse


def test_a_loop_that_answers_is_not_held() -> None:
    clock = Clock()

    async def cell() -> list[bool]:
        pulse, seen = Pulse(clock), []
        for _ in range(5):
            seen.append(pulse.is_blocked)
            clock.now += HELD
            await asyncio.sleep(0)
        return seen

    assert asyncio.run(cell()) == [False] * 5


def test_a_loop_is_held_until_it_answers() -> None:
    clock = Clock()

    async def cell() -> list[bool]:
        pulse = Pulse(clock)
        seen = [pulse.is_blocked]
        clock.now += HELD  # the cell computes and does not await
        seen.append(pulse.is_blocked)
        await asyncio.sleep(0)
        seen.append(pulse.is_blocked)
        return seen

    assert asyncio.run(cell()) == [False, True, False]


def test_without_a_loop_nothing_is_held() -> None:
    clock = Clock()
    pulse = Pulse(clock)
    clock.now += HELD
    assert not pulse.is_blocked and pulse.warning == ""


def test_a_loop_that_has_been_closed_is_not_held() -> None:
    async def cell() -> Pulse:
        return Pulse(Clock())

    assert not asyncio.run(cell()).is_blocked


def test_the_panel_says_that_clicks_have_to_wait() -> None:
    clock, session = Clock(), FakeSession()

    async def cell() -> None:
        panel = JobPanel("python x.py", lambda *_: session, clock=clock)  # type: ignore[arg-type,return-value]
        click(panel, "Run")
        assert session.started.wait(DEADLINE)
        for _ in range(3):  # the supervisor's samples arrive while the cell computes
            clock.now += HELD
            session.sample()
        assert WARNING in panel.status
        await asyncio.sleep(0)
        clock.now += HELD
        session.sample()
        assert WARNING not in panel.status
        session.end()

    asyncio.run(cell())
