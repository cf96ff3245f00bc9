"""A learner's path through lab 05 in JupyterLab, with a real browser and real ranks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator

import psutil
import pytest
from browser_bench import (
    NOTEBOOKS,
    Jupyter,
    Keys,
    go_to_notebook,
    keep_picture,
    needs_browser,
    notebook_page,
    panel_on,
    playwright,
    run_cell,
    save,
    serve,
)

from helpers.labs.lab import find_lab
from helpers.labs.questions import Number, Question
from helpers.panel.widgets.controls import ENDED

LAB = "05_spawn_ports"
NOTEBOOK = f"{LAB}/{LAB}.ipynb"
Left = Callable[[], list[psutil.Process]]
expect = playwright.expect

pytestmark = [
    pytest.mark.timeout(900),
    *needs_browser,
    pytest.mark.skipif(not (NOTEBOOKS / NOTEBOOK).is_file(), reason="lab 05 is not there"),
]

WATCH = """panel => {
    window.told = [];
    const status = () => panel.querySelector('.sr-status [role=status]').textContent.trim();
    const note = (what) => window.told.push([what, performance.now()]);
    document.addEventListener('click', () => note('click'), {capture: true, once: true});
    let last = status();
    new MutationObserver(() => {
        const now = status();
        if (now !== last) { last = now; note(now); }
    }).observe(panel, {subtree: true, childList: true, characterData: true});
}"""
"""Notes the next click and every change of the status line, with the page's own clock."""


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    """A JupyterLab that serves a copy of lab 05."""
    with serve(tmp_path_factory.mktemp("jupyter"), LAB) as jupyter:
        yield jupyter


@pytest.fixture
def page(jupyter: Jupyter, request: pytest.FixtureRequest) -> Iterator[playwright.Page]:
    """A page on which the lab's notebook is open for the first time."""
    shutil.rmtree(jupyter.state, ignore_errors=True)
    with notebook_page(jupyter, NOTEBOOK) as page:
        yield page
        keep_picture(page, request.node.name)


@pytest.fixture
def panel(page: playwright.Page) -> playwright.Locator:
    """The panel of the lab, fresh from its cell."""
    run_cell(page, "open_lab")
    return panel_on(page)


@pytest.mark.nightly
def test_lab_05_by_keyboard(page: playwright.Page, jupyter: Jupyter, processes_left: Left) -> None:
    """From the broken program over a prediction, the fix, the quiz and an own copy to its check."""
    keys = Keys(page)
    keys.run_cell("open_lab")
    panel = panel_on(page)
    keys.press(panel.get_by_role("button", name="Run broken"))
    expect(panel).to_contain_text("What is yours?")
    expect(panel).to_contain_text("The run of broken has finished; no process is left behind")
    expect(panel).not_to_contain_text("address-in-use")
    keep_picture(page, "lab05-predict")

    keys.choose(panel.get_by_role("radio", name="the worker of rank 0"))
    keys.choose(panel.get_by_role("radio", name="RuntimeError"))
    keys.choose(panel.get_by_role("radio", name="broken.py:23: fabric.launch()"))
    keys.press(panel.get_by_role("button", name="Answer"))
    expect(panel).to_contain_text("Your answers: 2 of 3 right.")
    expect(panel).to_contain_text("address-in-use")
    keep_picture(page, "lab05-broken")
    assert processes_left() == []

    keys.run_cell("open_lab")
    expect(panel).to_contain_text("You were at by hand, 2 of 6 steps done.")
    keys.press(panel.get_by_role("button", name="Go on"))

    by_hand = keys.run_cell("lab.by_hand")
    for label, text in (("Rank", "0"), ("Call", "launch"), ("Line", "broken.py:23")):
        keys.press(by_hand.get_by_label(label), "Shift")
        page.keyboard.type(text)
    keys.press(by_hand.get_by_role("button", name="Answer"))
    expect(by_hand).to_contain_text("wants the port that rank 0 listens on")

    quiz = keys.run_cell("lab.quiz")
    for question in find_lab(LAB).quiz:
        answer_right(keys, quiz, question)
    expect(quiz).to_contain_text("9 of 9 right.")

    keys.go_to("open_lab")
    keys.press(panel.get_by_role("button", name="Make my copy"))
    editor = page.locator(".jp-FileEditor .cm-content")
    expect(editor).to_be_focused()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text((NOTEBOOKS / LAB / "fixed.py").read_text())
    save(page, "your_turn.py")
    page.keyboard.press("Control+Shift+BracketLeft")
    keys.press(panel.get_by_role("button", name="Check my copy"))
    expect(panel).to_contain_text("passed: ")
    keep_picture(page, "lab05-checked")
    assert (jupyter.notebooks / LAB / "your_turn.py").read_text() != ""

    keys.press(panel.get_by_role("button", name="Run fixed"))
    expect(panel).to_contain_text("The run of fixed has finished; no process is left behind")
    expect(panel.get_by_role("status").filter(has_text="✓ ok")).to_be_visible()
    expect(panel.get_by_role("list", name="Your way")).not_to_contain_text("still open")
    keep_picture(page, "lab05-fixed")
    assert processes_left() == []


def test_stop_answers_at_once_and_leaves_nothing(
    page: playwright.Page, panel: playwright.Locator, processes_left: Left
) -> None:
    """Also while a cell awaits the run, and behind a cell that does not await it says so."""
    cell = run_cell(page, 'await lab.run("fixed"')
    expect(panel).to_contain_text("Running fixed")
    panel.evaluate(WATCH)
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("stopped; no process is left behind")
    expect(cell.locator(".jp-InputPrompt")).to_have_text(re.compile(r"\[\d+\]"))
    told = page.evaluate("window.told")
    words = [what for what, _ in told]
    answer = words.index("stopping...")
    assert words[0] == "click"
    assert words[answer:] == ["stopping...", "stopped; no process is left behind"]
    assert all(what.startswith("Running fixed") for what in words[1:answer]), "what was on its way"
    print(f"from the click to 'stopping...': {told[answer][1] - told[0][1]:.0f} ms")
    assert processes_left() == []

    panel.get_by_role("button", name="Run fixed").click()
    expect(panel).to_contain_text("Running fixed")
    page.locator(".jp-CodeCell", has_text="open_lab").first.locator(".jp-InputPrompt").click()
    page.keyboard.press("b")
    page.keyboard.press("Enter")
    page.keyboard.insert_text("import time; time.sleep(5)")
    page.keyboard.press("Control+Enter")
    expect(panel).to_contain_text("A cell without await is running")
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("stopped; no process is left behind")
    assert processes_left() == []


@pytest.mark.nightly
def test_a_restart_leaves_a_sentence_and_no_process(
    page: playwright.Page, panel: playwright.Locator, jupyter: Jupyter, processes_left: Left
) -> None:
    panel.get_by_role("button", name="Run broken").click()
    expect(panel.get_by_role("table").first).to_contain_text("rank 0")
    ended = page.get_by_text(ENDED).first
    expect(ended).to_be_hidden()
    page.locator(".jp-CodeCell", has_text="open_lab").first.locator(".jp-InputPrompt").click()
    page.keyboard.press("0")
    page.keyboard.press("0")
    page.locator(".jp-Dialog").wait_for()
    page.keyboard.press("Enter")
    expect(ended).to_be_visible()
    assert processes_left() == []
    keep_picture(page, "lab05-restarted")

    save(page, f"{LAB}.ipynb")
    go_to_notebook(page, jupyter.page(NOTEBOOK))
    expect(ended).to_be_visible()
    expect(page.get_by_text("model not found")).to_be_hidden()

    run_cell(page, "open_lab")
    expect(panel.get_by_role("button", name="Run broken")).to_be_visible()
    expect(ended).to_be_hidden()


def answer_right(keys: Keys, quiz: playwright.Locator, question: Question) -> None:
    """Give the right answer to a question of the quiz."""
    name = plain(question.question)
    if isinstance(question, Number):
        asked = keys.page.get_by_role("textbox", name=name)
        keys.press(asked, f"{question.least:g}")
    else:
        asked = keys.page.get_by_role("radiogroup", name=name)
        keys.choose(asked.get_by_role("radio", name=plain(question.right)))
    shown = quiz.locator(".stuck-ranks .stuck-ranks").filter(has=asked)
    keys.press(shown.get_by_role("button", name="Answer"))
    expect(shown.get_by_role("status")).to_contain_text("right")


def plain(text: str) -> str:
    """A text as a screen reader has it, without the marks of code."""
    return text.replace("`", "")
