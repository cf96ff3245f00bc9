"""The first exercise: a recorded hang of many ranks, one question, and then what the tool says of it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property

from ipywidgets import HTML, Dropdown

from ...labs import progress
from ...labs.lab import LabError, labs_folder
from ...labs.prediction import odd_one_out
from ...labs.progress import Progress, ProgressError
from ...model.facts import ProcessView, Report, Snapshot
from ...model.wording import spoken
from ...observe.recording import Recording, RecordingError, load
from ...report.source_lines import Sources
from ...report.wall import wall
from ...session import report_of
from ..run.player import Player, Wait
from ..run.replay import label
from ..show import view
from ..show.tabs import own_stack
from ..waiting import in_jupyter
from ..widgets.controls import Framed, button, row
from ..widgets.native import Spoken
from ..widgets.wall import Wall
from . import learn_view

NAME = "first_hang"
"""Under which it is kept whether the hang was judged, or its answer revealed."""

RECORDING = "first_hang.jsonl.gz"
"""In the folder of the method, beside the program."""

TASK = (
    "**Which rank is the odd one out?** Move the slider, or press Play. Click a lane, or choose a rank "
    "below, to see what it is doing. Then answer."
)
AGAIN = "Look for a lane that differs from the others at the end, and try again."
NOTHING = "Choose a rank first."


class FirstHang(Framed):
    """A wall of lanes with a slider; a rank that is chosen is looked into, then judged.

    Args:
        recording: of a hang with one culprit, with at least one look.
        wait: as for `Player`.
        keep: whether to keep on disk that the question is answered.

    Attributes:
        verdict_shown: True once the verdict is shown.
    """

    def __init__(self, recording: Recording, wait: Wait | None = None, *, keep: bool = False) -> None:
        snapshots = tuple(recording.snapshots())
        self._patience, self._keep, self.verdict_shown = recording.watched.patience, keep, False
        self._begin = begin_of(snapshots)
        self._snapshots = snapshots
        self._sources = Sources(None, recording.sources)
        self._lock = threading.RLock()
        times = [snapshot.time for snapshot in snapshots if snapshot.time >= self._begin]
        self._player = Player(times, self._lock, self._show, wait)
        self._wall, self._inside = Wall(), HTML()
        self._wall.observe(lambda _: self._choose(self._wall.chosen), "chosen")
        ranks = sorted(view.rank for view in snapshots[-1].ranks if view.rank is not None)
        self._rank = Dropdown(
            options=[("none chosen", None), *((f"rank {rank}", rank) for rank in ranks)],
            description="Rank",
            style={"description_width": "initial"},
            layout={"width": "auto"},
        )
        self._rank.observe(lambda _: self._choose(self._rank.value), "value")
        self._feedback, self._before, self._verdict = Spoken(), HTML(), Spoken()
        self._eye = button("Reveal", "eye", "Show the verdict without an answer", self._reveal)
        self._title = f"{len(ranks)} ranks"
        super().__init__(
            [
                HTML(view.recorded(label(recording))),
                HTML(learn_view.strong(TASK)),
                self._player,
                self._wall,
                row(
                    [
                        self._rank,
                        button("Answer", "check", "Say that it is the chosen rank", self._answer),
                        self._eye,
                    ]
                ),
                self._feedback,
                self._before,
                self._verdict,
                self._inside,
            ]
        )
        self._show()

    @cached_property
    def _report(self) -> Report:
        """Made with the first answer: the page is to open at once."""
        return report_of(self._snapshots, self._patience)

    @property
    def second(self) -> float:
        """The second of the run that is shown."""
        return self._player.second

    def seek(self, second: float) -> None:
        """Show the run as it was at a second of it."""
        self._player.seek(second)

    def answer(self, rank: int) -> str:
        """Say that a rank is the odd one out; returns the sentence about that."""
        question, choice = odd_one_out(self._report), spoken([rank])
        right = question.is_right([choice])
        self._feedback.value = learn_view.answer(
            "Right." if right else f"No. {question.instead.get(choice, '')} {AGAIN}"
        )
        if right:
            self._tell(Progress(NAME, ("answered",)))
        return "Right." if right else "No."

    def _answer(self) -> None:
        if self._rank.value is None:
            self._feedback.value = learn_view.answer(NOTHING)
        else:
            self.answer(self._rank.value)

    def _reveal(self) -> None:
        self._tell(Progress(NAME, revealed=("verdict",)))

    def _tell(self, reached: Progress) -> None:
        """Show the verdict; the first way to come to it is the one that is kept."""
        if self.verdict_shown:
            return
        self.verdict_shown, self._eye.disabled = True, True
        verdict = self._report.verdict
        delay = (self._report.verdict_at or self._snapshots[-1].time) - (verdict.since or 0.0)
        heading = f"What `stuck-ranks` says of this run, {delay:.1f} s after the last rank had stopped:"
        self._before.value = learn_view.strong(heading)
        self._verdict.value = view.final_verdict(self._report)
        if self._keep:
            try:
                progress.save(reached)
            except ProgressError as error:
                self._feedback.value = learn_view.note(f"{error}.")

    def _choose(self, rank: int | None) -> None:
        with self._lock:
            if (self._wall.chosen, self._rank.value) != (rank, rank):
                self._wall.chosen = self._rank.value = rank
                self._look_into()

    def _show(self) -> None:
        with self._lock:
            self._wall.value = wall(self._until_now(), begin=self._begin, until=self._snapshots[-1].time)
            self._look_into()

    def _until_now(self) -> Sequence[Snapshot]:
        times = [snapshot.time for snapshot in self._snapshots]
        return self._snapshots[: max(1, bisect_right(times, self.second))]

    def _look_into(self) -> None:
        """Show what the chosen rank is doing now."""
        rank = self._rank.value
        processes = {view.rank: view.process for view in self._until_now()[-1].ranks}
        process = processes.get(rank)
        self._inside.value = own_stack(f"rank {rank}", process, self._sources) if process else ""

    def __repr__(self) -> str:
        return f"A recorded hang of {self._title}: Play, Speed, Second, Rank, Answer, Reveal"


def begin_of(snapshots: Sequence[Snapshot]) -> float:
    """The first time from which on all ranks have left their imports behind."""
    begun = snapshots[-1].time
    for snapshot in reversed(snapshots):
        if not snapshot.ranks or any(_imports(view.process) for view in snapshot.ranks):
            break
        begun = snapshot.time
    return begun


def _imports(process: ProcessView | None) -> bool:
    return process is None or process.state in ("starting", "importing")


def open_first_hang() -> FirstHang:
    """The hang of the start page.

    Raises:
        LabError: its recording is not there, or cannot be read.
    """
    try:
        return FirstHang(load(labs_folder() / "method" / RECORDING), keep=in_jupyter())
    except RecordingError as problem:
        raise LabError(str(problem)) from problem
