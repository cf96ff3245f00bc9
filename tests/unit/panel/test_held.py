"""What is held back of a run occurs nowhere in what is shown: every recorded hang, stage by stage."""

from __future__ import annotations

from functools import cache

import pytest
from panel_fakes import buttons, click, html_of, text_of

from helpers.labs.declaration import Shows
from helpers.labs.practice import Hang, all_hangs
from helpers.model.facts import Report
from helpers.model.wording import place
from helpers.panel.learn.disclosure import LessonResult
from helpers.panel.learn.gate import Disclosure, Gate
from helpers.panel.practice_panel import PracticePanel
from helpers.report.markdown import inline
from helpers.session import report_of

HANGS = [hang for hang in all_hangs() if hang.level != "slow"]
every_hang = pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.name)


@cache
def report_on(hang: Hang) -> Report:
    recording = hang.recording()
    return report_of(tuple(recording.snapshots()), recording.watched.patience)


@pytest.fixture(scope="module")
def panel() -> PracticePanel:
    return PracticePanel(HANGS)


def plain(html: str) -> str:
    return " ".join(text_of(html).split())


def statement(report: Report) -> str:
    """Where ranks parted, if no rank is seen at that line anyway; else empty."""
    parting, views = report.verdict.parting, report.snapshot.ranks
    lines = {place(frame) for view in views if view.process for frame in view.process.stack}
    parted = place(parting.where) if parting is not None and parting.where is not None else ""
    return "" if parted in lines else parted


@every_hang
def test_a_cell_shows_a_run_stage_by_stage(hang: Hang) -> None:
    report, gate = report_on(hang), Gate(("mine",))
    held = Disclosure(gate, "broken", Shows(fix="mine"))
    result = LessonResult("broken", report, disclosure=held)

    def shown() -> str:
        return text_of(result._repr_html_()) + repr(result)

    cause, parted = report.verdict.cause, statement(report)
    assert "3 things are held back" in shown() and f"cause: {cause}" not in repr(result)
    assert cause not in shown() and (not parted or parted not in shown())
    held.reveal()
    assert cause in shown() and (not parted or parted not in shown())
    gate.answered("broken")
    assert cause in shown() and parted in shown() and "1 thing is held back" in shown()
    gate.passed("mine")
    assert "held back" not in shown()


@every_hang
def test_the_panel_says_nothing_of_cause_and_fix(hang: Hang, panel: PracticePanel) -> None:
    report = report_on(hang)
    panel.show_hang(hang.name)
    told = [plain(str(inline(fitting.advice))) for fitting in report.fitting]
    shown = plain(html_of(panel))
    assert "What is yours?" in shown and plain(report.verdict.summary) not in shown
    assert not any(said in shown for said in told)
    for _ in range(3):
        click(panel, next(name for name in buttons(panel) if name.startswith("Reveal")))
    assert not told or any(said in plain(html_of(panel)) for said in told)
