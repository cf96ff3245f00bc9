"""The learner's own copy of the broken program: made, opened, checked, and replaced without a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from ipywidgets import HTML, Button, VBox, Widget

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.results import Judgement
from ..widgets.controls import button, row, show
from ..widgets.file_link import FileLink
from ..widgets.native import Opener, Spoken
from . import learn_view


class OwnCopy(msgspec.Struct, frozen=True):
    """A broken program and the learner's copy of it.

    Attributes:
        task: what the learner is asked to do.
        original: what the copy is made of, by its name.
        place: the file or folder where the copy is, or is to be.
        make: makes it if it is missing, and returns its place.
        start_over: makes it again, and returns where the old one is kept.
        files: those of a copy in a folder, by their names in it; empty for a file.
    """

    task: str
    original: str
    place: Path
    make: Callable[[], Path]
    start_over: Callable[[], Path]
    files: Sequence[str] = ()

    @classmethod
    def of_lab(cls, lab: Lab) -> OwnCopy:
        """The copy for a lab's first turn."""
        task = lab.file.turns[MINE].task
        return cls(task, lab.original().name, lab.copy(), lab.my_copy, lab.start_over)

    @property
    def paths(self) -> list[Path]:
        """The files to edit."""
        return [self.place / name for name in self.files] or [self.place]


class YourTurn(VBox):
    """Where a learner makes, edits and checks a copy of the broken program.

    Args:
        own_copy: the copy.
        check: the button that runs it.
        makes: what the button says that makes it.
    """

    def __init__(self, own_copy: OwnCopy, check: Button, makes: str = "Make my copy") -> None:
        self._own_copy, self._running = own_copy, ""
        self._copy, self._original = own_copy.place, own_copy.original
        self._status, self._judged = Spoken(), HTML()
        self._links, self._opener = [FileLink() for _ in own_copy.paths], Opener()
        self._buttons = row(
            [
                button(makes, "copy", f"Copy {self._original} for you to edit", self._make),
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
        self._task = HTML(learn_view.strong(f"**Your turn.** {own_copy.task}"))
        super().__init__()
        self.add_class("sr-turn")
        self._show()

    def begin(self, copy: Path) -> None:
        """A run of a copy starts: what was said of an earlier one goes away."""
        self._judged.value = ""
        self._running = copy.name
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
        exists = self._copy.exists()
        copy = self._try(self._own_copy.make)
        if copy is not None:
            fresh = f"is a copy of `{self._original}`. Edit it, save it, come back and check it."
            status = "was there already, as you left it. Go on with it." if exists else fresh
            self._say(f"`{copy.name}` {status}")
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
        backup = self._try(self._own_copy.start_over)
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
        self._status.value = learn_view.note(text)

    def _show(self, *confirmation: Widget) -> None:
        exists = self._copy.exists()
        show(self._buttons.children[-1], exists)
        links = self._links if exists else []
        for link, path in zip(links, self._own_copy.paths, strict=False):
            link.show("Open", path)
        self.children = [
            self._task,
            self._buttons,
            self._status,
            *links,
            *confirmation,
            self._judged,
            self._opener,
        ]
