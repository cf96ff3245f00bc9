"""Asks for a prediction while the verdict is held back, and scores it when it is given."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from ipywidgets import HTML, Checkbox, VBox, Widget
from traitlets import Bool

from ...labs.prediction import Asked
from ..show import view
from ..widgets.controls import button, row
from ..widgets.native import Answer, Choices, Spoken
from . import learn_view

INTRODUCTION = (
    "The run is over, and there is a verdict. **What is yours?** The table, the lanes and "
    "the logs show what was seen."
)


class PredictForm(VBox):
    """The questions on one run, and the switch that turns them off.

    Args:
        hints: of the lab, which unfold one by one.
        lock: held by whoever calls a method; clicks take it themselves.

    Attributes:
        holding: True while the verdict of a run is held back; observe it.
        right: whether every answer was right; None where none was given.
    """

    holding: Any = Bool(False)

    def __init__(self, hints: Sequence[str], lock: threading.RLock) -> None:
        self._hints, self._lock = tuple(hints), lock
        self.right: bool | None = None
        self._at_once = Checkbox(description="Show the verdict at once, without asking me", indent=False)
        self._at_once.layout.width = "auto"
        self._at_once.observe(lambda _: self._skip() if self._at_once.value else None, "value")
        self._questions: tuple[Asked, ...] = ()
        self._fields: tuple[Choices, ...] = ()
        self._said, self._asked, self._result = Spoken(), VBox(), Spoken()
        super().__init__([self._at_once, self._said, self._asked, self._result])

    def begin(self, *, asks: bool) -> None:
        """Drop what was asked before, and hold the verdict back if `asks` and the switch is off."""
        self._fill([])
        self._result.value = ""
        self.right = None
        self.holding = asks and not self._at_once.value

    def ask(self, questions: Sequence[Asked], given: Mapping[str, str]) -> None:
        """Show the questions on a run that is over; without any the verdict is shown.

        Args:
            questions: in the order of the form.
            given: answers that were given before the run, by the text of their question.
        """
        if not questions:
            self.holding = False
            return
        self._questions = tuple(questions)
        self._fields = tuple(
            Choices(asked.text, asked.choices, several=asked.several) for asked in questions
        )
        for asked, field in zip(self._questions, self._fields, strict=True):
            field.value = given.get(asked.text)
        self._result.value = ""
        buttons = row(
            [
                Answer(self._fields, self._answer, "Give these answers and see the verdict"),
                button("Show the verdict", "eye", "See the verdict without an answer", self._skip),
            ]
        )
        self._fill([*self._fields, HTML(view.hints(self._hints)), buttons])
        self._said.value = learn_view.note(INTRODUCTION)

    def _answer(self) -> None:
        with self._lock:
            if not all(field.taken for field in self._fields):
                self._result.value = learn_view.note("Answer every question first, or show the verdict.")
                return
            given = [
                (asked, field.taken) for asked, field in zip(self._questions, self._fields, strict=True)
            ]
            self._result.value = learn_view.scored(given)
            self._take_away()
            self.right = all(asked.is_right(what) for asked, what in given)
            self.holding = False

    def _skip(self) -> None:
        with self._lock:
            if self._fields:
                self._result.value = learn_view.note("The verdict is shown below.")
                self._take_away()
            self.holding = False

    def _take_away(self) -> None:
        """Take the questions away; the keyboard goes on from the switch above them."""
        self._at_once.focus()
        self._fill([])

    def _fill(self, children: Sequence[Widget]) -> None:
        if not children:
            self._fields, self._said.value = (), ""
        old, self._asked.children = self._asked.children, tuple(children)
        (self._asked.add_class if children else self._asked.remove_class)("sr-asked")
        for widget in old:
            widget.close()
