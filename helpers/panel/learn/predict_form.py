"""Asks about a run while its verdict is held back, and scores the answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ipywidgets import HTML, Checkbox, VBox, Widget

from ...labs.asked import Asked
from ..show import view
from ..widgets.controls import row
from ..widgets.native import Answer, Choices, Spoken
from . import learn_view
from .gate import Gate

INTRODUCTION = (
    "The run is over, and there is a verdict. **What is yours?** The table, the lanes and "
    "the logs show what was seen."
)


class PredictForm(VBox):
    """The questions on one run, and the switch that turns them off.

    Args:
        hints: of the lab, which unfold one by one.
        gate: opened by the switch.
        lock: held by whoever calls a method; clicks take it themselves.
        on_answer: called once every question has an answer, with whether all were right.
    """

    def __init__(
        self,
        hints: Sequence[str],
        gate: Gate,
        lock: threading.RLock,
        on_answer: Callable[[bool], None],
    ) -> None:
        self._hints, self._gate, self._lock, self._on_answer = tuple(hints), gate, lock, on_answer
        self._at_once = Checkbox(description="Show everything at once, without asking me", indent=False)
        self._at_once.layout.width = "auto"
        self._at_once.observe(self._switch, "value")
        self._questions: tuple[Asked, ...] = ()
        self._fields: tuple[Choices, ...] = ()
        self._introduction, self._form, self._result = Spoken(), VBox(), Spoken()
        super().__init__([self._at_once, self._introduction, self._form, self._result])

    def clear(self) -> None:
        """Drop what was asked before, and what was said about the answers."""
        self._fill([])
        self._result.value = ""

    def ask(
        self, questions: Sequence[Asked], answers: Mapping[str, str], introduction: str = INTRODUCTION
    ) -> None:
        """Show questions on a run that is over; what was said about earlier answers stays.

        Args:
            questions: in the order of the form, at least one.
            answers: answers that were given before the run, by the text of their question.
            introduction: stands above them.
        """
        self._questions = tuple(questions)
        self._fields = tuple(
            Choices(question.text, question.choices, several=question.several) for question in questions
        )
        for question, field in zip(self._questions, self._fields, strict=True):
            field.value = answers.get(question.text)
        answer = Answer(self._fields, self._answer, "Give these answers and see whether they are right")
        self._fill([*self._fields, HTML(view.hints(self._hints)), row([answer])])
        self._introduction.value = learn_view.note(introduction)

    def leave(self) -> None:
        """Take the questions away without an answer; the keyboard goes on from the switch above them."""
        if self._fields:
            self._take_away()

    def _answer(self) -> None:
        with self._lock:
            if not all(field.selection for field in self._fields):
                self._result.value = learn_view.note(
                    "Answer every question first, or reveal the answers."
                )
                return
            fields = zip(self._questions, self._fields, strict=True)
            responses = [(question, field.selection) for question, field in fields]
            self._result.value = learn_view.scored(responses)
            self._take_away()
            self._on_answer(all(question.is_right(what) for question, what in responses))

    def _switch(self, change: Mapping[str, Any]) -> None:
        with self._lock:
            self._gate.at_once = change["new"]

    def _take_away(self) -> None:
        self._at_once.focus()
        self._fill([])

    def _fill(self, children: Sequence[Widget]) -> None:
        if not children:
            self._fields, self._introduction.value = (), ""
        old, self._form.children = self._form.children, tuple(children)
        (self._form.add_class if children else self._form.remove_class)("sr-asked")
        for widget in old:
            widget.close()
