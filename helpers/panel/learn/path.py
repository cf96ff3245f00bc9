"""The path through the guide, and how much of it the learner has done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ...labs import progress
from ...labs.lab import all_labs
from ...labs.pages import read_page
from ...labs.practice import all_hangs
from ...labs.progress import Progress
from ..show.templates import html
from ..waiting import in_jupyter
from .course import STEPS
from .first_hang import NAME as FIRST_HANG

METHOD, PRACTICE = "method", "practice"
"""Under which the answers to the method, and the hangs that are solved, are kept."""


class Stop(msgspec.Struct, frozen=True):
    """A part of the path, and how much of it is done."""

    name: str
    done: int
    of: int

    def __str__(self) -> str:
        return f"{self.name}: {self.done} of {self.of}"


class Path(msgspec.Struct, frozen=True):
    """The path through the guide. Run its cell again to see what has been done since."""

    stops: Sequence[Stop]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.stops))

    def _repr_html_(self) -> str:
        return html("path", self.stops)


def open_path() -> Path:
    """How far the learner has come on each part of the path; nowhere outside JupyterLab.

    Raises:
        LabError: a lab or the practice cannot be used.
    """
    return Path(tuple(_stops(persistent=in_jupyter())))


def _stops(*, persistent: bool) -> Iterator[Stop]:
    def of(name: str) -> Progress:
        return (progress.load(name) if persistent else None) or Progress(name)

    yield Stop("The first hang", len(of(FIRST_HANG).done), 1)
    questions = read_page(METHOD).questions
    answers = zip(questions, of(METHOD).answers, strict=False)
    right = sum(question.is_right(answer) for question, answer in answers)
    yield Stop("The method", right, len(questions))
    for lab in sorted(all_labs(), key=lambda lab: lab.file.place):
        done = sum(step in of(lab.name).done for step in STEPS)
        yield Stop(f"Lab {lab.name.partition('_')[0]}", done, len(STEPS))
    hangs = all_hangs()
    solved = {hang.name for hang in hangs} & {*of(PRACTICE).done}
    yield Stop("Practice", len(solved), len(hangs))
