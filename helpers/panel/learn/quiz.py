"""Questions with answers to choose from or to type in: live as widgets, stable as text."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence

from ipywidgets import HTML

from ...labs import questions as declared
from ...labs.lab import all_labs, find_lab
from ...labs.recall import recalled
from ..widgets.controls import Framed
from ..widgets.native import Answer, Choices, Spoken, Typed
from . import learn_view


class Question(Framed):
    """One question, its answers and, once one is given, a sentence about it.

    Args:
        text: the question; `code` in backticks.
        answers: what can be chosen; none where a number has to be typed in.
        judge: returns the sentence to show for an answer.
        on_answer: called when an answer was given.
        dump: raw output that the question is about.
    """

    def __init__(
        self,
        text: str,
        answers: Sequence[str],
        judge: Callable[[str], str],
        on_answer: Callable[[], None] = lambda: None,
        dump: str = "",
    ) -> None:
        self._text, self._answers, self._judge = text, tuple(answers), judge
        self._on_answer, self._dump = on_answer, dump.strip("\n")
        self.response: str | None = None
        self._choice: Choices | Typed = (
            Choices(text, self._answers, emphasis=True) if answers else Typed(text, self._give_chosen)
        )
        self._feedback = Spoken()
        ask = Answer([self._choice], self._give_chosen, "Give your answer")
        shown = [HTML(learn_view.dump(self._dump))] if self._dump else []
        super().__init__([*shown, self._choice, ask, self._feedback])

    @property
    def feedback(self) -> str:
        """The sentence about the answer; empty before there is one."""
        return "" if self.response is None else self._judge(self.response)

    def answer(self, text: str) -> str:
        """Give an answer; returns the sentence about it."""
        self.restore(text)
        self._on_answer()
        return self.feedback

    def restore(self, text: str | None) -> None:
        """Show an answer that was given before; None clears the question."""
        self.response = text if text in self._answers or not self._answers else None
        self._choice.value = self.response
        self.score()

    def score(self) -> None:
        """Judge the given answer again, when what is known has changed."""
        self._feedback.value = learn_view.answer(self.feedback)

    def _give_chosen(self) -> None:
        if self._choice.value is None:
            self._feedback.value = learn_view.answer(
                "Choose an answer first." if self._answers else "Type a number first."
            )
        else:
            self.answer(self._choice.value)

    def __repr__(self) -> str:
        answers = [f"  ( ) {answer}" for answer in self._answers] or ["  a number: ____"]
        dump = [textwrap.indent(self._dump, "    ")] if self._dump else []
        return "\n".join([self._text, *dump, *answers])


class Quiz(Framed):
    """Some questions and how many are answered; a wrong answer may be tried again.

    Args:
        questions: as the labs declare them.
        on_answer: called when an answer was given.

    Attributes:
        questions: one widget each.
    """

    def __init__(
        self, questions: Sequence[declared.Question], on_answer: Callable[[], None] = lambda: None
    ) -> None:
        self._declared = tuple(questions)
        self._on_answer = on_answer
        self.questions = tuple(
            Question(
                question.question,
                question.answers if isinstance(question, declared.Choice) else (),
                question.feedback,
                self._answered,
                question.dump,
            )
            for question in questions
        )
        self._so_far = Spoken()
        super().__init__([*self.questions, self._so_far])
        self._count()

    @property
    def answers(self) -> tuple[str | None, ...]:
        """The answer to each question; None for an open one."""
        return tuple(question.response for question in self.questions)

    @property
    def passed(self) -> bool:
        """True when every answer is right."""
        return self._right == len(self._declared)

    def restore(self, answers: Sequence[str | None]) -> None:
        """Show answers that were given before; questions beyond them are cleared."""
        for number, question in enumerate(self.questions):
            question.restore(answers[number] if number < len(answers) else None)
        self._count()

    def _answered(self) -> None:
        self._count()
        self._on_answer()

    @property
    def _right(self) -> int:
        return sum(
            question.is_right(response)
            for question, response in zip(self._declared, self.answers, strict=True)
        )

    def _count(self) -> None:
        """Say how many are right; nothing as long as no question is answered."""
        unanswered = self.answers.count(None)
        rest = f" {unanswered} not answered." if unanswered else ""
        text = f"**{self._right} of {len(self._declared)} right.**{rest}"
        self._so_far.value = learn_view.note(text if unanswered < len(self._declared) else "")

    def __repr__(self) -> str:
        return "\n".join(
            f"{number}. {question!r}" for number, question in enumerate(self.questions, start=1)
        )


def recall(name: str) -> Quiz:
    """Questions of earlier labs on the path, to be asked when a lab begins; no answer is kept.

    Args:
        name: the lab that begins, as for `open_lab`.

    Raises:
        LabError: there is no such lab, or a `lab.toml` is wrong.
    """
    return Quiz(recalled(find_lab(name), all_labs()))
