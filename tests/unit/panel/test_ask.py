"""The questions of the method, and the path with what is done of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from panel_fakes import html_of

from helpers.labs import progress
from helpers.labs.lab import LabError, all_labs
from helpers.labs.pages import read_page
from helpers.labs.progress import Progress
from helpers.labs.questions import Choice, Number
from helpers.panel import ask, open_path
from helpers.panel.learn.course import STEPS
from helpers.panel.learn.first_hang import NAME

QUESTIONS = read_page("method").questions


@pytest.fixture
def in_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUCK_RANKS_STATE", str(tmp_path))
    monkeypatch.setenv("JPY_SESSION_NAME", "method.ipynb")


def right_of(asked: Choice | Number) -> str:
    return asked.right if isinstance(asked, Choice) else f"{asked.least:g}"


def wrong_of(asked: Choice | Number) -> str:
    return next(a for a in asked.answers if a != asked.right) if isinstance(asked, Choice) else "7"


@pytest.mark.parametrize("number", range(1, len(QUESTIONS) + 1))
def test_a_question_tells_nothing_before_the_right_answer(number: int) -> None:
    asked, widget = QUESTIONS[number - 1], ask("method", number)
    assert widget.feedback == "" and asked.explanation not in html_of(widget) + repr(widget)
    assert widget.answer(wrong_of(asked)).startswith("No. ")
    assert asked.explanation not in widget.feedback
    assert widget.answer(right_of(asked)) == f"Right. {asked.explanation}"


def test_the_right_answer_has_no_fixed_place() -> None:
    choices = [asked for asked in QUESTIONS if isinstance(asked, Choice)]
    places = [asked.answers.index(asked.right) for asked in choices]
    longest = [len(asked.right) == max(map(len, asked.answers)) for asked in choices]
    assert len(set(places)) == 3 and 0 < sum(longest) < len(choices)


def test_there_is_no_other_question() -> None:
    for page, number in (("method", 0), ("method", len(QUESTIONS) + 1), ("nowhere", 1)):
        with pytest.raises(LabError):
            ask(page, number)


@pytest.mark.usefixtures("in_lab")
def test_the_path_counts_what_is_right_and_done() -> None:
    first = str(open_path())
    assert first.splitlines()[:2] == ["The first hang: 0 of 1", f"The method: 0 of {len(QUESTIONS)}"]
    ask("method", 2).answer(right_of(QUESTIONS[1]))
    ask("method", 3).answer(wrong_of(QUESTIONS[2]))
    progress.save(Progress(NAME, ("answered",)))
    progress.save(Progress("05_spawn_ports", ("predicted", "broken")))
    progress.save(Progress("practice", ("01", "no such hang")))
    path = open_path()
    told = str(path).splitlines()
    assert told[:3] == [
        "The first hang: 1 of 1",
        f"The method: 1 of {len(QUESTIONS)}",
        f"Lab 05: 2 of {len(STEPS)}",
    ]
    assert len(told) == len(all_labs()) + 3 and told[-1].startswith("Practice: 1 of ")
    assert "✓ The first hang</th>" in path._repr_html_() and "✓ The method" not in path._repr_html_()


def test_outside_jupyterlab_nothing_is_read_or_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUCK_RANKS_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    ask("method", 2).answer(right_of(QUESTIONS[1]))
    assert not (tmp_path / "state").exists()
    progress.save(Progress(NAME, ("answered",)))
    assert str(open_path()).startswith("The first hang: 0 of 1")
