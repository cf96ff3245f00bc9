"""A lesson and its panel on a page: beside each other or not, and nothing is cut, broken or small."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from browser_bench import (
    RUN_SECONDS,
    Jupyter,
    keep_picture,
    needs_browser,
    notebook_page,
    panel_on,
    playwright,
    run_cell,
    serve,
)

from helpers.panel.widgets.dock import BESIDE

expect = playwright.expect
pytestmark = [*needs_browser, pytest.mark.nightly]

ZOOMED = 720
"""Pixels of a window of 1440 at 200 % zoom."""

LABS = ("02_fsdp_saving", "03_multigpu_stall", "05_spawn_ports")
each_width = pytest.mark.parametrize("width", [1440, 1200, ZOOMED])

FAULTS = """() => {
    const shown = element => element.getClientRects().length > 0;
    const name = element => `${element.tagName} ${element.textContent.trim().slice(0, 40)}`;
    const style = element => getComputedStyle(element);
    const scrolls = element => /auto|scroll|hidden/.test(style(element).overflowX);
    const right = element => element.getBoundingClientRect().right;
    const faults = [];
    const all = (root, selector) => [...root.querySelectorAll(selector)].filter(shown);
    for (const page of all(document, '.jp-Notebook, .sr-panel')) {
        for (const listing of all(page, 'pre, .sr-source')) {
            if (!listing.closest('.sr-log, .cm-editor') && style(listing).whiteSpace !== 'pre')
                faults.push(`is broken: ${name(listing)}`);
        }
        for (const table of all(page, 'table')) {
            const out = right(table) > right(table.parentElement) + 1;
            if (out || table.scrollWidth > table.clientWidth + 1)
                faults.push(`is cut: ${name(table)}`);
        }
    }
    for (const panel of all(document, '.sr-panel')) {
        for (const part of all(panel, '*')) {
            let around = part.parentElement;
            while (around !== panel && !scrolls(around)) around = around.parentElement;
            const hidden = part.classList.contains('sr-hidden');
            if (around === panel && !hidden && right(part) > right(panel) + 1)
                faults.push(`sticks out: ${name(part)}`);
        }
        for (const text of all(panel, 'svg text')) {
            const svg = text.ownerSVGElement;
            const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            if (scale * parseFloat(style(text).fontSize) < 13) faults.push(`is small: ${name(text)}`);
        }
    }
    return [...new Set(faults)];
}"""
"""What is wrong with the notebook and the panel on a page, in words."""

LETTERS = """() => {
    const text = document.querySelector('.sr-panel .sr-lanes text');
    const svg = text.ownerSVGElement;
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return scale * parseFloat(getComputedStyle(text).fontSize);
}"""
"""How large the letters of the lanes are, in pixels of the window."""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A JupyterLab that serves some labs and the practice."""
    with serve(tmp_path_factory.mktemp("jupyter"), *LABS, "practice") as jupyter:
        yield jupyter


def fits(page: playwright.Page) -> None:
    """Fail unless nothing is wrong with a page, once JupyterLab has laid it out."""
    with suppress(playwright.TimeoutError):
        page.wait_for_function(f"({FAULTS})().length === 0", timeout=RUN_SECONDS * 100)
    assert page.evaluate(FAULTS) == []


@contextmanager
def page_of(jupyter: Jupyter, notebook: str, width: int) -> Iterator[playwright.Page]:
    """A page that shows a notebook; a narrow one hides what tells that its kernel is ready."""
    with notebook_page(jupyter, notebook) as page:
        page.set_viewport_size({"width": width, "height": 900})
        yield page


@each_width
@pytest.mark.parametrize("lab", LABS)
def test_a_lab_fits_and_has_one_panel(jupyter: Jupyter, lab: str, width: int) -> None:
    with page_of(jupyter, f"{lab}/{lab}.ipynb", width) as page:
        files = page.locator("#filebrowser")
        expect(files).to_be_visible()
        fits(page)
        cell = run_cell(page, "open_lab")
        panel = panel_on(page)
        start = panel.get_by_role("button", name="Run broken")
        expect(cell.get_by_text(BESIDE)).to_have_count(int(width > ZOOMED))
        expect(start).to_be_visible()
        expect(files).to_be_hidden()
        fits(page)
        keep_picture(page, f"layout-{lab}-{width}")
        quiz = run_cell(page, "lab.quiz")
        expect(quiz.get_by_role("button", name="Answer").last).to_be_visible()
        claims = run_cell(page, "lab.claims")
        claims.get_by_text(re.compile(r"All \d+ claims")).click()
        fits(page)

        earlier = start.element_handle()
        run_cell(page, "open_lab")
        earlier.wait_for_element_state("hidden")
        expect(cell.get_by_text(BESIDE)).to_have_count(int(width > ZOOMED))
        expect(panel).to_have_count(1)
        expect(start).to_be_visible()


@each_width
def test_a_hang_fits_and_is_large_on_a_big_screen(jupyter: Jupyter, width: int) -> None:
    with page_of(jupyter, "practice/practice.ipynb", width) as page:
        run_cell(page, "open_practice")
        panel = panel_on(page)
        expect(panel).to_contain_text("What is yours?")
        expect(panel.locator(".sr-lanes")).to_be_visible()
        for tab in panel.get_by_role("tab").all():
            tab.click()
            fits(page)
        keep_picture(page, f"layout-practice-{width}")
        small = page.evaluate(LETTERS)
        panel.get_by_role("button", name="Big screen").click()
        page.wait_for_function(f"({LETTERS})() > 1.4 * {small}")
        fits(page)
        keep_picture(page, f"layout-practice-{width}-big")


def test_a_page_without_room_takes_the_panel_back_and_a_click_docks_it(jupyter: Jupyter) -> None:
    with notebook_page(jupyter, "practice/practice.ipynb", width=1440) as page:
        cell = run_cell(page, "open_practice")
        panel = panel_on(page)
        expect(cell).to_contain_text(BESIDE)
        page.set_viewport_size({"width": ZOOMED, "height": 1500})
        expect(cell.locator(".sr-panel")).to_contain_text("What is yours?")
        expect(panel).to_have_count(1)
        fits(page)
        page.set_viewport_size({"width": 1440, "height": 1500})
        cell.get_by_role("button", name="Show it beside").click()
        expect(cell).to_contain_text(BESIDE)
        expect(panel).to_have_count(1)
