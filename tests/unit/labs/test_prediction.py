"""What a learner is asked before the verdict is shown, and how the report scores the answers."""

from __future__ import annotations

import pytest
from histories import ended, in_collective, raised, snapshot, steady
from msgspec import structs
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.labs.asked import Asked
from helpers.labs.declaration import Answer, Predict
from helpers.labs.prediction import NOBODY, questions
from helpers.model.facts import Report, Snapshot, Verdict
from helpers.model.frames import Frame

PREDICT = Predict(
    "Which cause?", "cause", (Answer("a port", "address-in-use"), Answer("a hang", "x")), "So."
)

ODD = snapshot(
    in_collective(0, "all_reduce", at="train.py:10 step"),
    in_collective(1, "barrier", at="train.py:41 validate"),
    in_collective(2, "all_reduce", at="train.py:10 step"),
)
"""Rank 1 validates while the others train."""

BOTH = snapshot(
    in_collective(0, "all_reduce", at="train.py:10 step"),
    in_collective(1, "barrier", at="train.py:41 validate"),
)

FAILED = snapshot(
    raised(0, "RuntimeError", "Connection closed by peer", "train.py:10 step", time=12.0),
    raised(1, "ValueError", "no such file", "prep.py:3 load", time=10.0),
    code=1,
)


def asked(newest: Snapshot, predict: Predict = PREDICT, **verdict: object) -> dict[str, Asked]:
    """The questions on a job that stands as it is now, by the first words of their text."""
    found = replace(diagnose(steady(newest), final=True), **verdict)
    return {
        " ".join(one.text.split()[:2]): one
        for one in questions(Report(found, newest), predict, lambda where: f"line {where.line}")
    }


def test_a_hang_asks_for_the_rank_the_call_and_the_line() -> None:
    found = asked(ODD)

    assert list(found) == ["Which rank", "What does", "Which line"]
    rank, call, line = found.values()
    assert rank.choices == ("rank 0", "rank 1", "rank 2", NOBODY) and rank.right == {"rank 1"}
    assert call.right == {"in barrier #1"}
    assert call.choices == tuple(sorted(call.choices)) and len(call.choices) == 2
    assert line.choices == ("train.py:10: line 10", "train.py:41: line 41")
    assert line.right == {"train.py:41: line 41"}
    assert rank.feedback(["rank 0"]).endswith("Rank 0 is in all_reduce #1 at train.py:10, like rank 2.")
    assert call.feedback([call.choices[0]]).endswith("There you find ranks 0 and 2.")
    assert rank.several and not call.several and not line.several
    assert rank.why.startswith("Rank 1 is blocked in barrier #1") and "barrier" in call.why


def test_where_all_disagree_every_call_would_be_right_so_none_is_asked() -> None:
    found = asked(BOTH)

    assert list(found) == ["Which rank"]
    assert found["Which rank"].right == {"rank 0", "rank 1"}


def test_an_error_asks_which_of_them_came_first() -> None:
    found = asked(FAILED)

    assert list(found) == ["Which rank", "Which error", "Which line"]
    assert found["Which error"].choices == ("RuntimeError", "ValueError")
    assert found["Which error"].right == {"ValueError"}
    assert found["Which line"].right == {"prep.py:3: line 3"}


def test_the_lab_s_own_question_comes_first_where_the_report_answers_it() -> None:
    own = structs.replace(
        PREDICT, field="culprits", answers=(Answer("the second", [1]), Answer("nobody", []))
    )

    assert list(asked(ODD, own)) == ["Which cause?", "What does", "Which line"]
    assert asked(ODD, own)["Which cause?"].right == {"the second"}
    assert "Which cause?" not in asked(ODD, structs.replace(own, answers=(Answer("nobody", []),)))


def test_a_report_without_a_culprit_blames_no_rank() -> None:
    found = asked(FAILED, culprits=())

    assert found["Which rank"].right == {NOBODY}


def test_the_line_of_a_rank_that_has_ended_is_not_asked_for() -> None:
    waiting = [in_collective(rank, "all_reduce", at=f"train.py:1{rank} step") for rank in (0, 2)]
    known = {"culprits": (1,), "where": Frame("train.py", 10, "step")}
    questions_asked = asked(snapshot(waiting[0], ended(1), waiting[1]), **known)
    assert "What does" in questions_asked and "Which line" not in questions_asked


def test_a_line_that_nobody_stands_at_any_more_can_be_chosen() -> None:
    found = asked(ODD, where=Frame("other.py", 7, "main"))

    assert "other.py:7: line 7" in found["Which line"].choices


def test_a_run_without_ranks_asks_nothing() -> None:
    verdict = Verdict("error", "unknown")

    assert questions(Report(verdict, snapshot(code=1)), PREDICT, lambda _: "") == ()


@pytest.mark.parametrize(
    ("given", "right", "said"),
    [
        (["rank 0", "rank 1"], True, "Right."),
        (["rank 0"], False, "Partly: rank 0 and rank 1."),
        (["rank 0", "rank 1", "rank 2"], False, "Partly: rank 0 and rank 1."),
        (["rank 2"], False, "No: rank 0 and rank 1."),
        ([], False, "No: rank 0 and rank 1."),
    ],
)
def test_of_several_all_have_to_be_named(given: list[str], right: bool, said: str) -> None:
    ranks = ("rank 0", "rank 1", "rank 2")
    one = Asked("Which?", ranks, frozenset(ranks[:2]), "", several=True)

    assert (one.is_right(given), one.feedback(given)) == (right, said)


@pytest.mark.parametrize(
    ("given", "right", "said"),
    [
        (["a"], True, "Right."),
        (["b"], True, "Right."),
        (["c"], False, "No: a or b."),
        ([], False, "No: a or b."),
    ],
)
def test_of_one_any_right_choice_will_do(given: list[str], right: bool, said: str) -> None:
    one = Asked("Which?", ("a", "b", "c"), frozenset("ab"), "")

    assert (one.is_right(given), one.feedback(given)) == (right, said)
