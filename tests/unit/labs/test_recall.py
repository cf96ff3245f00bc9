"""The questions of the guide: which come back in a later lab, and that none can be guessed."""

from __future__ import annotations

import re

import nbformat
import pytest
from lessons import OUTPUTS

from helpers.labs.lab import Lab, all_labs, labs_folder
from helpers.labs.questions import CLAIM_ANSWERS, Choice, Claim, Near, Number
from helpers.labs.recall import recalled

LABS = all_labs()
CHOICES = [question for lab in LABS for question in lab.quiz if isinstance(question, Choice)]
SLACK = 0.1
"""How far above chance a way to guess may be."""

every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: lab.name)

CHANCE = sum(1 / len(question.answers) for question in CHOICES) / len(CHOICES)


def share(right: list[bool]) -> float:
    return sum(right) / len(right)


def lengths(question: Choice) -> tuple[int, list[int]]:
    """The length of the right answer, and those of the others."""
    return len(question.right), [len(text) for text in question.answers if text != question.right]


def test_the_length_of_an_answer_does_not_tell_that_it_is_right() -> None:
    shortest = [right <= min(others) for right, others in map(lengths, CHOICES)]
    longest = [right >= max(others) for right, others in map(lengths, CHOICES)]
    between = [min(others) < right < max(others) for right, others in map(lengths, CHOICES)]
    for guess in (shortest, longest, between):
        assert CHANCE - SLACK <= share(guess) <= CHANCE + SLACK


def test_the_place_of_an_answer_does_not_tell_that_it_is_right() -> None:
    for place in (0, 1, -1):
        assert CHANCE - SLACK <= share([q.answers[place] == q.right for q in CHOICES]) <= CHANCE + SLACK


def test_no_two_answers_share_a_sentence() -> None:
    said = [text for question in CHOICES for text in (*question.wrong, question.explanation)]
    for question in CHOICES:
        assert len({*question.wrong, question.explanation}) == len(question.answers)
    assert all(re.match(r"[A-Z`].*\.$", text) for text in said)


@every_lab
def test_a_lab_has_dumps_to_read_and_a_number_to_give(lab: Lab) -> None:
    assert len(lab.quiz) >= 8
    assert sum(bool(question.dump) for question in lab.quiz) >= 2
    assert any(isinstance(question, Number) for question in lab.quiz)


@every_lab
def test_a_dump_stands_in_the_lesson(lab: Lab) -> None:
    shown = {line.strip() for line in lesson_of(lab).splitlines()} | {"", "...", "first:", "second:"}
    whole = " ".join(lesson_of(lab).split())
    for question in lab.quiz:
        for line in question.dump.splitlines():
            assert line.strip() in shown or " ".join(line.split()) in whole, line


def lesson_of(lab: Lab) -> str:
    """The text of a lesson, with its outputs."""
    notebook = nbformat.read(OUTPUTS / f"{lab.name}.ipynb", as_version=4)
    outputs = [output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", [])]
    return "\n".join([*(cell.source for cell in notebook.cells), *outputs])


@every_lab
def test_five_claims_are_asked_and_no_verdict_fits_all(lab: Lab) -> None:
    asked = [claim for claim in lab.claims if claim.asked]
    assert len(asked) == 5
    assert len({claim.verdict for claim in asked}) >= 3


def test_the_places_are_those_of_the_path() -> None:
    index = (labs_folder() / "index.ipynb").read_text(encoding="utf-8")
    path = re.findall(r"\| \[Lab \d+: [^\]]*\]\((\w+)/", index)
    assert path == [lab.name for lab in sorted(LABS, key=lambda lab: lab.file.place)]
    assert sorted(lab.file.place for lab in LABS) == list(range(1, len(LABS) + 1))


@every_lab
def test_a_lab_begins_with_two_questions_of_earlier_labs(lab: Lab) -> None:
    asked = recalled(lab, LABS)
    earlier = {other.name[:2] for other in LABS if other.file.place < lab.file.place}
    assert len(asked) == (2 if earlier else 0)
    assert {question.question[4:6] for question in asked} <= earlier
    assert asked == recalled(lab, LABS[::-1])


def test_no_question_comes_back_in_two_labs() -> None:
    asked = [question.question for lab in LABS for question in recalled(lab, LABS)]
    assert len(set(asked)) == len(asked)


def test_a_number_is_right_in_its_range_and_else_has_a_sentence() -> None:
    number = Number(
        question="How many?",
        least=2,
        most=3,
        near=(Near(4.0, "Then four."),),
        explanation="Two or three.",
        otherwise="Count.",
    )
    assert number.feedback(" 2.5 ") == "Right. Two or three."
    assert number.feedback("4") == "No. Then four. Try another number."
    assert number.feedback("1e3") == "No. Count. Try another number."
    assert number.feedback("two") == number.feedback("nan") == "Type a number."
    assert not number.is_right(None)


@pytest.mark.parametrize(
    ("verdict", "fits"),
    [
        ("confirmed here", "true"),
        ("partly true", "partly"),
        ("refuted here", "false"),
        ("not established", "not established"),
        ("needs a GPU", "not established"),
    ],
)
def test_one_answer_fits_a_claim_and_every_answer_shows_the_run(verdict: str, fits: str) -> None:
    claim = Claim("It is so.", verdict, "`broken` shows it.")  # type: ignore[arg-type]
    for answer in CLAIM_ANSWERS:
        mark = "Right" if answer == fits else "No"
        assert claim.feedback(answer) == f"{mark}. {verdict[0].upper()}{verdict[1:]}. `broken` shows it."
