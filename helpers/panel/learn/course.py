"""Where a learner stands in a lab: shown, kept on disk, and offered when the lab is opened again."""

from __future__ import annotations

from collections.abc import Callable

from ipywidgets import HTML, Button, VBox
from msgspec import structs

from ...labs import progress
from ...labs.progress import Progress, ProgressError
from ..widgets.controls import button, row
from ..widgets.native import Spoken
from . import learn_view
from .share import ShareBar

STEPS = {
    "predicted": "predict",
    "broken": "run broken",
    "by_hand": "by hand",
    "checked": "your turn",
    "fixed": "run fixed",
    "quiz": "quiz",
}
"""The steps of every lab, by the names they are saved under."""


class Course(VBox):
    """The steps of a lab, and which are done. Reads and writes nothing unless `persistent`.

    Args:
        lab: its name.
        persistent: whether it is kept on disk.
        following: gets the focus before a question and its buttons go away.
        on_restore: called with what was kept, when the learner wants to go on from there.

    Attributes:
        progress: where the learner stands.
    """

    def __init__(
        self,
        lab: str,
        persistent: bool,
        following: Button,
        on_restore: Callable[[Progress], None],
    ) -> None:
        self.progress = Progress(lab)
        self._lab, self._persistent = lab, persistent
        self._following, self._on_restore = following, on_restore
        self._before: Progress | None = None
        self._steps, self._status = HTML(), Spoken()
        self._share = ShareBar(lambda: self.progress)
        self._ask = row(
            [
                button("Go on", "forward", "Take up the lab where you left it", self._go_on),
                button("Start over", "undo", "Forget where you were", self._start_over),
            ]
        )
        super().__init__()
        self.add_class("sr-course")
        self._read()
        self._show()

    def done(self, step: str, *, score: int | None = None) -> None:
        """Note that a step is done; `score` is 1 for a right prediction, 0 for a wrong one."""
        steps = [name for name in STEPS if name in (*self.progress.done, step)]
        self._keep(done=tuple(steps), score=self.progress.score if score is None else score)

    def answered(self, answers: tuple[str | None, ...]) -> None:
        """Note the answers to the quiz."""
        self._keep(answers=answers)

    def gate(self, steps: tuple[str, ...], revealed: tuple[str, ...]) -> None:
        """Note what the gate of the lab's reports has let through."""
        self._keep(steps=steps, revealed=revealed)

    def reset(self) -> None:
        """Forget where the learner stands, on disk too."""
        self.progress, self._before = Progress(self._lab), None
        self._say("")
        if self._persistent:
            self._try(lambda: progress.clear(self._lab))
        self._show()

    def _keep(self, **changes: object) -> None:
        new = structs.replace(self.progress, **changes)
        if new == self.progress:
            return
        self.progress = new
        if self._persistent and self._before is None:
            self._try(lambda: progress.save(new))
        self._show()

    def _read(self) -> None:
        if not self._persistent:
            return
        try:
            before = progress.read(self._lab)
        except ProgressError as error:
            self._say(f"{error}{self._set_aside()}")
            return
        if before is not None and before != Progress(self._lab):
            self._before = before
            self._say(f"You were at **{_standing(before)}**. Go on from there, or start over?")

    def _set_aside(self) -> str:
        try:
            return f"; it is kept as {progress.set_aside(self._lab)}."
        except ProgressError:
            self._persistent = False
            return "; nothing is kept this time."

    def _go_on(self) -> None:
        before, self._before = self._before, None
        if before is None:
            return
        now = self.progress
        done = tuple(name for name in STEPS if name in (*before.done, *now.done))
        score = before.score if now.score is None else now.score
        self._say("You go on from there.")
        self._following.focus()
        self._keep(
            done=done,
            score=score,
            answers=now.answers or before.answers,
            steps=_joined(before.steps, now.steps),
            revealed=_joined(before.revealed, now.revealed),
        )
        self._on_restore(self.progress)
        self._show()

    def _start_over(self) -> None:
        self._following.focus()
        self.reset()
        self._say("You start over.")

    def _try(self, action: Callable[[], None]) -> None:
        try:
            action()
        except ProgressError as error:
            self._say(f"{error}.")

    def _say(self, text: str) -> None:
        self._status.value = learn_view.note(text)

    def _show(self) -> None:
        self._steps.value = learn_view.steps(
            [(name, step in self.progress.done) for step, name in STEPS.items()],
            len(self.progress.revealed),
        )
        question = [self._ask] if self._before is not None else []
        self.children = [self._steps, self._status, *question, self._share]


def _standing(before: Progress) -> str:
    """The first step that is open, and how many are done."""
    following = next((name for step, name in STEPS.items() if step not in before.done), "the end")
    done = sum(step in before.done for step in STEPS)
    return f"{following}, {done} of {len(STEPS)} steps done"


def _joined(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """Both in their order, each text once."""
    return tuple(dict.fromkeys((*first, *second)))
