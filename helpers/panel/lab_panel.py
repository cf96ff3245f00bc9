"""The panel of a lab: its programs as buttons, its knobs as controls, its text as methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from ipywidgets import Button

from ..labs import tables as lab_text
from ..labs.declaration import MINE, Program
from ..labs.lab import Lab, LabError, RunFolder, find_lab
from ..labs.results import Judgement
from ..labs.stage import Stage
from ..session import Session
from .learn.by_hand import ByHandForm
from .learn.claims import Claims
from .learn.disclosure import LessonResult
from .learn.lesson import LabRun, Lesson
from .learn.quiz import Question, Quiz
from .run.export import Finished
from .run.result import Hints
from .run.run_panel import RunPanel
from .run.runner import Run
from .show import words
from .waiting import in_jupyter, waiting
from .widgets.controls import button, row, show
from .widgets.knobs import Knobs

StartProgram = Callable[[Lab, str, Path, Mapping[str, str]], Session]


class LabPanel(RunPanel):
    """One lab, live. Buttons and cells call the same methods.

    Of a run that fails, the panel and the cell show what the lesson lets them show so far; the rest
    once the learner has answered or has asked to see it. No cell waits for an answer.

    Args:
        lab: what to run.
        make: makes the session of a program, given the folder for its results and its knobs.
        clock: monotonic seconds, for the rhythm of updates.
        keep: whether to keep on disk where the learner stands.
        free: True where nobody learns, so that nothing is asked or held back.
    """

    def __init__(
        self,
        lab: Lab,
        make: StartProgram = lambda lab, name, folder, knobs: lab.session(name, folder=folder, **knobs),
        clock: Callable[[], float] = time.monotonic,
        *,
        keep: bool = False,
        free: bool = False,
    ) -> None:
        number = f"Lab {lab.name.partition('_')[0]}"
        ranks = words.ranks_text(lab.file.ranks)
        super().__init__(f"{number} {lab.title}", ranks, clock, tab=number)
        self._lab, self._make = lab, make
        self._knobs = Knobs(lab.knobs)
        self._starts = {
            name: self._start_button(name, program) for name, program in lab.file.programs.items()
        }
        stop = button("Stop", "stop", "End everything that the run has started", self.stop)
        forgets = "Stop the run, clear what is shown, and forget your progress in this lab"
        reset = button("Reset", "undo", forgets, self.reset)
        tooltip = "Run your copy and judge what it does"
        check = button("Check my copy", "check", tooltip, lambda: self._click(MINE))
        lesson = self._lesson = Lesson(
            lab, keep, self._lock, self._starts, check, free=free, on_stage=self._show_stage
        )
        self.lay_out(
            self._header,
            lesson.course,
            row([*self._starts.values(), stop, reset]),
            row(list(self._knobs.controls.values())),
            self._screen,
            lesson.form,
            lesson.reveal_bar,
            self._export,
            lesson.diff,
            lesson.turn,
        )
        self._offer()

    def reset(self) -> None:
        """Stop the run, clear the display and the results, and forget where the learner stands."""
        super().reset()
        with self._lock:
            self._lesson.clear()

    async def run(self, program: str, **knobs: str) -> LessonResult:
        """Run a program and return its result; a run that is still going on is stopped first.

        Args:
            program: `broken`, `fixed`, ... or `mine` for your own copy.
            knobs: values that differ from what the controls say; the controls then show them.

        Raises:
            LabError: there is no such program, knob or value.
            LaunchError: the program cannot be started.
        """
        with RunFolder() as folder:
            chosen = self._prepared(self._lab, program, folder, knobs)
            report = await self._finished(self._start(chosen))
            results = tuple(self._lab.results(folder))
            disclosure = chosen.disclosure(self._lesson.gate)
            return LessonResult(program, report, results, disclosure=disclosure)

    async def check(self, program: str = MINE, **knobs: str) -> Judgement:
        """Run your own copy, judge it by what its ranks have written, and say what is wrong with it.

        Args:
            program: `mine`, the name of another program, or the path of one.
            knobs: as for `run`.

        Raises:
            LabError, LaunchError: as for `run`.
        """
        lab = self._lab if program in self._lab.programs else self._lab.with_file(program)
        with RunFolder() as folder:
            chosen = self._prepared(lab, program, folder, knobs)
            run = self._start(chosen)
            report = await self._finished(run)
            finished = self.finished  # None where the run was cleared away meanwhile
            looks = finished.snapshots if finished is not None and finished.report is report else ()
            judgement = chosen.judge(report, run.session.result().logs, looks)
            self._lesson.judged(program, judgement)
            return judgement

    def your_copy(self, turn: str = MINE) -> Path:
        """Where your own copy of a program is; it is made if it is missing."""
        return self._lab.my_copy(turn)

    def compare(self, first: LessonResult, second: LessonResult) -> lab_text.Table:
        """Two runs side by side, as far as each may be shown."""
        runs = ((first.name, first.report, first.stage), (second.name, second.report, second.stage))
        return lab_text.comparison(*runs)

    def waited_for(self, *runs: LessonResult) -> lab_text.Table:
        """For whom the others waited in some runs that ended well, a row for each run."""
        return lab_text.waited_for([(run.name, run.report) for run in runs])

    def measured(self, key: str, *runs: LessonResult) -> lab_text.Table:
        """What the ranks wrote under a key of their results, a row for each run."""
        return lab_text.measured([(run.name, run.results) for run in runs], key)

    def diff(self, old: str = "broken", new: str = "fixed") -> lab_text.Difference:
        """What changes from one program to another; the fix is revealed by it. Raises LabError."""
        solved = (name for name, turn in self._lab.file.turns.items() if turn.solution == new)
        for turn in solved:
            self._lesson.gate.reveal_fix(turn)
        return lab_text.difference(self._lab, old, new)

    def claims(self) -> Claims:
        """What the source document claims: some claims to be judged, all of them in a table."""
        return Claims(self._lab)

    def hints(self) -> Hints:
        """Hints that unfold one by one, once the first run is over."""
        return Hints(self._lesson.hints)

    @property
    def predict(self) -> Question:
        """The question to answer before the broken program runs."""
        return self._lesson.predict

    @property
    def by_hand(self) -> ByHandForm:
        """What to find out in a terminal, without the panel."""
        return self._lesson.by_hand

    @property
    def quiz(self) -> Quiz:
        """The questions at the end."""
        return self._lesson.quiz

    def _start_button(self, name: str, program: Program) -> Button:
        lacks = self._lab.lacking(name)
        widget = button(lacks or f"Run {name}", "play", program.text, lambda: self._click(name))
        if lacks:
            widget.disabled, widget.layout.width = True, "auto"
        return widget

    def _click(self, program: str) -> None:
        try:
            self._start_and_clean(program, {})
        except LabError as error:
            self._say(str(error))

    def _start_and_clean(self, program: str, knobs: Mapping[str, str]) -> Run:
        """Start a run whose results are removed once it is over."""
        folder = RunFolder()
        run = self._prepared(self._lab, program, folder.path, knobs)
        return self._start(run, folder.remove)

    def _prepared(self, lab: Lab, program: str, folder: Path, knobs: Mapping[str, str]) -> LabRun:
        """What is to run; the controls decide the knobs that are not given."""
        lab.settings(program, knobs)
        chosen = lab.settings(program, lab.applying(program, self._knobs.values() | dict(knobs)))
        self._knobs.show(knobs)
        return LabRun(lab, program, folder, chosen)

    def _start(self, lab_run: LabRun, after: Callable[[], None] | None = None) -> Run:
        def make() -> Session:
            return self._make(lab_run.lab, lab_run.program, lab_run.folder, lab_run.knobs)

        with self._lock:
            run = self._begin(self._display_name(lab_run), make, after)
            self._lesson.begin(lab_run)
            return run

    def _display_name(self, run: LabRun) -> str:
        """How a program is called: by its name, a copy by that of its file."""
        return run.lab.copy(run.program).name if run.program in self._lab.file.turns else run.program

    def _take(self, finished: Finished) -> None:
        self._lesson.end(finished)

    def _show_stage(self, stage: Stage) -> None:
        """Show the run as far as it may be shown; the files of a run tell everything."""
        self._screen.stage = stage
        show(self._export, stage is Stage.FIX)
        self._offer()

    def _offer(self) -> None:
        """Show the buttons to which the lesson has come, and the knobs of what they run."""
        offered = [name for name in self._starts if self._lesson.offers(name)]
        for name, start in self._starts.items():
            show(start, name in offered)
        run = [name for name in offered if not self._lab.lacking(name)]
        applying = {knob for name in run for knob in self._lab.file.applying(name)}
        for knob, control in self._knobs.controls.items():
            show(control, knob in applying)
        show(self._lesson.turn, self._lesson.offers(MINE))

    def __repr__(self) -> str:
        runs = ", ".join(f"Run {name}" for name in self._lab.file.programs)
        knobs = f"; settings {self._knobs!r}" if self._knobs.controls else ""
        return f"{self._title}: {runs}, Stop, Reset{knobs}"


def open_lab(name: str) -> LabPanel:
    """The panel of a lab.

    Args:
        name: its folder (`05_spawn_ports`) or its number (`05`).

    Raises:
        LabError: there is no such lab, or its `lab.toml` is wrong.
    """
    learner = in_jupyter()
    with waiting("Opening the lab: looking at what this machine can run."):
        return LabPanel(find_lab(name), keep=learner, free=not learner)
