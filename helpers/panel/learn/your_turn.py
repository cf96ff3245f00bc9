"""The learner's own copy of the broken program: made, opened, checked, and replaced without a loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ipywidgets import HTML, Button, VBox, Widget

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.results import Judgement
from ..widgets.controls import button, row
from ..widgets.file_link import FileLink
from ..widgets.native import Opener, Spoken
from . import learn_view


class YourTurn(VBox):
    """Where a learner makes, edits and checks a copy of the broken program.

    Args:
        lab: whose program it is.
        check: the button that runs the copy.
    """

    def __init__(self, lab: Lab, check: Button) -> None:
        self._lab = lab
        self._running = ""
        self._copy, self._original = lab.copy(), lab.original().name
        self._said, self._judged = Spoken(), HTML()
        self._link, self._opener = FileLink(), Opener()
        self._buttons = row(
            [
                button("Make my copy", "copy", f"Copy {self._original} for you to edit", self._make),
                check,
                button("Start over", "undo", f"Begin again with a copy of {self._original}", self._ask),
            ]
        )
        self._sure = row(
            [
                button("Yes, start over", "undo", "Keep a backup and copy again", self._start_over),
                button("No, keep mine", "times", "Leave your copy as it is", self._keep),
            ]
        )
        self._task = HTML(learn_view.strong(f"**Your turn.** {lab.file.turns[MINE].task}"))
        super().__init__()
        self.add_class("sr-turn")
        self._show()

    def begin(self, turn: str) -> None:
        """A run of the copy for a turn starts: what was said of an earlier one goes away."""
        self._judged.value = ""
        self._running = self._lab.copy(turn).name
        self._say(f"Running `{self._running}`. It is judged when all its processes have ended.")
        self._show()

    def judge(self, judgement: Judgement | None) -> None:
        """Show the judgement of a run of the copy; None says that it was stopped."""
        self._say(
            f"`{self._running}`: **{judgement.verdict}**"
            if judgement
            else "The run was stopped, so nothing is judged."
        )
        self._judged.value = learn_view.judged(judgement) if judgement else ""
        self._show()

    def clear(self) -> None:
        """Show nothing of an earlier run."""
        self._say("")
        self._judged.value = ""
        self._show()

    def _make(self) -> None:
        there = self._copy.exists()
        copy = self._try(self._lab.my_copy)
        if copy is not None:
            fresh = f"is a copy of `{self._original}`. Edit it, save it, come back and check it."
            said = "was there already, as you left it. Go on with it." if there else fresh
            self._say(f"`{copy.name}` {said}")
        self._show()
        if copy is not None:
            self._opener.follow()

    def _ask(self) -> None:
        if not self._copy.exists():
            self._make()
            return
        self._say(
            f"Start over? `{self._copy.name}` becomes a fresh copy of `{self._original}`; "
            "what you have written is kept beside it."
        )
        self._show(self._sure)

    def _start_over(self) -> None:
        backup = self._try(self._lab.start_over)
        if backup is not None:
            self._say(f"`{self._copy.name}` is a fresh copy; what you had is `{backup.name}`.")
        self._judged.value = ""
        self._close_question()

    def _keep(self) -> None:
        self._say(f"`{self._copy.name}` stays as it is.")
        self._close_question()

    def _close_question(self) -> None:
        """Take its buttons away; the keyboard goes on from the one that asked it."""
        self._buttons.children[-1].focus()
        self._show()

    def _try(self, action: Callable[[], Path]) -> Path | None:
        try:
            return action()
        except OSError as error:
            self._say(f"`{self._copy.name}` cannot be made: {error.strerror}.")
            return None

    def _say(self, text: str) -> None:
        self._said.value = learn_view.note(text)

    def _show(self, *asked: Widget) -> None:
        link = [self._link] if self._copy.exists() else []
        if link:
            self._link.show("Open", self._copy)
        self.children = [
            self._task,
            self._buttons,
            self._said,
            *link,
            *asked,
            self._judged,
            self._opener,
        ]
