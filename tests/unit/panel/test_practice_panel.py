"""Practice: the verdict is held back until it is given, and what is solved is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from ipywidgets import Widget
from panel_fakes import click, html_of, text_of, visible

from helpers.labs import progress
from helpers.labs.lab import LabError
from helpers.labs.practice import all_hangs
from helpers.labs.prediction import practised
from helpers.panel.practice_panel import PracticePanel
from helpers.panel.widgets.native import Choices
from helpers.report.source_lines import Sources
from helpers.session import report_of

HANGS = all_hangs()


@pytest.fixture
def panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PracticePanel:
    monkeypatch.setenv(progress.FOLDER, str(tmp_path))
    return PracticePanel(HANGS, keep=True)


def answer(panel: PracticePanel, *, right: bool) -> None:
    """Answer every question on the hang that is shown."""
    recording = panel.hang.recording()
    report = report_of(tuple(recording.snapshots()), recording.watched.patience)
    for asked in practised(report, Sources(None, recording.sources).line):
        (field,) = [one for one in choices(panel) if asked.choices[0] in one._values]
        wanted = [n for n, text in enumerate(asked.choices) if (text in asked.right) == right]
        field.chosen = wanted if asked.several else wanted[:1]
    click(panel, "Answer")


def choices(panel: Widget) -> list[Choices]:
    return [widget for widget in visible(panel) if isinstance(widget, Choices)]


def test_a_hang_is_shown_with_its_program_and_without_its_verdict(panel: PracticePanel) -> None:
    shown = text_of(html_of(panel))
    assert "What is yours?" in shown
    assert "import torch" in shown and panel.hang.command in shown
    assert "What is the cause?" in shown and "Evidence" not in shown
    assert panel.hang == HANGS[0]


def test_right_answers_solve_it_and_are_kept(panel: PracticePanel) -> None:
    answer(panel, right=True)
    assert panel.solved == ("01",)
    assert "hang" in text_of(html_of(panel)) and "Evidence" in text_of(html_of(panel))
    assert PracticePanel(HANGS, keep=True).solved == ("01",)
    assert PracticePanel(HANGS, keep=True).hang.name == "02"
    assert PracticePanel(HANGS).solved == ()


def test_a_wrong_answer_shows_the_verdict_and_solves_nothing(panel: PracticePanel) -> None:
    answer(panel, right=False)
    assert panel.solved == ()
    assert "Evidence" in text_of(html_of(panel))


def test_the_next_hang_is_of_the_chosen_level_and_unsolved(panel: PracticePanel) -> None:
    answer(panel, right=True)
    click(panel, "Next hang")
    assert panel.hang.name == "02"
    (level,) = [one for one in choices(panel) if one.label == "Level"]
    level.chosen = [2]
    assert panel.hang.level == "hard"
    assert "What is yours?" in text_of(html_of(panel))
    level.chosen = [0]
    assert panel.hang.level == "easy" and panel.hang.name not in panel.solved


def test_a_hang_that_is_not_there_is_one_sentence(panel: PracticePanel) -> None:
    with pytest.raises(LabError, match="there is no hang '99' to practise on"):
        panel.show_hang("99")


def test_as_text_it_says_what_there_is(panel: PracticePanel) -> None:
    assert repr(panel).startswith(f"Practice: {len(HANGS)} hangs (")
