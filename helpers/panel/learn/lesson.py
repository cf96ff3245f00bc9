"""What a lab asks a learner, and what follows from the answers and the runs."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipywidgets import Button

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.prediction import own_question, questions
from ...labs.results import Judgement, judge
from ...model.facts import Report, Snapshot
from ...observe.logs import KEEP
from ..run.export import Finished
from ..run.log_view import Lines
from .course import Course
from .diff import DiffView
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
        """True for a program of the lab that is expected to hang or fail."""
        if self.program not in self.lab.file.programs:
            return False
        return self.lab.expected(self.program, self.knobs).outcome in ("hang", "error")

    def judge(self, report: Report, logs: Lines, looks: Sequence[Snapshot]) -> Judgement:
        """What the run is worth, once it is over."""
        printed = {label: logs.tail(label, KEEP) for label in logs.labels()}
        return judge(self.lab, self.program, report, self.folder, self.knobs, task=printed, looks=looks)


class Lesson:
    """The learner's side of a lab: knows a run only by its report, and starts none.

    Args:
        lab: what it is about.
        keep: whether to keep on disk where the learner stands.
        lock: held by whoever calls a method; clicks take it themselves.
        first: the panel's first button, which gets the focus when a question above it goes away.
        check: the button that runs the learner's copy.

    Attributes:
        course, form, diff, turn: its parts in the panel.
        predict, quiz: its parts with a cell of their own.
    """

    def __init__(
        self, lab: Lab, keep: bool, lock: threading.RLock, first: Button, check: Button
    ) -> None:
        self._lab = lab
        self._first = lab.file.turns[MINE].copy_of
        self._run: LabRun | None = None
        self._held: Finished | None = None
        self._seen: Report | None = None
        self.form = PredictForm(lab.hints, lock)
        self.form.observe(lambda change: None if change.new else self._released(), "holding")
        self.diff = DiffView(lab)
        self.turn = YourTurn(lab, check)
        answers = [answer.text for answer in lab.predict.answers]
        self.predict = Question(lab.predict.question, answers, self._score, self._answered_late)
        self.quiz = Quiz(lab.quiz, self._quizzed)
        self.course = Course(lab.name, keep, first, lambda kept: self.quiz.restore(kept.answers))

    def begin(self, run: LabRun, *, asks: bool) -> None:
        """A run starts; `asks` is true when a person has started it who can answer."""
        self._run, self._held = run, None
        self.form.begin(asks=asks and run.fails)
        if run.program in run.lab.file.turns:
            self.turn.begin(run.program)

    def end(self, finished: Finished) -> None:
        """The run is over: ask for a prediction, or take note of how it went."""
        if not self.form.holding:
            self._learn(finished)
            return
        report = finished.report
        self._held = finished
        failed = not report.interrupted and report.verdict.outcome in ("hang", "error")
        asked = questions(report, self._lab.predict, finished.sources.line) if failed else ()
        given = self.predict.given
        self.form.ask(asked, {self._lab.predict.question: given} if given else {})

    def clear(self) -> None:
        """Forget everything, as if the lab was opened for the first time."""
        self._seen = self._held = None
        self.form.begin(asks=False)
        self.diff.clear()
        self.turn.clear()
        self.predict.restore(None)
        self.quiz.restore(())
        self.course.reset()

    def _released(self) -> None:
        """The verdict is no longer held back."""
        finished, self._held = self._held, None
        if self.form.right is not None:
            self.course.done("predicted", score=int(self.form.right))
        if finished is not None:
            self._learn(finished)

    def _learn(self, finished: Finished) -> None:
        """Take note of a run whose verdict is shown."""
        run, report = self._run, finished.report
        assert run is not None
        judged = run.program in run.lab.file.turns
        if report.interrupted:
            if judged:
                self.turn.judge(None)
            return
        self.diff.show_run(run.program, finished)
        if run.program == self._first:
            self._seen = report
            self.predict.score()
            self._came_true(report)
            self.course.done("broken")
        elif run.program == "fixed" and report.verdict.outcome == "ok":
            self.course.done("fixed")
        elif judged:
            judgement = run.judge(report, finished.logs, finished.snapshots)
            self.turn.judge(judgement)
            if judgement.passed and run.program == MINE:
                self.course.done("checked")

    def _came_true(self, report: Report) -> None:
        """Score what was answered in the notebook before this run, unless the form has done so."""
        asked, given = own_question(report, self._lab.predict), self.predict.given
        if asked is not None and given is not None and "predicted" not in self.course.progress.done:
            self.course.done("predicted", score=int(asked.is_right([given])))

    def _answered_late(self) -> None:
        """An answer that is given after the run is no prediction, but the step is done."""
        if self._seen is not None:
            self.course.done("predicted")

    def _score(self, choice: str) -> str:
        """What to say about an answer to the lab's own question."""
        if self._seen is None:
            return f"Noted. Run {self._first}, and you see whether it is so."
        asked = own_question(self._seen, self._lab.predict)
        if asked is None:
            return "This run shows none of the answers; run it once more with the settings as they were."
        return f"{asked.said([choice])} {asked.why}"

    def _quizzed(self) -> None:
        self.course.answered(self.quiz.answers)
        if self.quiz.passed:
            self.course.done("quiz")
