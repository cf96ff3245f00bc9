"""What a learner is told on the way through a lab, as HTML. Pure; every outside text is escaped."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

from ...labs.prediction import Asked
from ...labs.results import Judgement
from ...model.wording import one_line
from ...report.markdown import inline, paragraph

SIGNS = {True: ("✓", "right", "good"), False: ("✗", "not right", "bad")}
PASSED = {True: ("✓", "passed", "good"), False: ("✗", "not yet", "bad")}


def mark(sign: str, word: str, tone: str) -> str:
    """A sign, hidden from screen readers, and a word that is enough on its own."""
    return f'<span class="sr-mark sr-{tone}"><span aria-hidden="true">{sign}</span> {word}</span>'


def strong(text: str) -> str:
    """A paragraph with `code` and **strong** words."""
    return paragraph(text, strong=True)


def note(text: str) -> str:
    """The same; nothing for no text."""
    return strong(text) if text else ""


def answer(text: str) -> str:
    """What is made of an answer to the quiz, with a mark where it begins with right or no."""
    for word, look in (("Right", True), ("No", False)):
        if text.startswith(f"{word}."):
            rest = text.removeprefix(f"{word}.").strip()
            return f"<p>{mark(*SIGNS[look])} {inline(rest)}</p>"
    return note(text)


def scored(given: Sequence[tuple[Asked, Collection[str]]]) -> str:
    """What came of a prediction: every question with its mark, what is right, and why."""
    right = sum(asked.is_right(what) for asked, what in given)
    rows = "".join(_scored(asked, what) for asked, what in given)
    said = f"Your prediction: {right} of {len(given)} right."
    return f'<div class="sr-asked"><p><strong>{said}</strong></p><ul class="sr-list">{rows}</ul></div>'


def _scored(asked: Asked, given: Collection[str]) -> str:
    yours = ", ".join(choice for choice in asked.choices if choice in given)
    said = paragraph(f"{asked.said(given)} {_sentence(asked.why)}")
    return (
        f"<li>{mark(*SIGNS[asked.is_right(given)])} {inline(asked.text)}"
        f'<div class="sr-why">You said: {inline(yours)}{said}</div></li>'
    )


def _sentence(text: str) -> str:
    text = one_line(text)
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def steps(named: Sequence[tuple[str, bool]]) -> str:
    """The steps of a lab and which of them are done."""
    items = "".join(
        f"<li>{mark('✓' if done else '○', escape(name), 'good' if done else 'plain')}"
        f'<span class="sr-hidden">: {"done" if done else "still open"}</span></li>'
        for name, done in named
    )
    return f'<ol class="sr-steps" aria-label="Your way through this lab">{items}</ol>'


def judged(judgement: Judgement) -> str:
    """Every check of a learner's program with a sign, a word and what was seen instead."""
    rows = "".join(
        f'<tr><td>{mark(*PASSED[check.passed])}</td><th scope="row">{escape(check.what)}</th>'
        f'<td class="sr-wide">{escape(check.why)}</td></tr>'
        for check in judgement.checks
    )
    heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "Check", "Seen instead"))
    return f'<table class="sr-table"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'
