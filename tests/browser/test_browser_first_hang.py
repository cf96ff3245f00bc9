"""The start page in JupyterLab: the first hang, a wrong click, the right one, and the path."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from browser_bench import (
    keep_picture,
    needs_browser,
    notebook_page,
    playwright,
    run_cell,
    serve,
    violations,
)
from repository import NOTEBOOKS

pytestmark = [*needs_browser, pytest.mark.nightly]
expect = playwright.expect
LABS = sorted(path.name for path in NOTEBOOKS.iterdir() if path.is_dir())


def test_the_first_hang_is_told_after_the_right_click(tmp_path: Path) -> None:
    with serve(tmp_path, *LABS) as jupyter:
        shutil.copyfile(NOTEBOOKS / "index.ipynb", jupyter.notebooks / "index.ipynb")
        with notebook_page(jupyter, "index.ipynb") as page:
            run_cell(page, "open_first_hang")
            hang = page.locator(".stuck-ranks").first
            expect(hang.locator("[data-rank]")).to_have_count(64)
            expect(hang).not_to_contain_text("collective-mismatch")
            assert violations(page) == []

            hang.locator('[data-rank="7"]').click()
            expect(hang).to_contain_text("train.py:12")
            hang.get_by_role("button", name="Answer").click()
            expect(hang).to_contain_text("like ranks 0-6, 8-40 and 42-63")
            expect(hang).not_to_contain_text("collective-mismatch")

            hang.locator('[data-rank="41"]').click()
            expect(hang.locator(".chosen")).to_have_attribute("data-rank", "41")
            expect(hang).to_contain_text("train.py:23")
            hang.get_by_role("button", name="Answer").click()
            expect(hang).to_contain_text("Rank 41 is blocked in barrier #24")
            assert violations(page) == []
            keep_picture(page, "first-hang")

            slider = hang.get_by_role("slider")
            slider.focus()
            page.keyboard.press("Home")
            expect(hang.locator(".sr-wall")).not_to_contain_text("in barrier")
            cell = run_cell(page, "open_path")
            expect(cell).to_contain_text("✓ The first hang")
            keep_picture(page, "path")
