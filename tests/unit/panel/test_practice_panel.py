"""Practice: the verdict is held back until it is given, and what is solved is kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from ipywidgets import Widget
from msgspec.structs import replace
from panel_fakes import (
    FakeSession,
    buttons,
    click,
    html_of,
    snapshot,
    text_of,
    visible,
    wait_for_threads,
)

from helpers.labs import progress
from helpers.labs.lab import LabError
from helpers.labs.practice import Hang, all_hangs
from helpers.labs.prediction import practised
from helpers.labs.repair import Work
from helpers.model.facts import ProcessView, RankView, Report, Snapshot, Verdict
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


def test_a_slow_job_is_asked_about_before_its_ranks_are_ranked(panel: PracticePanel) -> None:
    panel.show_hang("67")
    shown = text_of(html_of(panel))
    assert "Slow job 67 (slow)" in shown and "A recording of a run, as it was at its end." in shown
    assert "For which rank do the others wait?" in shown and "What takes the time there?" in shown
    assert "waited for" not in shown and "Share of the time" not in shown
    answer(panel, right=True)
    shown = text_of(html_of(panel))
    assert panel.solved == ("67",)
    assert "Slow: rank 2, waited for" in shown and "Share of the time" in shown


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


class Runs:
    """Sessions in place of runs: of a program that does the work that is asked, or else hangs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.sessions: list[FakeSession] = []
        self.started_from: list[Path | None] = []
        self.work: Work | None = None
        monkeypatch.setattr(Hang, "session", lambda hang, place, files_from=None: self.make(files_from))
        monkeypatch.setattr(
            Hang, "copy_folder", property(lambda hang: folder / f"your_turn_{hang.name}")
        )

    def make(self, files_from: Path | None) -> FakeSession:
        session = FakeSession()
        session.report = Report(Verdict("hang", "file-lock", summary="Still locked."), snapshot())
        if self.work is not None:
            ranks = tuple(_over(number, self.work.ranks[number].calls) for number in self.work.ranks)
            job = replace(snapshot().job, world_size=self.work.world_size, exit_code=0, ended=6.0)
            session.report = Report(Verdict("ok", "none"), Snapshot(7.0, job, ranks))
            kinds = [*self.work.lines, *self.work.last]
            session.logs.lines = {"rank 0": [kind for kind in kinds for _ in range(9)]}
        self.sessions.append(session)
        self.started_from.append(files_from)
        session.over.set()
        return session


def _over(number: int, calls: int) -> RankView:
    process = ProcessView(
        100 + number,
        "rank",
        state="exited",
        ended=5.0,
        exit_code=0,
        interpreter_finished=True,
        calls=calls,
    )
    return RankView(number, state="exited", process=process)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    return Runs(monkeypatch, tmp_path)


def test_all_files_of_a_large_hang_are_shown(panel: PracticePanel) -> None:
    panel.show_hang("54")
    shown = text_of(html_of(panel))
    for file in panel.hang.files:
        assert " ".join(file.read_text().splitlines()[-1].split()) in shown


def test_a_repair_is_offered_after_the_diagnosis_of_a_large_hang(panel: PracticePanel) -> None:
    answer(panel, right=True)
    assert "Repair it" not in buttons(panel)
    panel.show_hang("54")
    assert "Repair it" not in buttons(panel)
    answer(panel, right=False)
    assert {"Repair it", "Run my repair"} <= buttons(panel)


def test_a_copy_that_still_hangs_does_not_count(panel: PracticePanel, runs: Runs) -> None:
    panel.show_hang("58")
    answer(panel, right=True)
    click(panel, "Repair it")
    click(panel, "Run my repair")
    wait_for_threads("panel run")
    assert runs.started_from == [panel.hang.copy_folder]
    assert "not yet: the run hangs (file-lock)" in text_of(html_of(panel))
    assert "Repaired" not in text_of(html_of(panel))


def test_a_repair_that_passes_counts_and_is_kept(panel: PracticePanel, runs: Runs) -> None:
    panel.show_hang("58")
    runs.work = panel.hang.work()
    answer(panel, right=True)
    click(panel, "Repair it")
    program = panel.hang.copy_folder / panel.hang.program.name
    assert program.read_text() == panel.hang.program.read_text()
    click(panel, "Run my repair")
    wait_for_threads("panel run")
    shown = text_of(html_of(panel))
    assert "passed: 6 checks" in shown and "Repaired: 1 of 12" in shown
    assert "Repaired: 1 of 12" in text_of(html_of(PracticePanel(HANGS, keep=True)))


def test_the_questions_of_a_live_run_come_before_the_repair(panel: PracticePanel, runs: Runs) -> None:
    panel.show_hang("58")
    answer(panel, right=True)
    click(panel, "Run it live")
    wait_for_threads("panel run")
    assert runs.started_from == [None]
    assert "Repaired" not in text_of(html_of(panel))
