"""What a lab asks a learner, and what follows from the answers and the runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec
from ipywidgets import Button

from ...labs.declaration import MINE
from ...labs.lab import Lab
from ...labs.prediction import own_question, questions
from ...labs.progress import Progress
from ...labs.results import Judgement, judge
from ...labs.stage import Stage
from ...model.facts import Report, Snapshot
from ...observe.logs import KEEP
from ..run.export import Finished
from ..run.log_view import Lines
from .by_hand import ByHandForm
from .course import Course
from .diff import DiffView
from .disclosure import RevealBar
from .gate import OPENS, Disclosure, Gate
from .predict_form import PredictForm
from .quiz import Question, Quiz
from .your_turn import OwnCopy, YourTurn


class LabRun(msgspec.Struct, frozen=True):
    """What runs: a program of a lab with its knobs, and the folder where its ranks leave results."""

    lab: Lab
    program: str
    folder: Path
    knobs: Mapping[str, str]

    @property
    def original(self) -> str:
        """The program, or the one that the learner's copy started from."""
        turn = self.lab.file.turns.get(self.program)
        return turn.copy_of if turn else self.program

    @property
    def fails(self) -> bool:
        """True for a program of the lab that is expected to hang or fail, and for a copy of one."""
        if self.original not in self.lab.file.programs:
            return False
        return self.lab.expected(self.original, self.knobs).outcome in ("hang", "error")

    def disclosure(self, gate: Gate) -> Disclosure:
        """What the gate holds back of it: of a copy the same as of the original."""
        settings = (f"{name}={value}" for name, value in self.knobs.items())
        key = " ".join([self.original, *settings])
        return Disclosure(gate, key, self.lab.file.shows_of(self.program))

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
        starts: the buttons that run the lab's programs, by their names; that of the first turn's program
            gets the focus when a question above it goes away.
        check: the button that runs the learner's copy.
        free: True where nobody learns, so that nothing is asked or held back.
        on_stage: called when another stage of the current run may be shown.

    Attributes:
        gate: what the reports may show.
        course, form, reveal_bar, diff, turn: its parts in the panel.
        predict, by_hand, quiz: its parts with a cell of their own.
    """

    def __init__(
        self,
        lab: Lab,
        keep: bool,
        lock: threading.RLock,
        starts: Mapping[str, Button],
        check: Button,
        *,
        free: bool,
        on_stage: Callable[[Stage], None],
    ) -> None:
        self._lab, self._on_stage = lab, on_stage
        self._first = lab.file.turns[MINE].copy_of
        self._begun: set[str] = set()
        self._run: LabRun | None = None
        self._finished: Finished | None = None
        self._waiting = False
        self._report: Report | None = None
        self.gate = Gate(lab.file.turns, lock, free=free)
        self.form = PredictForm(lab.hints, self.gate, lock, self._answered)
        self.reveal_bar = RevealBar()
        self.diff = DiffView(lab, self.gate, lock)
        self.turn = YourTurn(OwnCopy.of_lab(lab), check)
        answers = [answer.text for answer in lab.predict.answers]
        self.predict = Question(lab.predict.question, answers, self._score, self._answered_late)
        self.by_hand = ByHandForm(lab, self.gate, lambda: self.course.done("by_hand"))
        self.quiz = Quiz(lab.quiz, self._quizzed)
        self.course = Course(lab.name, keep, starts[self._first], self._restore)
        self.gate.observe(lambda _: self._opened(), OPENS)

    @property
    def stage(self) -> Stage:
        """How much of the current run may be shown."""
        run = self._run
        if run is None:
            return Stage.FIX
        failed = run.fails if self._finished is None else self._finished.report.failed
        return run.disclosure(self.gate).stage if failed else Stage.FIX

    @property
    def hints(self) -> tuple[str, ...]:
        """The lab's hints; none before the first run."""
        return self._lab.hints if self.gate.has_run(self._first) else ()

    def offers(self, program: str) -> bool:
        """True once the lesson has come to a program, or to a turn: so that its button is shown.

        First comes the program that the lab is about; when its run is understood the learner's turn, and
        what fails for other reasons; when the fix may be shown that a turn asks for, what runs well.
        """
        if program == self._first or program in self._begun:
            return True
        lab = self._lab.file
        if program in lab.turns or any(
            expected.outcome != "ok" for expected in lab.expected if expected.program == program
        ):
            return "broken" in self.course.progress.done or self.gate.shows_fix(MINE)
        asking = (name for name, turn in lab.turns.items() if turn.solution == program)
        return self.gate.shows_fix(next(asking, MINE))

    def begin(self, run: LabRun) -> None:
        """A run starts."""
        self._begun.add(run.program)
        self._run, self._finished, self._waiting = run, None, False
        self.form.clear()
        self._show()
        if run.program in run.lab.file.turns:
            self.turn.begin(run.lab.copy(run.program))

    def end(self, finished: Finished) -> None:
        """The run is over: ask about it, or take note of how it went."""
        run, report = self._run, finished.report
        assert run is not None
        self._finished = finished
        self.gate.ran(run.original)
        if run.program in self._lab.file.turns:
            self._judge(run, finished)
        elif self.stage >= Stage.STATEMENT:
            self._learn(finished)
        else:
            self._waiting = True
            self._ask(run, report, finished)
        self._show()

    def judged(self, program: str, judgement: Judgement) -> None:
        """A copy is judged: where it passes, the fix may be shown."""
        if judgement.passed and program in self._lab.file.turns:
            self.gate.passed(program)
            if program == MINE:
                self.course.done("checked")

    def clear(self) -> None:
        """Forget everything, as if the lab was opened for the first time."""
        self._run = self._finished = self._report = None
        self._begun.clear()
        self._waiting = False
        self.form.clear()
        self.diff.clear()
        self.turn.clear()
        self.predict.restore(None)
        self.quiz.restore(())
        self.by_hand.clear()
        self.gate.restore((), ())
        self.course.reset()
        self._show()

    def _ask(self, run: LabRun, report: Report, finished: Finished) -> None:
        run_questions = questions(report, self._lab.predict, finished.sources.line)
        response = self.predict.response
        if run_questions:
            self.form.ask(run_questions, {self._lab.predict.question: response} if response else {})
        else:
            run.disclosure(self.gate).answered()

    def _answered(self, right: bool) -> None:
        """Every question of the form has an answer."""
        assert self._run is not None
        self.course.done("predicted", score=int(right))
        self._run.disclosure(self.gate).answered()

    def _opened(self) -> None:
        """More may be shown than before, or less after a reset."""
        self.course.gate(self.gate.steps, self.gate.revealed)
        self.diff.show()
        if self._waiting and self._finished is not None and self.stage >= Stage.STATEMENT:
            self._waiting = False
            self.form.leave()
            self._learn(self._finished)
        self._show()

    def _show(self) -> None:
        """Let the panel show the current run as far as it may, and say what is held back."""
        over = self._run is not None and self._finished is not None and self.stage < Stage.FIX
        self.reveal_bar.show(self._run.disclosure(self.gate) if over and self._run else None)
        self._on_stage(self.stage)

    def _restore(self, progress: Progress) -> None:
        self.quiz.restore(progress.answers)
        self.gate.restore(progress.steps, progress.revealed)
        self._show()

    def _judge(self, run: LabRun, finished: Finished) -> None:
        report = finished.report
        judgement = None if report.interrupted else run.judge(report, finished.logs, finished.snapshots)
        self.turn.judge(judgement)
        if judgement is not None:
            self.judged(run.program, judgement)

    def _learn(self, finished: Finished) -> None:
        """Take note of a run whose statement may be shown."""
        run, report = self._run, finished.report
        assert run is not None
        if report.interrupted:
            return
        self.diff.show_run(run.program, finished)
        if run.program == self._first:
            self._report = report
            self.predict.score()
            self._came_true(report)
            self.course.done("broken")
        elif run.program == "fixed" and report.verdict.outcome == "ok":
            self.course.done("fixed")

    def _came_true(self, report: Report) -> None:
        """Score what was answered in the notebook before this run, unless the form has done so."""
        question, response = own_question(report, self._lab.predict), self.predict.response
        if question and response is not None and "predicted" not in self.course.progress.done:
            self.course.done("predicted", score=int(question.is_right([response])))

    def _answered_late(self) -> None:
        """An answer that is given after the run is no prediction, but the step is done."""
        if self._report is not None:
            self.course.done("predicted")

    def _score(self, choice: str) -> str:
        """What to say about an answer to the lab's own question."""
        if self._report is None:
            return f"Noted. Run {self._first}, and you see whether it is so."
        question = own_question(self._report, self._lab.predict)
        if question is None:
            return "This run shows none of the answers; run it once more with the settings as they were."
        return f"{question.feedback([choice])} {question.why}"

    def _quizzed(self) -> None:
        self.course.answered(self.quiz.answers)
        if self.quiz.passed:
            self.course.done("quiz")
