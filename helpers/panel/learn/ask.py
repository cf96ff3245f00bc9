"""One question of a page, judged when it is answered."""

from __future__ import annotations

from ...labs import progress
from ...labs.lab import LabError
from ...labs.pages import read_page
from ...labs.progress import Progress, ProgressError
from ...labs.questions import Choice
from ..waiting import in_jupyter
from .quiz import Question


def ask(page: str, number: int) -> Question:
    """A question of a page, judged when it is answered; a wrong answer may be tried again.

    Args:
        page: the folder of the page: `method`.
        number: from 1, in the order of its questions.toml.

    Raises:
        LabError: there is no such question.
    """
    questions = read_page(page).questions
    if not 0 < number <= len(questions):
        raise LabError(f"{page} has {len(questions)} questions, and no number {number}")
    question = questions[number - 1]

    def keep() -> None:
        if in_jupyter():
            _keep(page, number, len(questions), widget.response)

    choices = question.answers if isinstance(question, Choice) else ()
    widget = Question(question.question, choices, question.feedback, keep, question.dump)
    return widget


def _keep(page: str, number: int, count: int, response: str | None) -> None:
    record = progress.load(page)
    answers = [*(record.answers if record else ()), *[None] * count][:count]
    answers[number - 1] = response
    try:
        progress.save(Progress(page, answers=tuple(answers)))
    except ProgressError:
        return  # the path does not count it; the answer on the page stands
