"""What every panel does, with a session that follows a script: rhythm, stops, replaced runs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest
from ipywidgets import Tab
from panel_fakes import DEADLINE, Clock, FakeSession, click, count_updates, every_widget, html_of

from helpers.model.facts import Verdict
from helpers.panel.run.job_panel import JobPanel
from helpers.panel.run.pace import PER_SECOND
from helpers.panel.run.run_panel import RunPanel
from helpers.panel.widgets.native import Spoken


class Bench:
    """A panel for one command, and every session it has made."""

    def __init__(self, *sessions: FakeSession) -> None:
        self.clock = Clock()
        self.sessions = list(sessions)
        self.made: list[FakeSession] = []
        self.panel = RunPanel("Title", [], clock=self.clock)

    def make(self) -> FakeSession:
        session = self.sessions.pop(0)
        self.made.append(session)
        return session

    def begin(self) -> FakeSession:
        """Start the next session and return it once it has started."""
        session = self.sessions[0]
        run = self.panel._begin("broken", self.make)
        run.session.result(DEADLINE)
        return session


def test_a_run_shows_ranks_logs_and_hardware() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample(3.0)
    shown = html_of(bench.panel)
    for part in ("cpu, gloo, 2 ranks", "Running broken.", "rank 0", "rank 1"):
        assert part in shown
    assert bench.panel.status == "Running broken. 3 s"
    session.end()
    assert "All is well." in html_of(bench.panel)
    assert bench.panel.status == "Run broken has ended, nothing left."


def test_what_is_read_out_stays_in_the_page_and_does_not_count_seconds() -> None:
    bench = Bench(FakeSession())
    heard: list[str] = []
    spoken = [found for found in every_widget(bench.panel) if isinstance(found, Spoken)]
    for widget in spoken:
        widget.observe(lambda change: heard.append(change["new"]), "value")
    session = bench.begin()
    for second in (1.0, 2.0, 3.0):
        bench.clock.now += 1
        session.sample(second)
    assert bench.panel.status == "Running broken. 3 s"
    session.end()
    assert heard[:2] == ["Starting broken.", "Running broken."]
    assert "All is well." in heard[2] and heard[3:] == ["Run broken has ended, nothing left."]
    assert [found for found in every_widget(bench.panel) if isinstance(found, Spoken)] == spoken


def test_a_verdict_that_is_held_back_is_nowhere_until_it_is_revealed() -> None:
    bench = Bench(FakeSession())
    bench.panel._screen.reveal = False
    session = bench.begin()
    verdict = Verdict("hang", "missing-rank", summary="It was rank 1.", since=1.0, culprits=(1,))
    session.report = replace(session.report, verdict=verdict)
    session.sample(suspicion="rank 1 is suspect")
    assert "suspect" not in html_of(bench.panel)
    session.end()
    shown = html_of(bench.panel)
    assert "held back" in shown and "missing-rank" not in shown and "It was" not in shown
    bench.panel._screen.reveal = True
    shown = html_of(bench.panel)
    assert (
        "held back" not in shown and "It was rank 1." in shown and "hang (proved): missing-rank" in shown
    )


def test_only_the_open_tab_is_sent_until_the_end() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample()
    [tabs] = [found for found in every_widget(bench.panel) if isinstance(found, Tab)]
    assert "rank 0" in html_of(tabs) and "hello" not in html_of(tabs)
    tabs.selected_index = tabs.titles.index("Output")
    assert "hello" in html_of(tabs), "a tab is filled as soon as it is opened"
    assert "Processes" in tabs.titles and "sr-tree" not in html_of(tabs)
    session.end()
    assert "sr-tree" in html_of(tabs)


def test_files_are_offered_when_a_run_is_over_and_not_while_one_goes_on() -> None:
    bench = Bench(FakeSession(), FakeSession())
    session = bench.begin()
    session.sample()
    assert bench.panel.finished is None
    session.end()
    run = bench.panel.finished
    assert run is not None and run.name == "Title: broken"
    assert run.snapshots[-1].time == session.report.snapshot.time
    bench.begin()
    assert bench.panel.finished is None
    bench.made[1].end()
    bench.panel.reset()
    assert bench.panel.finished is None


def test_many_ranks_are_drawn_less_often() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample(1.0)
    drawn = bench.panel._screen._lanes.value
    for time in (1.25, 1.5, 1.75):
        bench.clock.now += 0.25
        session.sample(time)
    assert bench.panel._screen._lanes.value == drawn
    bench.clock.now += 60
    session.sample(61.0)
    assert bench.panel._screen._lanes.value != drawn
    session.end()


def test_a_fault_of_the_instrument_is_said() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.fault = RuntimeError("the observer has failed")
    session.over.set()
    bench.panel._run.wait()
    assert bench.panel.status == "the observer has failed"


def test_a_panel_that_cannot_draw_says_why_when_the_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(*_: object, **__: object) -> None:
        raise ValueError("no picture")

    bench = Bench(FakeSession())
    session = bench.begin()
    run = bench.panel._run
    assert run is not None
    monkeypatch.setattr(bench.panel._screen, "show", draw)
    for send in (session.sample, session.end):
        with suppress(ValueError):  # a real session only logs it
            send()
    session.over.set()
    run.wait()
    assert bench.panel.status == "no picture"


def test_nothing_is_sent_when_nothing_has_changed() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample(1.0)
    seen = count_updates(bench.panel)
    bench.clock.now += 1
    session.sample(1.0)
    assert seen == []


def test_at_most_five_updates_a_second() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    seen = count_updates(bench.panel)
    sent: list[float] = []
    for step in range(300):  # a sample every 10 ms for 3 s
        bench.clock.now = 100 + step / 100
        before = len(seen)
        session.sample(suspicion=f"step {step}")
        if len(seen) > before:
            sent.append(bench.clock.now)
    session.end()
    sent.append(bench.clock.now)
    assert "All is well." in html_of(bench.panel)
    assert 4 * 3 <= len(sent) <= PER_SECOND * 3
    for moment in sent:
        assert sum(moment <= other < moment + 1 for other in sent) <= PER_SECOND


def test_samples_at_the_session_s_own_rhythm_are_nearly_all_shown() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    seen = count_updates(bench.panel)
    shown = 0
    for step in range(45):  # 10 s
        bench.clock.now = 100 + step * 0.22
        before = len(seen)
        session.sample(suspicion=f"step {step}")
        shown += len(seen) > before
    assert shown >= 36
    session.end()


def test_stop_answers_at_once_and_says_when_nothing_is_left() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.ends_on_stop = False
    bench.panel.stop()
    assert session.stop_asked.is_set()
    assert bench.panel.status == "stopping..."
    bench.clock.now += 1
    session.sample(5.0)
    assert bench.panel.status == "stopping..."
    session.end()
    assert bench.panel.status == "stopped, nothing left"


def test_stop_without_a_run_says_so() -> None:
    bench = Bench(FakeSession())
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."
    bench.begin().end()
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."


def test_a_second_run_starts_only_after_the_end_of_the_first() -> None:
    bench = Bench(FakeSession(), FakeSession())
    first = bench.begin()
    first.ends_on_stop = False
    run = bench.panel._begin("fixed", bench.make)
    assert first.stop_asked.is_set()
    assert not run.session.done() and len(bench.made) == 1
    first.end()
    second = run.session.result(DEADLINE)
    assert second is bench.made[1]
    assert "All is well." not in html_of(bench.panel), "the replaced run must not show its end"
    bench.made[1].end()
    assert bench.panel.status == "Run fixed has ended, nothing left."


def test_many_clicks_start_only_the_last_run() -> None:
    bench = Bench(FakeSession(), FakeSession())
    first = bench.begin()
    first.ends_on_stop = False
    runs = [bench.panel._begin(f"run {number}", bench.make) for number in range(5)]
    first.end()
    assert runs[-1].session.result(DEADLINE) is bench.made[1]
    assert all(str(run.session.exception(DEADLINE)) for run in runs[:-1])
    assert bench.panel.status == "Starting run 4."
    bench.made[1].end()


def test_reset_clears_and_says_when_nothing_is_left() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.ends_on_stop = False
    session.sample()
    bench.panel.reset()
    assert bench.panel.status == "stopping..." and "rank 0" not in html_of(bench.panel)
    bench.clock.now += 1
    session.sample()
    assert "rank 0" not in html_of(bench.panel)
    session.end()
    assert bench.panel.status == "Ready. Nothing of the last run is left."
    assert "All is well." not in html_of(bench.panel)


def test_a_command_that_cannot_start_is_one_sentence() -> None:
    bench = Bench(FakeSession(fails=FileNotFoundError("There is no command torchrum.")))
    run = bench.panel._begin("broken", bench.make)
    assert run.session.exception(DEADLINE)
    assert bench.panel.status == "There is no command torchrum."
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."


def test_an_interrupted_cell_stops_its_run() -> None:
    session = FakeSession()
    panel = JobPanel("python x.py", lambda command: session)

    async def interrupted() -> None:
        cell = asyncio.create_task(panel.run())
        await asyncio.to_thread(session.started.wait, DEADLINE)
        cell.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cell

    asyncio.run(interrupted())
    assert session.stop_asked.is_set()


def test_job_panel_runs_what_is_typed() -> None:
    session = FakeSession()
    commands: list[list[str]] = []

    def make(command: list[str]) -> FakeSession:
        commands.append(command)
        return session

    panel = JobPanel(make=make)  # type: ignore[arg-type]
    click(panel, "Run")
    assert panel.status == "There is no command yet: type one into the field."

    async def run() -> str:
        cell = asyncio.create_task(panel.run("python 'my train.py' --lr 1"))
        await asyncio.to_thread(session.started.wait, DEADLINE)
        click(panel, "Stop")
        return (await cell).outcome

    assert asyncio.run(run()) == "ok"
    assert commands == [["python", "my train.py", "--lr", "1"]]
    assert panel.status == "stopped, nothing left"
    assert repr(panel) == "Your job: Run, Stop; a field for the command"
