"""Asks for a prediction while the verdict is held back, and scores it when it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ipywidgets import HTML, Checkbox, VBox, Widget

from ...labs.prediction import Asked
from ..show import view
from ..widgets.controls import button, row
from ..widgets.native import Choices, Spoken
from . import learn_view

INTRODUCTION = (
    "The run is over, and the instrument has its verdict. **What is yours?** The table, the lanes and "
    "the logs show what it saw."
)


class PredictForm(VBox):
    """The questions on one run, and the switch that does without them.

    Args:
        hints: of the lab, which unfold one by one.
        on_reveal: called when the verdict may be shown: with whether all answers were right, or with
            None where none was given.

    Attributes:
        at_once: the switch; while it is on nothing is asked.
    """

    def __init__(self, hints: Sequence[str], on_reveal: Callable[[bool | None], None]) -> None:
        self.at_once = Checkbox(description="Show the verdict at once, without asking me", indent=False)
        self.at_once.layout.width = "auto"
        self.at_once.observe(lambda _: self._skip() if self.at_once.value else None, "value")
        self._hints, self._on_reveal = tuple(hints), on_reveal
        self._questions: tuple[Asked, ...] = ()
        self._fields: tuple[Choices, ...] = ()
        self._said, self._asked, self._result = Spoken(), VBox(), Spoken()
        super().__init__([self.at_once, self._said, self._asked, self._result])

    @property
    def wanted(self) -> bool:
        """True unless the learner does without the questions."""
        return not self.at_once.value

    def ask(self, questions: Sequence[Asked]) -> None:
        """Show the questions on a run that is over."""
        self._questions = tuple(questions)
        self._fields = tuple(
            Choices(asked.text, asked.choices, several=asked.several) for asked in questions
        )
        self._result.value = ""
        buttons = row(
            [
                button("Answer", "check", "Give these answers and see the verdict", self._answer),
                button("Show the verdict", "eye", "See the verdict without an answer", self._skip),
            ]
        )
        self._fill([*self._fields, HTML(view.hints(self._hints)), buttons])
        self._said.value = learn_view.note(INTRODUCTION)

    def clear(self) -> None:
        """Ask nothing, and show nothing of what was asked before."""
        self._fill([])
        self._result.value = ""

    def _answer(self) -> None:
        if not all(field.taken for field in self._fields):
            self._result.value = learn_view.note("Answer every question first, or show the verdict.")
            return
        given = [
            (asked, field.taken) for asked, field in zip(self._questions, self._fields, strict=True)
        ]
        self._result.value = learn_view.scored(given)
        self._take_away()
        self._on_reveal(all(asked.is_right(what) for asked, what in given))

    def _skip(self) -> None:
        if self._fields:
            self._result.value = learn_view.note("The verdict is shown below.")
            self._take_away()
        self._on_reveal(None)

    def _take_away(self) -> None:
        """Take the questions away; the keyboard goes on from the switch above them."""
        self.at_once.focus()
        self._fill([])

    def _fill(self, children: Sequence[Widget]) -> None:
        if not children:
            self._fields, self._said.value = (), ""
        old, self._asked.children = self._asked.children, tuple(children)
        (self._asked.add_class if children else self._asked.remove_class)("sr-asked")
        for widget in old:
            widget.close()
