"""What the reports of a lesson may show so far: one gate for the panel, the cells and the practice."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

import msgspec
from traitlets import Bool, HasTraits, Tuple

from ...labs.declaration import ANSWERED, AT_ONCE, Shows
from ...labs.stage import Stage


class Gate(HasTraits):
    """The steps that a learner has done, and what was revealed without them.

    A key stands for one run: its program and its settings.

    Args:
        turns: names of the steps that belong to no single run.
        lock: held while the gate and whatever observes it change.
        free: True where nobody learns: everything is shown, and nothing is counted.

    Attributes:
        steps: the steps that are done: `key: step` of a run, `program: run`, or the name of a turn;
            observe it.
        revealed: each `key: stage`, or turn, that the learner has asked to see; observe it.
        at_once: True while the learner wants to see everything of each run; observe it.
    """

    steps: Any = Tuple()
    revealed: Any = Tuple()
    at_once: Any = Bool(False)

    def __init__(
        self, turns: Collection[str], lock: threading.RLock | None = None, *, free: bool = False
    ) -> None:
        super().__init__()
        self._turns, self._lock, self.free = frozenset(turns), lock or threading.RLock(), free

    def stage(self, key: str, shows: Shows) -> Stage:
        """How much of a run may be shown."""
        reached = Stage.OUTCOME
        for stage, step in shows.steps.items():
            open_now = self._open or step == AT_ONCE or self._step(key, step) in self.steps
            if not open_now and self._reveal(key, stage, step) not in self.revealed:
                break
            reached = stage
        return reached

    def shows_fix(self, turn: str) -> bool:
        """True when the fix may be shown that a turn asks for."""
        return self._open or turn in self.steps or turn in self.revealed

    def has_run(self, program: str) -> bool:
        """True once a run of a program is over, so that its hints may be shown."""
        return self._open or f"{program}: {AT_ONCE}" in self.steps

    def ran(self, program: str) -> None:
        """A run of a program is over."""
        self._done(f"{program}: {AT_ONCE}")

    def answered(self, key: str) -> None:
        """The questions on a run are answered."""
        self._done(self._step(key, ANSWERED))

    def passed(self, turn: str) -> None:
        """The check of a turn has passed."""
        self._done(turn)

    def reveal(self, key: str, stage: Stage, shows: Shows) -> None:
        """The learner asks to see a stage of a run; it is counted once."""
        self._revealed(self._reveal(key, stage, shows.steps[stage]))

    def reveal_fix(self, turn: str) -> None:
        """The learner asks to see the fix that a turn asks for; counted once, unless it has passed."""
        if not self.shows_fix(turn):
            self._revealed(turn)

    def restore(self, steps: tuple[str, ...], revealed: tuple[str, ...]) -> None:
        """Be as open as these say."""
        with self._lock:
            self.steps, self.revealed = steps, revealed

    @property
    def _open(self) -> bool:
        return self.free or bool(self.at_once)

    def _step(self, key: str, step: str) -> str:
        return step if step in self._turns else f"{key}: {step}"

    def _reveal(self, key: str, stage: Stage, step: str) -> str:
        return step if step in self._turns else f"{key}: {stage.name.lower()}"

    def _done(self, step: str) -> None:
        with self._lock:
            if step not in self.steps:
                self.steps = (*self.steps, step)

    def _revealed(self, name: str) -> None:
        with self._lock:
            if not self._open and name not in self.revealed:
                self.revealed = (*self.revealed, name)


OPENS = ("steps", "revealed", "at_once")
"""What to observe of a gate."""


class Disclosure(msgspec.Struct, frozen=True):
    """A run of which something may be held back.

    Attributes:
        key: of the run, for the gate.
        shows: at which step its report may show what.
    """

    gate: Gate
    key: str
    shows: Shows

    @property
    def stage(self) -> Stage:
        """How much may be shown."""
        return self.gate.stage(self.key, self.shows)

    def answered(self) -> None:
        """The questions on it are answered."""
        self.gate.answered(self.key)

    def reveal(self) -> None:
        """Show the next stage without the step that leads to it."""
        if self.stage < Stage.FIX:
            self.gate.reveal(self.key, Stage(self.stage + 1), self.shows)
