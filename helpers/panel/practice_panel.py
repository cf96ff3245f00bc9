"""The panel for practice: the learner says what went wrong in a run, and repairs its program."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ipywidgets import HTML, VBox

from ..labs import progress
from ..labs.declaration import Shows
from ..labs.lab import LabError, RunFolder
from ..labs.practice import LEVELS, Hang, all_hangs
from ..labs.prediction import practised
from ..labs.progress import Progress, ProgressError
from ..labs.repair import Work, judge_repair
from ..labs.stage import Stage
from ..model.wording import sentence
from ..observe.logs import KEEP
from ..report.history import History
from ..report.slow import shares
from ..report.source_lines import Sources
from ..session import Session, report_of
from .learn import learn_view
from .learn.disclosure import RevealBar
from .learn.gate import OPENS, Disclosure, Gate
from .learn.predict_form import PredictForm
from .learn.your_turn import OwnCopy, YourTurn
from .run.export import Finished
from .run.moment import Moment
from .run.replay import RecordedLogs
from .run.run_panel import RunPanel
from .waiting import in_jupyter, waiting
from .widgets.controls import button, row, show
from .widgets.native import Choices, Spoken

NAME, REPAIRED = "practice", "practice-repaired"
"""Under which the hangs that are solved, and those that are repaired, are kept."""

TASK = (
    "Repair the program. It passes when its run ends by itself and the job still does its work: "
    "the same ranks, DataLoader workers, communication and output."
)


class PracticePanel(RunPanel):
    """One hang after the other: its program, what a run of it showed, questions, and a copy to repair.

    Args:
        hangs: at least one.
        clock: as for every panel.
        keep: whether to keep on disk which hangs are solved and repaired.
    """

    def __init__(
        self, hangs: Sequence[Hang], clock: Callable[[], float] = time.monotonic, *, keep: bool = False
    ) -> None:
        super().__init__("Practice", f"{len(hangs)} hangs", clock)
        self._hangs, self._keep = tuple(hangs), keep
        self._solved, self._repaired = self._read(NAME), self._read(REPAIRED)
        self._level = Choices("Level", LEVELS)
        self._level.value = LEVELS[0]
        self._level.observe(lambda _: self.next(), "chosen")
        self._tally, self._program = Spoken(), HTML()
        self._gate, self._times = Gate((), self._lock), 0
        self._form = PredictForm((), self._gate, self._lock, self._answered)
        self._bar, self._turns = RevealBar(), VBox()
        self._check = button("Run my repair", "check", "Run your copy and judge what it does", self._try)
        self._standard: tuple[Work, Work] | None = None
        self._gate.observe(lambda _: self._opened(), OPENS)
        live = "Run the program here, now, instead of looking at the recording"
        self.lay_out(
            self._header,
            self._tally,
            row([self._level]),
            row(
                [
                    button("Next hang", "forward", "Another hang of this level", self.next),
                    button("Run it live", "play", live, self._run_live),
                    button("Stop", "stop", "End everything that the run has started", self.stop),
                ]
            ),
            self._screen,
            self._program,
            self._form,
            self._bar,
            self._export,
            self._turns,
        )
        self.hang = self._following("")
        self._turn = self._new_turn()
        self._disclosure = self._hold()
        self.show_hang(self.hang.name)

    @property
    def solved(self) -> tuple[str, ...]:
        """Names of the hangs whose questions were all answered right."""
        return self._solved

    def next(self) -> None:
        """Open the next hang of the chosen level, an unsolved one if there is any."""
        self.show_hang(self._following(self.hang.name).name)

    def show_hang(self, name: str) -> None:
        """Show a hang as its recording ends, and ask about it.

        Raises:
            LabError: there is no such hang.
        """
        hang = next((hang for hang in self._hangs if hang.name == name), None)
        if hang is None:
            raise LabError(f"there is no hang {name!r} to practise on")
        with self._lock:
            running, self._active = self._run, False
            self._clear("")
            self.hang = hang
            self._turn = self._new_turn()
            texts = {_name(hang, file): file.read_text(encoding="utf-8") for file in hang.files}
            easy = hang.level == LEVELS[0]
            self._program.value = learn_view.program(hang.command, texts, unfolded=easy)
            self._count()
            self._show_recorded(hang)
        if running is not None:
            running.stop()

    def _show_recorded(self, hang: Hang) -> None:
        recording, history = hang.recording(), History()
        snapshots = tuple(recording.snapshots())
        for snapshot in snapshots:
            history.add(snapshot)
        report = report_of(snapshots, recording.watched.patience)
        finished = Finished(
            name=sentence(hang.title),
            report=report,
            snapshots=tuple(history.snapshots),
            logs=RecordedLogs(recording),
            sources=Sources(None, recording.sources),
            recording=lambda: recording,
            provenance=dict(recording.made),
        )
        self._disclosure = self._hold()
        self._screen.show(
            Moment(finished.snapshots, report.verdict, finished.logs, finished.sources, report)
        )
        self._export.offer(finished)
        at = "when it hung" if report.verdict.outcome == "hang" else "at its end"
        self._screen.say(f"A recording of a run, as it was {at}.")
        self._ask(finished)

    def _run_live(self) -> None:
        hang, folder = self.hang, RunFolder()

        def make() -> Session:
            return hang.session(folder.path)

        with self._lock:
            self._begin(hang.title, make, folder.remove)
            self._disclosure = self._hold()

    def _try(self) -> None:
        """Run the learner's copy; all of its run is shown."""
        hang, folder = self.hang, RunFolder()
        try:
            standard = hang.hung(), hang.work()
        except LabError as problem:
            folder.remove()
            self._say(str(problem))
            return

        def make() -> Session:
            return hang.session(folder.path, hang.my_copy())

        with self._lock:
            self._begin(f"your repair of hang {hang.name}", make, folder.remove)
            self._standard = standard
            self._turn.begin(hang.copy_folder)

    def _take(self, finished: Finished) -> None:
        if self._standard is None:
            self._ask(finished)
        elif finished.report.interrupted:
            self._turn.judge(None)
        else:
            self._judge(*self._standard, finished)

    def _judge(self, hung: Work, fixed: Work, finished: Finished) -> None:
        logs = finished.logs
        printed = {label: logs.tail(label, KEEP) for label in logs.labels()}
        judgement = judge_repair(hung, fixed, finished.report, printed)
        self._turn.judge(judgement)
        if judgement.passed and self.hang.name not in self._repaired:
            self._repaired = (*self._repaired, self.hang.name)
            self._save(REPAIRED, self._repaired)
            self._count()

    def _ask(self, finished: Finished) -> None:
        verdict = finished.report.verdict
        asks = not finished.report.interrupted and (verdict.outcome == "hang" or shares(verdict))
        questions = practised(finished.report, finished.sources.line) if asks else ()
        if not questions:
            self._disclosure.answered()
        elif self._disclosure.stage < Stage.FIX:
            self._form.ask(questions, {})
            self._over = True
            self._bar.show(self._disclosure)

    def _hold(self) -> Disclosure:
        """Hold back what is about to be shown: it is asked anew whenever a hang is opened or run."""
        self._standard = None
        self._times += 1
        disclosure = Disclosure(self._gate, f"{self.hang.name}, {self._times}", Shows())
        self._form.clear()
        self._over = False
        self._bar.show(None)
        self._show_stage(disclosure.stage)
        return disclosure

    def _answered(self, right: bool) -> None:
        if right and self.hang.name not in self._solved:
            self._solved = (*self._solved, self.hang.name)
            self._save(NAME, self._solved)
            self._count()
        self._disclosure.answered()

    def _opened(self) -> None:
        stage = self._disclosure.stage
        if stage >= Stage.STATEMENT:
            self._form.leave()
        if self._over:
            self._bar.show(self._disclosure)
        self._show_stage(stage)

    def _show_stage(self, stage: Stage) -> None:
        self._screen.stage = stage
        show(self._export, stage is Stage.FIX)
        offered = stage is Stage.FIX and self.hang.repairable
        self._turns.children = [self._turn] if offered else []

    def _new_turn(self) -> YourTurn:
        hang = self.hang
        own_copy = OwnCopy(
            TASK,
            hang.title,
            hang.copy_folder,
            hang.my_copy,
            hang.start_over,
            [_name(hang, file) for file in hang.files],
        )
        return YourTurn(own_copy, self._check, "Repair it")

    def _following(self, name: str) -> Hang:
        """The hang of the chosen level that comes after one: the first unsolved one, else the next."""
        level = [hang for hang in self._hangs if hang.level == self._level.value]
        turn = sorted(level, key=lambda hang: (hang.name <= name, hang.name))
        return next((hang for hang in turn if hang.name not in self._solved), turn[0])

    def _count(self) -> None:
        counted = ", ".join(
            f"{level} {sum(h.name in self._solved for h in self._hangs if h.level == level)}"
            f" of {sum(h.level == level for h in self._hangs)}"
            for level in LEVELS
        )
        text = f"**{sentence(self.hang.title)}** ({self.hang.level}). Solved: {counted}."
        if self._repaired:
            text += f" Repaired: {len(self._repaired)} of {sum(h.repairable for h in self._hangs)}."
        self._tally.value = learn_view.note(text)

    def _read(self, name: str) -> tuple[str, ...]:
        record = progress.load(name) if self._keep else None
        return record.done if record else ()

    def _save(self, name: str, hangs: tuple[str, ...]) -> None:
        if self._keep:
            try:
                progress.save(Progress(name, hangs))
            except ProgressError as error:
                self._say(f"{error}.")

    def __repr__(self) -> str:
        levels = ", ".join(
            f"{sum(hang.level == level for hang in self._hangs)} {level}" for level in LEVELS
        )
        return f"Practice: {len(self._hangs)} hangs ({levels}); Next hang, Run it live, Stop"


def _name(hang: Hang, file: Path) -> str:
    return str(file.relative_to(hang.folder))


def open_practice() -> PracticePanel:
    """Unseen hangs to practise on.

    Raises:
        LabError: they are not there.
    """
    with waiting("Reading the recorded hangs."):
        return PracticePanel(all_hangs(), keep=in_jupyter())
