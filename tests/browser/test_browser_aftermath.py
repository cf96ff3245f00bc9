"""What a job has left, shown in JupyterLab with a real browser."""

from __future__ import annotations

import pickle
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
    write_notebook,
)
from dumps import dump, entry

CELL = "from helpers.panel import open_artifacts\nopen_artifacts('left')"

pytestmark = [*needs_browser, pytest.mark.nightly]


def test_a_folder_of_dumps(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks" / "left"
    write_notebook(folder / "left.ipynb", CELL)
    (folder / "left").mkdir()
    for rank, op in enumerate(("all_reduce", "barrier")):
        (folder / "left" / f"rank_{rank}").write_bytes(pickle.dumps(dump(entry(op, line=12 + rank))))
    expect = playwright.expect
    with serve(tmp_path) as jupyter, notebook_page(jupyter, "left/left.ipynb") as page:
        run_cell(page, "open_artifacts")
        panel = page.locator(".stuck-ranks").first
        expect(panel.get_by_role("img", name="Timeline of 2 ranks")).to_be_visible()
        expect(panel).to_contain_text("collective-mismatch")
        panel.get_by_text("Stack of rank 0").click()
        expect(panel.locator("details[open] pre")).to_contain_text("train.py:12")
        assert violations(page, ".stuck-ranks") == []
        keep_picture(page, "left")
