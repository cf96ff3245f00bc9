"""Asks for a prediction while the verdict is held back, and scores it when it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ipywidgets import HTML, Checkbox, RadioButtons, VBox, Widget

from helpers.panel import learn_view, view
from helpers.panel.controls import button, row
from helpers.prediction import Asked

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
        self._fields: list[_Field] = []
        self._asked, self._result = VBox(), HTML()
        super().__init__([self.at_once, self._asked, self._result])

    @property
    def wanted(self) -> bool:
        """True unless the learner does without the questions."""
        return not self.at_once.value

    def ask(self, questions: Sequence[Asked]) -> None:
        """Show the questions on a run that is over."""
        self._fields = [_Field(question) for question in questions]
        self._result.value = ""
        buttons = row(
            [
                button("Answer", "check", "Give these answers and see the verdict", self._answer),
                button("Show the verdict", "eye", "See the verdict without an answer", self._skip),
            ]
        )
        self._fill(
            [
                HTML(learn_view.note(INTRODUCTION)),
                *self._fields,
                HTML(view.hints(self._hints)),
                buttons,
            ]
        )

    def clear(self) -> None:
        """Ask nothing, and show nothing of what was asked before."""
        self._fields = []
        self._fill([])
        self._result.value = ""

    def _answer(self) -> None:
        if not all(field.given for field in self._fields):
            self._result.value = learn_view.note("Answer every question first, or show the verdict.")
            return
        given = [(field.asked, field.given) for field in self._fields]
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
        self._fields = []
        self.at_once.focus()
        self._fill([])

    def _fill(self, children: Sequence[Widget]) -> None:
        old, self._asked.children = self._asked.children, tuple(children)
        (self._asked.add_class if children else self._asked.remove_class)("sr-asked")
        for widget in old:
            widget.close()


class _Field(VBox):
    """One question: choices of which one is taken, or several."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        if asked.several:
            self._boxes = [Checkbox(description=choice, indent=False) for choice in asked.choices]
            choices: list[Widget] = list(self._boxes)
        else:
            self._one = RadioButtons(options=asked.choices, value=None, layout={"width": "auto"})
            choices = [self._one]
        super().__init__([HTML(view.paragraph(asked.text)), *choices])

    @property
    def given(self) -> tuple[str, ...]:
        """The choices that are taken."""
        if self.asked.several:
            return tuple(box.description for box in self._boxes if box.value)
        return () if self._one.value is None else (self._one.value,)
