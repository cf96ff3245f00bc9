"""What a learner is asked, in JupyterLab with a real browser: by keyboard, read out, accessible.

The programs of the lab are sessions that follow a script, so nothing here waits for ranks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lab_bench
import pytest
from browser_bench import (
    Keys,
    choose_theme,
    come_back,
    in_both_themes,
    keep_picture,
    needs_browser,
    notebook_page,
    playwright,
    serve,
    violations,
    write_notebook,
)

NOTEBOOK = "learn/learn.ipynb"
CELL = f"""import sys
from pathlib import Path

sys.path.insert(0, {str(Path(lab_bench.__file__).parent)!r})
from lab_bench import LabBench


class AtOnce(LabBench):
    def make(self, *settings):
        session = super().make(*settings)
        session.over.set()
        return session


bench = AtOnce(Path.cwd())
bench.ranks_write = '{{"rank": RANK, "world_size": 2, "loss": 0.5}}'
lab = bench.panel
lab"""
RECALL = """from helpers.panel import recall

recall("02")"""
LISTEN = """panel => {
    window.regions = [...panel.querySelectorAll('[aria-live]')];
    window.heard = [];
    const listen = new MutationObserver(changes => {
        for (const change of changes) {
            const region = change.target.closest?.('[aria-live]');
            if (region) window.heard.push(region.textContent.trim());
        }
    });
    listen.observe(panel, {subtree: true, childList: true, characterData: true});
}"""
"""Remembers the live regions that a panel has, and notes what is put into any."""

expect = playwright.expect
pytestmark = [*needs_browser, in_both_themes]


@pytest.fixture
def page(tmp_path: Path, theme: str) -> Iterator[playwright.Page]:
    """A page with a notebook of a small lab and its quiz, in a theme."""
    write_notebook(tmp_path / "notebooks" / NOTEBOOK, CELL, "lab.quiz", "lab.claims()", RECALL)
    with serve(tmp_path, "05_spawn_ports", "02_fsdp_saving") as jupyter:
        choose_theme(tmp_path, theme)
        with notebook_page(jupyter, NOTEBOOK) as page:
            yield page
            keep_picture(page, f"learn-{theme.lower()}")


def test_what_a_learner_is_asked(page: playwright.Page, theme: str) -> None:
    keys = Keys(page)
    keys.run_cell("AtOnce")
    panel = page.locator(".stuck-ranks").first
    keys.press(panel.get_by_role("button", name="Run broken"), "Shift")
    panel.evaluate(LISTEN)
    order = [keys.focused()]
    for _ in range(5):
        page.keyboard.press("Tab")
        order.append(keys.focused())
    assert order == [
        *("Run broken", "Stop", "Reset", "one", "Many"),
        "Show everything at once, without asking me",
    ]
    assert violations(page) == []

    keys.run_cell("AtOnce")
    panel.evaluate(LISTEN)
    keys.choose(panel.get_by_role("radiogroup", name="A few").get_by_role("radio", name="two"))
    many = panel.get_by_role("combobox", name="Many")
    keys.press(many)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(many.locator("option:checked")).to_have_text("2")
    keys.press(panel.get_by_role("button", name="Run broken"))
    expect(panel).to_contain_text("What is yours?")
    assert violations(page) == []
    keep_picture(page, f"learn-asked-{theme.lower()}")
    keys.press(panel.get_by_role("button", name="Answer"))
    expect(panel).to_contain_text("Answer every question first")
    assert violations(page) == []
    keys.choose(panel.get_by_role("radiogroup", name="Which rank fails?").get_by_role("radio").first)
    keys.press(panel.get_by_role("button", name="Answer"))
    expect(panel).to_contain_text("Your answers: 0 of 1 right.")
    expect(panel.get_by_role("checkbox", name="Show everything at once")).to_be_focused()
    assert violations(page) == []

    keys.press(panel.get_by_role("button", name="Make my copy"))
    come_back(page)
    expect(panel.get_by_role("link", name="your_turn.py")).to_be_visible()
    keys.press(panel.get_by_role("button", name="Start over"))
    expect(panel.get_by_role("button", name="No, keep mine")).to_be_visible()
    assert violations(page) == []
    keys.press(panel.get_by_role("button", name="No, keep mine"))
    expect(panel).to_contain_text("your_turn.py stays as it is.")
    expect(panel.get_by_role("button", name="No, keep mine")).to_have_count(0)
    expect(panel.get_by_role("button", name="Start over")).to_be_focused()
    keys.press(panel.get_by_role("button", name="Check my copy"))
    expect(panel).to_contain_text("passed: 7 checks")
    assert violations(page) == []
    keys.press(panel.get_by_role("button", name="Run fixed"))
    expect(panel).to_contain_text("The run of fixed has finished; no process is left behind.")
    assert violations(page) == []

    assert page.evaluate("window.regions.every(region => region.isConnected)"), "they stay in the page"
    assert panel.locator("[aria-live]").count() == page.evaluate("window.regions.length")
    heard = page.evaluate("window.heard")
    for said in (
        "What is yours?",
        "Answer every",
        "0 of 1 right",
        "Rank 1 fails.",
        "a copy of",
        "passed",
    ):
        assert any(said in text for text in heard), said

    quiz = keys.run_cell("lab.quiz")
    keys.choose(quiz.get_by_role("radio", name="a", exact=True))
    keys.press(quiz.get_by_role("button", name="Answer"))
    expect(quiz.get_by_role("status").filter(has_text="not right")).to_be_visible()
    expect(quiz.get_by_role("status").filter(has_text="0 of 1 right.")).to_be_visible()
    assert violations(page) == []

    claims = keys.run_cell("lab.claims")
    asked = claims.get_by_role("radiogroup", name="a is fine")
    keys.choose(asked.get_by_role("radio", name="partly"))
    keys.press(claims.get_by_role("button", name="Answer"))
    expect(claims.get_by_role("status").filter(has_text="Refuted here.")).to_be_visible()
    expect(claims.get_by_role("table")).to_be_hidden()
    keys.press(claims.get_by_text("All 2 claims"), "Enter")
    expect(claims.get_by_role("table")).to_contain_text("confirmed here")

    earlier = keys.run_cell("recall")
    expect(earlier.locator(".sr-dump").first).to_contain_text("LISTEN")
    keys.choose(earlier.get_by_role("radio", name="Process 1200: rank 0, its own parent"))
    keys.press(earlier.get_by_role("button", name="Answer").first)
    expect(earlier).to_contain_text("1 of 2 right. 1 not answered.")
    keys.press(earlier.get_by_role("textbox", name="should not exist?"), "4")
    page.keyboard.press("Enter")
    expect(earlier.get_by_role("status").filter(has_text="Then torchrun itself")).to_be_visible()
    assert violations(page) == []
    keep_picture(page, f"learn-recall-{theme.lower()}")
