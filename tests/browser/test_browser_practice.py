"""Practice in JupyterLab: a hang is judged by the learner, beside the notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from browser_bench import (
    DOCKED,
    come_back,
    keep_picture,
    needs_browser,
    notebook_page,
    panel_on,
    playwright,
    run_cell,
    serve,
    violations,
)

from helpers.labs.practice import Hang, all_hangs
from helpers.labs.prediction import practised
from helpers.panel.widgets.dock import BESIDE
from helpers.report.source_lines import Sources
from helpers.session import report_of

pytestmark = needs_browser
expect = playwright.expect


def answer(panel: playwright.Locator, hang: Hang) -> None:
    """Answer every question right."""
    recording = hang.recording()
    asked = practised(
        report_of(tuple(recording.snapshots()), recording.watched.patience),
        Sources(None, recording.sources).line,
    )
    for question in asked:
        group = panel.locator(".sr-choices", has_text=question.text.replace("`", ""))
        for right in question.right:
            group.get_by_text(right.replace("`", ""), exact=True).click()
    panel.get_by_role("button", name="Answer").click()
    expect(panel).to_contain_text(f"{len(asked)} of {len(asked)} right")
    expect(panel).to_contain_text("Evidence")


def test_a_hang_is_solved_and_the_next_one_runs_live(
    tmp_path: Path, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    practice = serve(tmp_path, "practice")
    with practice as jupyter, notebook_page(jupyter, "practice/practice.ipynb", width=DOCKED) as page:
        cell = run_cell(page, "open_practice")
        expect(cell).to_contain_text(BESIDE)
        panel = panel_on(page)
        expect(panel).to_contain_text("Hang 01")
        expect(panel).to_contain_text("What is yours?")
        expect(panel).not_to_contain_text("Evidence")
        assert violations(page, ".sr-panel") == []
        keep_picture(page, "practice-asked")

        answer(panel, all_hangs()[0])
        expect(panel).to_contain_text("easy 1 of")
        keep_picture(page, "practice-solved")

        panel.get_by_role("button", name="Next hang").click()
        expect(panel).to_contain_text("Hang 02")
        panel.get_by_role("button", name="Run it live").click()
        expect(panel).to_contain_text("The run of hang 02 has finished; no process is left behind.")
        expect(panel).to_contain_text("What is yours?")
        keep_picture(page, "practice-live")
        assert processes_left() == []


@pytest.mark.nightly
@pytest.mark.real
def test_a_large_hang_is_repaired(
    tmp_path: Path, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    hang = next(hang for hang in all_hangs() if hang.repairable)
    practice = serve(tmp_path, "practice")
    with practice as jupyter, notebook_page(jupyter, "practice/practice.ipynb", width=DOCKED) as page:
        expect(run_cell(page, "open_practice")).to_contain_text(BESIDE)
        panel = panel_on(page)
        panel.get_by_text("large", exact=True).click()
        expect(panel).to_contain_text(f"Hang {hang.name}")
        assert violations(page, ".sr-panel") == []
        answer(panel, hang)
        panel.get_by_role("button", name="Repair it").click()
        come_back(page)
        copy = jupyter.notebooks / "practice" / f"your_turn_{hang.name}"
        expect(panel).to_contain_text(f"{copy.name} is a copy of hang {hang.name}")
        keep_picture(page, "practice-repair")
        hang.copy(copy, fixed=True)
        panel.get_by_role("button", name="Run my repair").click()
        expect(panel).to_contain_text("passed: 6 checks")
        expect(panel).to_contain_text("Repaired: 1 of")
        assert violations(page, ".sr-panel") == []
        keep_picture(page, "practice-repaired")
        assert processes_left() == []
