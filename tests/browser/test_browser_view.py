"""What a panel shows, in JupyterLab with a real browser: 64 replayed ranks, dark, saved, accessible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browser_bench import (
    choose_theme,
    in_both_themes,
    keep_picture,
    needs_browser,
    notebook_page,
    playwright,
    run_cell,
    serve,
    violations,
    write_notebook,
)
from looks import diverging
from msgspec.structs import replace

from helpers.observe.recording import load, pack

NOTEBOOK = "replay/replay.ipynb"
MADE = {"machine": "64 ranks of a test", "torch": "2.13.0", "date": "2026-11-21T08:00:00+00:00"}
CELL = "from helpers.panel import open_recording\nopen_recording('run.jsonl.gz')"

pytestmark = [*needs_browser, in_both_themes]


@pytest.fixture
def notebooks(tmp_path: Path) -> Path:
    """A folder with a recording of 64 ranks and a notebook that opens it."""
    folder = tmp_path / "notebooks" / "replay"
    write_notebook(folder / "replay.ipynb", CELL)
    logs = {f"rank {rank}": [f"step {step} of rank {rank}" for step in range(40)] for rank in (0, 17)}
    recording = replace(diverging(64, 17), made=MADE, name="a job of 64 ranks", logs=logs)
    (folder / "run.jsonl.gz").write_bytes(pack(recording))
    return tmp_path


@pytest.fixture
def page(notebooks: Path, theme: str) -> Iterator[playwright.Page]:
    """A page with the replay of 64 ranks, in a theme."""
    with serve(notebooks) as jupyter:
        choose_theme(notebooks, theme)
        with notebook_page(jupyter, NOTEBOOK, reduced_motion="reduce") as page:
            run_cell(page, "open_recording")
            page.locator(".sr-lanes svg").wait_for()
            yield page
            keep_picture(page, f"replay-{theme.lower()}")


def test_64_replayed_ranks(page: playwright.Page, notebooks: Path, theme: str) -> None:
    panel = page.locator(".stuck-ranks").first
    expect = playwright.expect
    assert page.locator("body").get_attribute("data-jp-theme-light") == str(theme == "Light").lower()
    expect(panel).to_contain_text("Recording of 2026-11-21 08:00 UTC: 64 ranks of a test; torch 2.13.0")
    expect(panel.get_by_role("img", name="Timeline of 64 ranks")).to_be_visible()
    expect(panel).to_contain_text("collective-mismatch")

    handle = panel.get_by_role("slider")
    handle.focus()
    page.keyboard.press("Home")
    expect(panel).to_contain_text("second 1.0 of 12.8.")
    expect(panel).not_to_contain_text("collective-mismatch")
    page.keyboard.press("ArrowRight")
    expect(handle).to_have_attribute("aria-valuetext", "second 1.1")
    panel.get_by_role("combobox", name="Speed").select_option(label="10 times")
    panel.get_by_role("button", name="Play").press("Enter")
    expect(panel).to_contain_text("second 12.8 of 12.8.")
    expect(panel.get_by_role("button", name="Play")).to_be_visible()

    panel.get_by_role("tab", name="Output").click()
    panel.get_by_role("textbox", name="Search").fill("step 39")
    expect(panel.locator(".sr-log")).to_have_text("step 39 of rank 0")
    for tab in ("Ports", "Processes", "Memory", "Stacks", "Ranks"):
        panel.get_by_role("tab", name=tab).click()
        assert violations(page, ".stuck-ranks .widget-tab") == [], tab
    assert violations(page, ".stuck-ranks") == []

    panel.get_by_role("button", name="Web page").click()
    with page.expect_download() as download:
        panel.get_by_role("link", name="Download it").click()
    html = download.value.path().read_text(encoding="utf-8")
    assert "<svg" in html and "Timeline of 64 ranks" in html
    panel.get_by_role("button", name="Recording").click()
    expect(panel.get_by_role("status").last).to_contain_text(".jsonl.gz beside the notebook")
    [saved] = (notebooks / "notebooks" / "replay" / "stuck-ranks-saved").glob("*.gz")
    assert load(saved).logs["rank 0"][-1] == "step 39 of rank 0"
