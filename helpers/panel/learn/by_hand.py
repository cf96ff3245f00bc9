"""The form for what a learner has found out in a terminal."""

from __future__ import annotations

import os
import shlex
import sys
import textwrap
from collections.abc import Callable

from ipywidgets import HTML

from ...labs.by_hand import FIELDS
from ...labs.declaration import BY_HAND
from ...labs.lab import Lab
from ..widgets.controls import Framed, button, row
from ..widgets.native import Answer, Spoken, Typed
from . import learn_view
from .gate import OPENS, Gate

LABELS = {
    "rank": "Rank (a number, or `none` if none differs)",
    "call": "Call (the name of a function)",
    "line": "Line (`file.py:number`)",
}


class ByHandForm(Framed):
    """A run to start in a terminal, and three fields for what is found there.

    Args:
        lab: whose program runs.
        gate: notes that the answer is right, or that it was revealed.
        on_right: called when every field is right.
    """

    def __init__(self, lab: Lab, gate: Gate, on_right: Callable[[], None]) -> None:
        self._declared, self._gate, self._on_right = lab.file.by_hand, gate, on_right
        self._commands = lab.in_terminal(self._declared.program, self._declared.knobs)
        place, beside = shlex.quote(str(lab.folder)), shlex.quote(os.path.dirname(sys.executable))
        typed = (f"cd {place}", f'export PATH={beside}:"$PATH"', *self._commands)
        self._fields = {name: Typed(text, self._give, "text") for name, text in LABELS.items()}
        self._feedback = Spoken()
        tooltip = "Show the rank, the call and the line; it is counted"
        super().__init__(
            [
                HTML(learn_view.dump("\n".join(typed))),
                HTML(learn_view.strong(self._declared.question)),
                *self._fields.values(),
                Answer([*self._fields.values()], self._give, "See which of the three are right"),
                row([button("Reveal", "eye", tooltip, self._reveal)]),
                self._feedback,
            ]
        )
        gate.observe(lambda _: self._restore(), OPENS)

    def answer(self, rank: int | str, call: str, line: int | str) -> str:
        """Give an answer; returns what there is to say about each field."""
        for field, typed in zip(self._fields.values(), (rank, call, line), strict=True):
            field.value = str(typed)
        entries = {name: field.value or "" for name, field in self._fields.items()}
        feedback = self._declared.feedback(entries)
        if self._declared.is_right(entries):
            self._gate.passed(BY_HAND)
            self._on_right()
        self._feedback.value = learn_view.answer(feedback)
        return feedback

    def clear(self) -> None:
        """Forget what was typed in."""
        for field in self._fields.values():
            field.value = None
        self._feedback.value = ""

    def _give(self) -> None:
        self.answer(*(self._fields[name].value or "" for name in FIELDS))

    def _reveal(self) -> None:
        self._gate.reveal_fix(BY_HAND)
        self._show_answer()

    def _restore(self) -> None:
        """Show the answer where it was found or revealed when the lab was last open."""
        if not self._feedback.value and BY_HAND in (*self._gate.steps, *self._gate.revealed):
            self._show_answer()

    def _show_answer(self) -> None:
        declared = self._declared
        self._feedback.value = learn_view.note(f"**{declared.answer}** {declared.explanation}")

    def __repr__(self) -> str:
        fields = "   ".join(f"{name}: ____" for name in FIELDS)
        commands = textwrap.indent("\n".join(self._commands), "    ")
        return f"{commands}\n{self._declared.question}\n  {fields}"
