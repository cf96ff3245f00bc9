"""Questions with answers to choose from: live as widgets, stable as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...labs import declaration as lab_model
from ..widgets.controls import Framed, button
from ..widgets.native import Choices, Spoken
from . import learn_view


class Question(Framed):
    """One question, its answers and, once one is given, a sentence about it.

    Args:
        text: the question; `code` in backticks.
        answers: what can be chosen.
        judge: returns the sentence to show for an answer.
        on_answer: called when an answer was given.
    """

    def __init__(
        self,
        text: str,
        answers: Sequence[str],
        judge: Callable[[str], str],
        on_answer: Callable[[], None] = lambda: None,
    ) -> None:
        self._text, self._answers, self._judge = text, tuple(answers), judge
        self._on_answer = on_answer
        self.given: str | None = None
        self._choice = Choices(text, self._answers)
        self._said = Spoken()
        ask = button("Answer", "check", "Give the chosen answer", self._give_chosen)
        super().__init__([self._choice, ask, self._said])

    @property
    def said(self) -> str:
        """The sentence about the answer; empty before there is one."""
        return "" if self.given is None else self._judge(self.given)

    def answer(self, text: str) -> str:
        """Give an answer; returns the sentence about it."""
        self.restore(text)
        self._on_answer()
        return self.said

    def restore(self, text: str | None) -> None:
        """Show an answer that was given before; None clears the question."""
        self.given = text if text in self._answers else None
        self._choice.value = self.given
        self.score()

    def score(self) -> None:
        """Judge the given answer again, when what is known has changed."""
        self._said.value = learn_view.answer(self.said)

    def _give_chosen(self) -> None:
        if self._choice.value is None:
            self._said.value = learn_view.answer("Choose an answer first.")
        else:
            self.answer(self._choice.value)

    def __repr__(self) -> str:
        return "\n".join([self._text, *(f"  ( ) {answer}" for answer in self._answers)])


class Quiz(Framed):
    """The questions at the end of a lab; a wrong answer may be tried again.

    Args:
        questions: as the lab declares them.
        on_answer: called when an answer was given.

    Attributes:
        questions: one widget each.
    """

    def __init__(
        self, questions: Sequence[lab_model.Question], on_answer: Callable[[], None] = lambda: None
    ) -> None:
        self._right = [question.right for question in questions]
        self._on_answer = on_answer
        self.questions = tuple(
            Question(question.question, question.answers, question.said, self._answered)
            for question in questions
        )
        self._so_far = Spoken()
        super().__init__([*self.questions, self._so_far])
        self._count()

    @property
    def answers(self) -> tuple[str | None, ...]:
        """The answer to each question; None for an open one."""
        return tuple(question.given for question in self.questions)

    @property
    def passed(self) -> bool:
        """True when every answer is right."""
        return list(self.answers) == self._right

    def restore(self, answers: Sequence[str | None]) -> None:
        """Show answers that were given before; questions beyond them are cleared."""
        for number, question in enumerate(self.questions):
            question.restore(answers[number] if number < len(answers) else None)
        self._count()

    def _answered(self) -> None:
        self._count()
        self._on_answer()

    def _count(self) -> None:
        right = sum(given == truth for given, truth in zip(self.answers, self._right, strict=True))
        self._so_far.value = learn_view.note(f"**{right} of {len(self._right)} right.**")

    def __repr__(self) -> str:
        return "\n".join(
            f"{number}. {question!r}" for number, question in enumerate(self.questions, start=1)
        )
