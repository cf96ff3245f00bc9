"""The README's pictures are made here; `docs/pictures.json` holds what those in `docs/` say.

`make pictures` runs this and keeps both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from browser_bench import (
    ARTIFACTS,
    NOTEBOOKS,
    chromium,
    needs_browser,
    notebook_page,
    panel_on,
    playwright,
    run_cell,
    serve,
)
from repository import ROOT
from website.content import content
from website.exhibits import front
from website.places import FRONT
from website.publish import files, write

pytestmark = [*needs_browser, pytest.mark.nightly, pytest.mark.timeout(900)]
expect = playwright.expect
KEPT = ROOT / "docs" / "pictures.json"
LAB = "02_fsdp_saving"

STILL = """
body { padding: 16px; } .frame { padding: 0; } .playback { padding: 12px; margin: 0; }
.controls, .recorded, .inside, [data-part="said"], .sr-advice details {
  display: none !important;
}
.verdict > summary { list-style: none; }
"""
"""A picture has no buttons that cannot be pressed."""

SAID = ".sr-verdict p, .sr-parted > p, .sr-advice > p"
"""The verdict, the statement that decided and what to do."""

Keep = Callable[[str, Callable[[Path], object], list[str]], None]


def said(part: playwright.Locator) -> list[str]:
    """The paragraphs of a report in a part of the page."""
    return [" ".join(text.split()) for text in part.locator(SAID).all_inner_texts()]


@pytest.fixture
def keep() -> Keep:
    """Makes a picture, and compares what it says with what the README's says; or keeps it instead."""

    def keep(name: str, shoot: Callable[[Path], object], texts: list[str]) -> None:
        kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
        if os.environ.get("KEEP_PICTURES"):
            shoot(ROOT / "docs" / name)
            KEPT.write_text(json.dumps(kept | {name: texts}, indent=1, ensure_ascii=False) + "\n")
            return
        ARTIFACTS.mkdir(exist_ok=True)
        shoot(ARTIFACTS / name)
        assert kept[name] == texts, "make pictures"

    return keep


def test_the_first_page_answered(tmp_path: Path, keep: Keep) -> None:
    page_of = content(FRONT, front())
    write(tmp_path / "site", files({FRONT: page_of}))
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 960, "height": 1400}, reduced_motion="reduce")
        page.goto(f"{(tmp_path / 'site').as_uri()}/index.html")
        page.locator(".roomy [data-rank='41']").click()
        page.get_by_role("button", name="Answer").click()
        verdict = page.locator(".verdict .stuck-ranks")
        expect(verdict).to_be_visible()
        page.add_style_tag(content=STILL)
        playback = page.locator(".playback")
        keep("panel-64-ranks.png", lambda path: playback.screenshot(path=path), said(playback))


def test_a_lab_beside_its_lesson(tmp_path: Path, keep: Keep) -> None:
    notebook = f"{LAB}/{LAB}.ipynb"
    assert (NOTEBOOKS / notebook).is_file()
    with (
        serve(tmp_path, LAB) as jupyter,
        notebook_page(jupyter, notebook, width=1600, reduced_motion="reduce") as page,
    ):
        page.set_viewport_size({"width": 1600, "height": 1050})
        run_cell(page, "open_lab")
        panel = panel_on(page)
        panel.get_by_role("button", name="Run broken").click()
        expect(panel).to_contain_text("no process is left behind")
        for part in ("Odd one out", "Line:", "What to do"):
            panel.get_by_role("button", name="Reveal").locator("visible=true").first.click()
            expect(panel).to_contain_text(part)
        panel.locator(".sr-title").first.evaluate("title => title.scrollIntoView()")
        keep("panel-lab.png", lambda path: page.screenshot(path=path), said(panel))
