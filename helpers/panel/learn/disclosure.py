"""What is held back of a run: said, and revealed step by step; in the panel and under a cell."""

from __future__ import annotations

from typing import Any

from ipywidgets import HTML, VBox

from ...labs.stage import PARTS, Stage, held_text, shown
from ...report.stable import stable
from ..run.result import RunResult
from ..show import view
from ..widgets.controls import Framed, button, row
from ..widgets.native import Spoken
from . import learn_view
from .gate import OPENS, Disclosure

HOW = "Answer the questions in the panel, or reveal them one by one; each reveal is counted."
NOT_YET = "held back"
"""In place of what may not be shown yet."""

FIX_ONLY = "*Your turn* asks for it. Pass its check, or reveal it; a reveal is counted."


class RevealBar(VBox):
    """Says what is held back of a run, with a button that reveals the next part; empty without any."""

    def __init__(self) -> None:
        self._disclosure: Disclosure | None = None
        self._text = Spoken()
        self._button = button("Reveal", "eye", "Show it without an answer; it is counted", self._reveal)
        self._button.layout.width = "auto"
        super().__init__([self._text, row([self._button])])
        self.show(None)

    def show(self, disclosure: Disclosure | None) -> None:
        """Offer what is held back of a run; None offers nothing."""
        self._disclosure = disclosure
        stage = disclosure.stage if disclosure else Stage.FIX
        self.layout.display = "none" if stage is Stage.FIX else None
        if stage < Stage.FIX:
            self._button.description = f"Reveal {PARTS[Stage(stage + 1)]}"
            how = FIX_ONLY if stage == Stage.STATEMENT else HOW
            self._text.value = learn_view.note(f"{held_text(stage)} {how}")
        else:
            self._text.value = ""

    def _reveal(self) -> None:
        if self._disclosure is not None:
            self._disclosure.reveal()


class LessonResult(RunResult, frozen=True):
    """The result of a lab's run in a cell: shows what the lesson lets it show, and follows the gate."""

    disclosure: Disclosure | None = None

    @property
    def stage(self) -> Stage:
        """How much of it may be shown."""
        return self.disclosure.stage if self.disclosure and self.report.failed else Stage.FIX

    @property
    def first(self) -> str:
        """What went wrong first, in words."""
        return self.report.verdict.detail if self.stage >= Stage.CULPRITS else NOT_YET

    @property
    def masked(self) -> tuple[str, ...]:
        """The errors that follow from it and hide it."""
        return self.report.verdict.masked if self.stage >= Stage.CULPRITS else (NOT_YET,)

    def __repr__(self) -> str:
        if self.stage is Stage.FIX:
            return super().__repr__()
        return f"{shown(stable(self.report), self.stage)}\n{held_text(self.stage)}"

    def _repr_html_(self) -> str:
        return view.result(self.report, self.stage)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        plain = {"text/plain": repr(self), "text/html": self._repr_html_()}
        if self.stage is Stage.FIX:
            return plain
        assert self.disclosure is not None
        return {**_Following(self, self.disclosure)._repr_mimebundle_(**kwargs), **plain}


class _Following(Framed):
    """A result that is drawn again whenever the gate opens further."""

    def __init__(self, result: LessonResult, disclosure: Disclosure) -> None:
        self._result, self._disclosure = result, disclosure
        self._shown, self._bar = HTML(), RevealBar()
        super().__init__([self._shown, self._bar])
        disclosure.gate.observe(lambda _: self._show(), OPENS)
        self._show()

    def _show(self) -> None:
        self._shown.value = view.result(self._result.report, self._result.stage)
        self._bar.show(self._disclosure)

    def __repr__(self) -> str:
        return repr(self._result)
