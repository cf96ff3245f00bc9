"""What a lab asks of a learner, and what it makes of the answers and of the runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.prediction import questions
from ...labs.results import Judgement, judge
from ...model.facts import Frame, Report
from ...report.report import to_json
from .course import Course
from .predict_form import PredictForm
from .quiz import Question, Quiz
from .your_turn import YourTurn


@dataclass(frozen=True)
class LabRun:
    """What runs: a program of a lab with its knobs, and the folder where its ranks leave results."""

    lab: Lab
    program: str
    folder: Path
    knobs: Mapping[str, str]

    @property
    def fails(self) -> bool:
        """True for a program of the lab whose verdict is something to find out."""
        if self.program == MINE:
            return False
        return self.lab.expected(self.program, self.knobs).outcome in ("hang", "error")

    def judge(self, report: Report) -> Judgement:
        """What the run is worth, once it is over."""
        return judge(self.lab, self.program, report, self.folder, self.knobs)


class Lesson:
    """The learner's side of a panel. Knows no run but by its report.

    Args:
        lab: what it is about.
        keep: whether to keep on disk where the learner stands.
        lock: held by whoever calls `begin`, `end` and `clear`; clicks take it themselves.
        show: called with whether the verdict may be shown.
        check: starts the run of the learner's copy.
        source: the text of a line of the job's code.
        leave: gives the focus to the panel's first button.

    Attributes:
        course, form, turn: the parts that stand in the panel.
        predict, quiz: those with a cell of their own.
    """

    def __init__(
        self,
        lab: Lab,
        keep: bool,
        lock: threading.RLock,
        show: Callable[[bool], None],
        check: Callable[[], None],
        source: Callable[[Frame], str],
        leave: Callable[[], None],
    ) -> None:
        self._lab, self._lock, self._show, self._source = lab, lock, show, source
        self._run: LabRun | None = None
        self._seen: dict[str, Report] = {}
        self._held: Report | None = None
        self._holding = False
        self.form = PredictForm(lab.hints, self._reveal)
        self.turn = YourTurn(lab, check)
        self.predict = Question(
            lab.predict.question, [answer.text for answer in lab.predict.answers], self._score
        )
        self.quiz = Quiz(lab.quiz, self._quizzed)
        self.course = Course(lab.name, keep, lambda progress: self.quiz.restore(progress.answers), leave)

    def begin(self, run: LabRun, *, asks: bool) -> None:
        """A run starts; `asks` is true when a person has started it who can answer."""
        self._run, self._held = run, None
        self.form.clear()
        self._hold(asks and self.form.wanted and run.fails)

    def end(self, report: Report) -> None:
        """The run is over: ask for a prediction, or show the verdict and take note of it."""
        if not self._holding:
            self._learn(report)
            return
        self._held = report
        failed = not report.interrupted and report.verdict.outcome in ("hang", "error")
        asked = questions(report, self._lab.predict, self._source) if failed else ()
        if asked:
            self.form.ask(asked)
        else:
            self._reveal(None)

    def clear(self) -> None:
        """Forget everything, as if the lab was opened for the first time."""
        self._seen.clear()
        self._held = None
        self._hold(False)
        self.form.clear()
        self.turn.clear()
        self.predict.restore(None)
        self.quiz.restore(())
        self.course.reset()

    def _hold(self, holding: bool) -> None:
        self._holding = holding
        self._show(not holding)

    def _reveal(self, right: bool | None) -> None:
        """Show the verdict; `right` says how the learner's own came out, if there was one."""
        with self._lock:
            report, self._held = self._held, None
            self._hold(False)
            if right is not None:
                self.course.done("predicted", score=int(right))
            if report is not None:
                self._learn(report)

    def _learn(self, report: Report) -> None:
        """Take note of a run whose verdict is shown."""
        run = self._run
        assert run is not None
        mine = run.program == MINE
        if report.interrupted:
            if mine:
                self.turn.judge(None)
            return
        self._seen[run.program] = report
        self.predict.score()
        if run.program == self._lab.file.your_turn.copy_of:
            self.course.done("broken")
        elif run.program == "fixed" and report.verdict.outcome == "ok":
            self.course.done("fixed")
        elif mine:
            judgement = run.judge(report)
            self.turn.judge(judgement)
            if judgement.passed:
                self.course.done("checked")

    def _score(self, choice: str) -> str:
        broken = self._lab.file.your_turn.copy_of
        if broken not in self._seen:
            return f"Noted. Run {broken}, and you see whether it is so."
        predict = self._lab.predict
        truth = predict.truth(to_json(self._seen[broken]))
        if truth is None:
            return "This run shows none of the answers; run it once more with the knobs as they were."
        said = "Right." if choice == truth else f"The run shows otherwise: {truth}."
        return f"{said} {predict.explanation}"

    def _quizzed(self) -> None:
        self.course.answered(self.quiz.answers)
        if self.quiz.passed:
            self.course.done("quiz")
