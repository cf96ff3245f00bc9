"""Practice in JupyterLab: a hang is judged by the learner, beside the notebook."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psutil
from browser_bench import (
    DOCKED,
    keep_picture,
    needs_browser,
    notebook_page,
    panel_on,
    playwright,
    run_cell,
    serve,
    violations,
)

from helpers.labs.practice import all_hangs
from helpers.labs.prediction import practised
from helpers.panel.widgets.dock import BESIDE
from helpers.report.source_lines import Sources
from helpers.session import report_of

pytestmark = needs_browser
expect = playwright.expect


def test_a_hang_is_solved_and_the_next_one_runs_live(
    tmp_path: Path, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    recording = all_hangs()[0].recording()
    asked = practised(
        report_of(tuple(recording.snapshots()), recording.watched.patience),
        Sources(None, recording.sources).line,
    )
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

        for question in asked:
            group = panel.locator(".sr-choices", has_text=question.choices[0]).last
            for answer in question.right:
                group.get_by_text(answer.replace("`", ""), exact=True).click()
        panel.get_by_role("button", name="Answer").click()
        expect(panel).to_contain_text(f"{len(asked)} of {len(asked)} right")
        expect(panel).to_contain_text("Evidence")
        expect(panel).to_contain_text("easy 1 of")
        keep_picture(page, "practice-solved")

        panel.get_by_role("button", name="Next hang").click()
        expect(panel).to_contain_text("Hang 02")
        panel.get_by_role("button", name="Run it live").click()
        expect(panel).to_contain_text("The run of hang 02 has finished; no process is left behind.")
        expect(panel).to_contain_text("What is yours?")
        keep_picture(page, "practice-live")
        assert processes_left() == []
