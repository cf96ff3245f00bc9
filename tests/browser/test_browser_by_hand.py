"""The form for what was found by hand, Share and the leader's board, in JupyterLab by keyboard."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lab_bench
import pytest
from browser_bench import (
    Keys,
    keep_picture,
    needs_browser,
    notebook_page,
    playwright,
    serve,
    violations,
    write_notebook,
)

NOTEBOOK = "by_hand/by_hand.ipynb"
CELL = f"""import os, sys
from pathlib import Path

sys.path.insert(0, {str(Path(lab_bench.__file__).parent)!r})
os.environ.update(STUCK_RANKS_SHARE=str(Path.cwd()), JUPYTERHUB_USER="ada")
from lab_bench import LabBench

lab = LabBench(Path.cwd()).panel
lab"""
BOARD = """from helpers.panel import open_board

open_board()"""

expect = playwright.expect
pytestmark = needs_browser


@pytest.fixture
def page(tmp_path: Path) -> Iterator[playwright.Page]:
    write_notebook(tmp_path / "notebooks" / NOTEBOOK, CELL, "lab.by_hand", BOARD)
    with serve(tmp_path, "05_spawn_ports") as jupyter, notebook_page(jupyter, NOTEBOOK) as page:
        yield page
        keep_picture(page, "by-hand")


def test_what_is_found_by_hand_is_typed_in_and_shared(page: playwright.Page) -> None:
    keys = Keys(page)
    keys.run_cell("LabBench")
    panel = page.locator(".stuck-ranks").first
    expect(panel.get_by_role("button", name="Share")).to_be_visible()
    keys.run_cell("lab.by_hand")
    form = page.locator(".stuck-ranks").filter(has_text="Who is odd?")
    for label, text in (("Rank", "1"), ("Call", "sleep")):
        keys.press(form.get_by_label(label), "Shift")
        page.keyboard.type(text)
    keys.press(form.get_by_role("button", name="Answer"))
    expect(form).to_contain_text("Right: rank. Not yet: call. Empty: line.")
    assert violations(page) == []
    keys.press(form.get_by_label("Line"), "Shift")
    page.keyboard.type("broken.py:1")
    keys.press(form.get_by_label("Call"), "ControlOrMeta+A")
    page.keyboard.type("print")
    page.keyboard.press("Enter")
    expect(form).to_contain_text("It prints.")
    keep_picture(page, "by-hand-right")
    keys.press(panel.get_by_role("button", name="Share"))
    expect(panel).to_contain_text("Shared as ada.")
    keys.run_cell("open_board")
    board = page.locator(".stuck-ranks").filter(has_text="07_two_letters").last
    expect(board.get_by_role("row").last).to_contain_text("ada")
    assert violations(page) == []
