"""What a learner is told on the way through a lab, as HTML."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from markupsafe import Markup

from ...labs.asked import Asked
from ...labs.results import Judgement
from ...model.wording import one_line, sentence
from ...report.markdown import paragraph
from ..show.templates import html


def strong(text: str) -> str:
    """A paragraph with `code` and **strong** words."""
    return paragraph(text, strong=True)


def note(text: str) -> str:
    """The same; nothing for no text."""
    return strong(text) if text else ""


def answer(text: str) -> str:
    """What there is to say about an answer, with a mark where it begins with right or no."""
    for word in ("Right", "No"):
        if text.startswith(f"{word}."):
            return html("answer", word == "Right", text.removeprefix(f"{word}."))
    return note(text)


def dump(text: str) -> str:
    """Raw output, line by line; the keyboard can scroll it."""
    return Markup('<pre class="sr-dump" tabindex="0">{}</pre>').format(text)


def scored(responses: Sequence[tuple[Asked, Collection[str]]]) -> str:
    """The score of a prediction: every question with its mark, what is right, and why."""
    rows = [
        (
            question,
            [choice for choice in question.choices if choice in answers],
            f"{question.feedback(answers)} {_sentence(question.why)}",
        )
        for question, answers in responses
    ]
    return html("scored", rows, sum(question.is_right(answers) for question, answers in responses))


def _sentence(text: str) -> str:
    text = sentence(one_line(text))
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."


def steps(entries: Sequence[tuple[str, bool]], reveals: int = 0) -> str:
    """The steps of a lab, whether each is done, and how much was revealed without an answer."""
    return html("steps", entries, reveals)


def program(command: str, texts: Mapping[str, str], *, unfolded: bool) -> str:
    """A command, and the files of its program with the numbers of their lines.

    Args:
        command: what starts it.
        texts: by name, the file that the command names first.
        unfolded: whether that one is; the others are folded.
    """
    files = [(name, _numbered(text)) for name, text in texts.items()]
    return html("program", command, files, unfolded)


def _numbered(text: str) -> Markup:
    lines = (Markup("{:>3}  {}").format(n, line) for n, line in enumerate(text.splitlines(), start=1))
    return Markup("\n").join(lines)


def judged(judgement: Judgement) -> str:
    """Every check of a learner's program with a sign, a word and what was seen instead."""
    return html("judged", judgement)
