"""Every lab's panel in JupyterLab, from the broken program to a check. Takes minutes."""

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
)

from helpers.labs.lab import all_labs
from helpers.panel.widgets.dock import BESIDE

pytestmark = [*needs_browser, pytest.mark.nightly]
LABS = [lab.name for lab in all_labs()]

NARROW = 1500
"""Pixels of a window in which the panel's longest list has no room left."""

CUT_OFF = """all => all.filter(one => {
    const row = one.closest('.widget-dropdown')?.parentElement;
    return row && one.getBoundingClientRect().right > row.getBoundingClientRect().right;
}).map(one => one.outerHTML)"""
"""Those of a panel's lists that reach beyond the row that they are in."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("lab", LABS)
def test_a_lab_from_broken_to_checked(
    lab: str, tmp_path: Path, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    """The broken program is run beside the notebook, the rest in the cell."""
    expect = playwright.expect
    notebook = f"{lab}/{lab}.ipynb"
    with serve(tmp_path, lab) as jupyter, notebook_page(jupyter, notebook, width=DOCKED) as page:
        cell = run_cell(page, "open_lab")
        expect(cell).to_contain_text(BESIDE)
        panel = panel_on(page)
        verdict = panel.get_by_role("status")
        page.set_viewport_size({"width": NARROW, "height": 1500})
        assert panel.locator("select").evaluate_all(CUT_OFF) == []
        page.set_viewport_size({"width": DOCKED, "height": 1500})

        panel.get_by_role("button", name="Run broken").click()
        expect(panel).to_contain_text("What is yours?")
        expect(panel).to_contain_text("3 things are held back")
        expect(verdict.filter(has_text="Odd one out:")).to_have_count(0)
        for group in panel.locator(".sr-asked").get_by_role("radiogroup").all():
            group.get_by_role("radio").first.check()
        for box in panel.locator(".sr-asked").get_by_role("checkbox").all()[:1]:
            box.check()
        keep_picture(page, f"{lab}-predict")
        panel.get_by_role("button", name="Answer").click()
        expect(panel).to_contain_text("Your answers:")
        expect(panel).to_contain_text("1 thing is held back: what to do.")
        expect(panel).not_to_contain_text("What to do")
        keep_picture(page, f"{lab}-broken")
        assert processes_left() == []

        cell.get_by_role("button", name="Show it here").click()
        expect(cell.locator(".sr-panel")).to_contain_text("Your answers:")
        expect(panel).to_have_count(1)
        expect(panel.get_by_role("button", name="Run fixed")).to_have_count(0)

        panel.get_by_role("button", name="Make my copy").click()
        come_back(page)
        panel.get_by_role("button", name="Check my copy").click()
        expect(panel).to_contain_text("not yet: ")
        keep_picture(page, f"{lab}-not-yet")
        (jupyter.notebooks / lab / "your_turn.py").write_text(
            (jupyter.notebooks / lab / "fixed.py").read_text()
        )
        panel.get_by_role("button", name="Check my copy").click()
        expect(panel).to_contain_text("passed: ")
        keep_picture(page, f"{lab}-checked")
        panel.get_by_role("button", name="Run fixed").click()
        expect(verdict.filter(has_text="✓ ok")).to_be_visible()
        expect(panel).to_contain_text("The run of fixed has finished; no process is left behind")
        assert processes_left() == []
