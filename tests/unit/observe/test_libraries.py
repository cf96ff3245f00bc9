"""The source of a library's function in which ranks part, and when it is asked for."""

from __future__ import annotations

import pytest

from helpers.model.facts import ProcessView, RankView
from helpers.model.frames import Frame
from helpers.observe.libraries import readable
from helpers.observe.look import AnyQuestion, Source
from helpers.observe.source import Sources

USER = Frame("train.py", 1, "<module>")


def rank(number: int, *library: tuple[int, str], still: float = 2.0, user: Frame = USER) -> RankView:
    frames = [Frame("/lib/fit.py", line, name, user=False) for line, name in library]
    process = ProcessView(number, "rank", stack=(*reversed(frames), user), still=still)
    return RankView(number, process=process)


TABLE = [
    ("one function, two lines", [rank(0, (3, "fit")), rank(1, (5, "fit"))], [("/lib/fit.py", "fit")]),
    (
        "below lines that are the same",
        [rank(0, (3, "fit"), (7, "run")), rank(1, (3, "fit"), (8, "run"))],
        [("/lib/fit.py", "run")],
    ),
    ("two functions", [rank(0, (3, "fit")), rank(1, (3, "test"))], []),
    ("the same lines", [rank(0, (3, "fit")), rank(1, (3, "fit"))], []),
    ("the user's own lines", [rank(0), rank(1, user=Frame("train.py", 2, "<module>"))], []),
    ("a rank that moves", [rank(0, (3, "fit")), rank(1, (5, "fit"), still=0.1)], []),
    ("one rank", [rank(0, (3, "fit"))], []),
]


@pytest.mark.parametrize(("title", "views", "found"), TABLE, ids=[row[0] for row in TABLE])
def test_where_ranks_part_in_a_library(
    title: str, views: list[RankView], found: list[tuple[str, str]]
) -> None:
    asked: set[AnyQuestion] = set()

    def ask(question: AnyQuestion) -> str:
        asked.add(question)
        return "def fit(): ...\n"

    told = readable(views, Sources("/job", ask))
    frames = {frame for view in told if view.process for frame in view.process.stack if frame.text}
    assert {(frame.file, frame.function) for frame in frames} == set(found)
    assert asked == {Source(file) for file, _ in found}
