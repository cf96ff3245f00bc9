"""What every panel does, with a session that follows a script: updates, stops, replaced runs."""

from __future__ import annotations

import asyncio
import itertools
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from ipywidgets import Tab
from msgspec.structs import replace
from panel_fakes import (
    DEADLINE,
    Clock,
    FakeLogs,
    FakeSession,
    buttons,
    click,
    control,
    count_updates,
    every_widget,
    html_of,
    snapshot,
    wait_for_threads,
    wait_until,
)

from helpers.labs.stage import Stage
from helpers.model.facts import Report, Verdict
from helpers.model.frames import Frame
from helpers.model.slow import Share, Slow
from helpers.panel.run.job_panel import JobPanel
from helpers.panel.run.moment import Moment
from helpers.panel.run.pace import PER_SECOND, SHARE
from helpers.panel.run.screen import Screen
from helpers.panel.show import view
from helpers.panel.widgets.native import Spoken
from helpers.report.source_lines import Sources


class Bench:
    """A panel for commands, and every command that it has run in one of the given sessions."""

    def __init__(self, *sessions: FakeSession) -> None:
        self.clock = Clock()
        self.sessions = list(sessions)
        self.made: list[str] = []
        self.panel = JobPanel(make=self._make, clock=self.clock)  # type: ignore[arg-type]

    def _make(self, command: list[str], _: Path) -> FakeSession:
        self.made.append(" ".join(command))
        return self.sessions[len(self.made) - 1]

    def press_run(self, command: str = "broken") -> None:
        control(self.panel, "Command").value = command
        click(self.panel, "Run")

    def begin(self, command: str = "broken") -> FakeSession:
        """Start the next session and return it once it has started."""
        session = self.sessions[len(self.made)]
        self.press_run(command)
        assert session.started.wait(DEADLINE)
        return session


def test_a_run_shows_ranks_logs_and_hardware() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample(3.0)
    shown = html_of(bench.panel)
    for part in ("cpu, gloo, 2 ranks", "Running broken.", "rank 0", "rank 1"):
        assert part in shown
    assert bench.panel.status == "Running broken. 3 s: ranks 0 and 1 running"
    session.end()
    assert "All is well." in html_of(bench.panel)
    assert bench.panel.status == "The run of broken has finished; no process is left behind."


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
    assert bench.panel.status == "Running broken. 3 s: ranks 0 and 1 running"
    session.end()
    assert heard[:2] == ["Starting broken.", "Running broken."]
    assert "All is well." in heard[2] and heard[3:] == [
        "The run of broken has finished; no process is left behind."
    ]
    assert [found for found in every_widget(bench.panel) if isinstance(found, Spoken)] == spoken


def test_a_verdict_that_is_held_back_is_nowhere_until_it_is_revealed() -> None:
    screen = Screen(threading.RLock())
    screen.stage = Stage.OUTCOME
    suspect = Verdict("running", "none", suspicion="rank 1 is suspect")
    found = Verdict("hang", "missing-rank", summary="It was rank 1.", since=1.0, culprits=(1,))
    seen, logs, sources = [snapshot()], FakeLogs(), Sources(None)
    screen.show(Moment(seen, suspect, logs, sources))
    assert "suspect" not in html_of(screen)
    screen.show(Moment(seen, found, logs, sources, Report(found, seen[0])))
    shown = html_of(screen)
    assert "hang" in shown and "missing-rank" not in shown and "It was" not in shown
    screen.stage = Stage.CULPRITS
    shown = html_of(screen)
    assert "missing-rank" in shown and "It was" not in shown
    screen.stage = Stage.STATEMENT
    shown = html_of(screen)
    assert "It was rank 1." in shown and "hang (proved): missing-rank" in shown


SLOW = Slow(
    (1,),
    0.5,
    "input",
    10.0,
    Frame("data.py", 31, "decode"),
    shares=(Share((1,), 0.5, 0.0, Frame("data.py", 31, "decode"), "input"), Share((0,), 0.0, 0.5)),
)


def test_who_is_waited_for_has_a_tab_while_there_is_somebody() -> None:
    screen = Screen(threading.RLock())
    [tabs] = [found for found in every_widget(screen) if isinstance(found, Tab)]
    seen, logs, sources = [snapshot()], FakeLogs(), Sources(None)
    calm, slow = Verdict("running", "none"), Verdict("running", "none", slow=SLOW)
    screen.show(Moment(seen, calm, logs, sources))
    assert "Slow" not in tabs.titles and len(tabs.children) == len(tabs.titles)
    screen.show(Moment(seen, slow, logs, sources))
    assert tabs.titles[-1] == "Slow" and tabs.selected_index == 0
    assert "data.py:31" in html_of(tabs.children[-1])
    tabs.selected_index = len(tabs.titles) - 1
    screen.show(Moment(seen, slow, logs, sources))
    assert tabs.selected_index == len(tabs.titles) - 1, "a tab that is open stays open"
    screen.show(Moment(seen, calm, logs, sources))
    assert "Slow" not in tabs.titles and tabs.selected_index == 0
    failed = replace(slow, outcome="error", cause="error")
    screen.show(Moment(seen, failed, logs, sources, Report(failed, seen[0])))
    assert "Slow" not in tabs.titles, "after a failure the failure matters"


@pytest.mark.parametrize("over", [False, True])
def test_who_is_waited_for_is_held_back_like_a_verdict(over: bool) -> None:
    screen = Screen(threading.RLock())
    seen = [snapshot()]
    verdict = Verdict("ok" if over else "running", "none", slow=SLOW)
    report = Report(verdict, seen[0]) if over else None
    screen.stage = Stage.OUTCOME
    screen.show(Moment(seen, verdict, FakeLogs(), Sources(None), report))
    for stage, line, helps in (
        (Stage.OUTCOME, False, False),
        (Stage.CULPRITS, False, False),
        (Stage.STATEMENT, True, False),
        (Stage.FIX, True, True),
    ):
        screen.stage = stage
        shown = html_of(screen)
        assert ("data.py:31" in shown, "workers" in shown) == (line, helps), stage
        assert ("waited for 50 %" in shown) == line


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
    files = {"Web page", "Recording"}
    session = bench.begin()
    session.sample()
    assert bench.panel.finished is None and not files & buttons(bench.panel)
    session.end()
    run = bench.panel.finished
    assert run is not None and run.name == "Your job: broken"
    assert run.snapshots[-1].time == session.report.snapshot.time
    assert files <= buttons(bench.panel)
    session = bench.begin()
    assert bench.panel.finished is None and not files & buttons(bench.panel)
    session.end()
    bench.panel.reset()
    assert bench.panel.finished is None


def test_a_picture_that_takes_long_is_drawn_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    drawn: list[float] = []

    def lanes(*_: object, **__: object) -> str:
        drawn.append(bench.clock.now)
        bench.clock.now += 0.2
        return ""

    monkeypatch.setattr(view, "lanes", lanes)
    for step in range(40):
        bench.clock.now += 0.25
        session.sample(float(step))
        said = f"Running broken. {step} s: ranks 0 and 1 running"
        assert bench.panel.status == said, "the rest is shown at every update"
    gaps = [after - before for before, after in itertools.pairwise(drawn)]
    assert len(gaps) > 2 and all(0.2 / SHARE <= gap < 0.2 / SHARE + 0.5 for gap in gaps)
    session.end()


def test_a_fault_of_the_instrument_is_said() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.fault = RuntimeError("the observer has failed")
    session.over.set()
    wait_for_threads("panel run")
    assert bench.panel.status == "the observer has failed"


def test_a_panel_that_cannot_draw_says_why_when_the_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    def lanes(*_: object, **__: object) -> str:
        raise ValueError("no picture")

    bench = Bench(FakeSession())
    session = bench.begin()
    monkeypatch.setattr(view, "lanes", lanes)
    for send in (session.sample, session.end):
        with suppress(ValueError):  # a real session only logs it
            send()
    session.over.set()
    wait_for_threads("panel run")
    assert bench.panel.status == "no picture"


def test_nothing_is_sent_when_nothing_has_changed() -> None:
    bench = Bench(FakeSession())
    session = bench.begin()
    session.sample(1.0)
    seen = count_updates(bench.panel)
    bench.clock.now += 1
    session.sample(1.0)
    assert seen == []
    session.end()


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
    assert bench.panel.status == "stopped; no process is left behind"


def test_stop_without_a_run_says_so() -> None:
    bench = Bench(FakeSession())
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."
    bench.begin().end()
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."


def test_a_second_run_starts_only_after_the_end_of_the_first() -> None:
    bench = Bench(FakeSession(), FakeSession())
    first, second = bench.sessions
    bench.begin()
    first.ends_on_stop = False
    bench.press_run("fixed")
    assert first.stop_asked.wait(DEADLINE)
    assert bench.made == ["broken"] and bench.panel.status == "Starting fixed."
    first.end()
    assert second.started.wait(DEADLINE)
    assert "All is well." not in html_of(bench.panel), "the replaced run must not show its end"
    second.end()
    assert bench.panel.status == "The run of fixed has finished; no process is left behind."


def test_many_clicks_start_only_the_last_run() -> None:
    bench = Bench(FakeSession(), FakeSession())
    first, second = bench.sessions
    bench.begin()
    first.ends_on_stop = False
    for number in range(5):
        bench.press_run(f"run-{number}")
    first.end()
    assert second.started.wait(DEADLINE)
    assert bench.made == ["broken", "run-4"]
    assert bench.panel.status == "Starting run-4."
    second.end()
    wait_for_threads("panel run")
    assert bench.made == ["broken", "run-4"]


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
    bench.press_run()
    wait_until(bench.panel, lambda: bench.panel.status == "There is no command torchrum.")
    bench.panel.stop()
    assert bench.panel.status == "Nothing is running."


def test_an_interrupted_cell_stops_its_run() -> None:
    session = FakeSession()
    panel = JobPanel("python x.py", lambda *_: session)

    async def interrupted() -> None:
        cell = asyncio.create_task(panel.run())
        await asyncio.to_thread(session.started.wait, DEADLINE)
        cell.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cell

    asyncio.run(interrupted())
    assert session.stop_asked.is_set()


def test_job_panel_runs_what_is_typed_in_the_folder_that_is_typed(tmp_path: Path) -> None:
    session = FakeSession()
    made: list[tuple[list[str], Path]] = []

    def make(command: list[str], folder: Path) -> FakeSession:
        made.append((command, folder))
        return session

    panel = JobPanel(make=make)  # type: ignore[arg-type]
    click(panel, "Run")
    assert panel.status == "There is no command yet: type one into the field."
    control(panel, "Folder").value = "/not/there"
    with pytest.raises(ValueError, match="There is no folder /not/there"):
        asyncio.run(panel.run("python x.py"))
    control(panel, "Folder").value = str(tmp_path)

    async def run() -> str:
        cell = asyncio.create_task(panel.run("python 'my train.py' --lr 1"))
        await asyncio.to_thread(session.started.wait, DEADLINE)
        click(panel, "Stop")
        return (await cell).outcome

    assert asyncio.run(run()) == "ok"
    assert made == [(["python", "my train.py", "--lr", "1"], tmp_path)]
    assert panel.status == "stopped; no process is left behind"
    assert repr(panel) == "Your job: Run, Stop; fields for the command and its folder"
