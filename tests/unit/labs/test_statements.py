"""The statement that decided: asked of every hang that has one, and not to be guessed by its length."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from helpers.labs.asked import Asked
from helpers.labs.practice import all_hangs
from helpers.labs.prediction import practised
from helpers.labs.statements import MOST, deciding
from helpers.model.facts import Report
from helpers.model.wording import place
from helpers.session import report_of

GAIN = 0.1
"""By how much a shortcut may be better than chance."""


@cache
def reports() -> dict[str, Report]:
    recordings = {hang.name: hang.recording() for hang in all_hangs() if hang.level != "slow"}
    return {
        name: report_of(tuple(recording.snapshots()), recording.watched.patience)
        for name, recording in recordings.items()
    }


@cache
def asked() -> dict[str, Asked]:
    found = {name: deciding(report) for name, report in reports().items()}
    return {name: question for name, question in found.items() if question is not None}


def test_it_is_asked_wherever_the_report_names_one_and_no_line_of_the_hang_is_right() -> None:
    named = {
        name: parting.where
        for name, report in reports().items()
        if (parting := report.verdict.parting) is not None and parting.where is not None
    }
    assert asked().keys() == named.keys() and len(named) >= 15
    for name, question in asked().items():
        assert question in practised(reports()[name], lambda _: "")
        [right] = question.right
        assert right.startswith(f"{place(named[name])}: ") and not right.endswith(": ")
        assert 3 <= len(question.choices) <= MOST and len({*question.choices}) == len(question.choices)


def test_each_wrong_choice_is_answered_by_what_speaks_against_it() -> None:
    for question in asked().values():
        [right] = question.right
        for choice in question.choices:
            said = question.feedback([choice])
            assert said == "Right." if choice == right else question.instead[choice] in said
    loops = asked()["07"]
    at = next(choice for choice in loops.choices if "dist.scatter" in choice)
    assert loops.feedback([at]).endswith("Rank 0 is there now, after the ranks parted.")


def test_naming_the_commonest_cause_is_hardly_better_than_chance() -> None:
    questions = [practised(report, lambda _: "")[-1] for report in reports().values()]
    assert all(question.text == "What is the cause?" for question in questions)
    assert all(len(question.choices) == 4 for question in questions)
    offered = Counter(choice for question in questions for choice in question.choices)
    assert {*offered.values()} != {len(questions)} and len(offered) >= 7
    for cause in offered:
        hits = sum(cause in question.right for question in questions)
        assert hits / len(questions) <= 1 / 4 + GAIN, cause


@pytest.mark.parametrize("pick", [min, max])
def test_its_length_does_not_give_it_away(pick: object) -> None:
    questions = [*asked().values()]
    chance = sum(1 / len(question.choices) for question in questions) / len(questions)
    hits = sum(pick(question.choices, key=len) in question.right for question in questions)  # type: ignore[operator]
    assert hits / len(questions) <= chance + GAIN
