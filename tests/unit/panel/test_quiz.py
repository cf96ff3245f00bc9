"""The questions of a quiz and the claims of an article, as widgets and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lab_bench import LabBench
from panel_fakes import click, html_of, visible

from helpers.labs.questions import Choice, Number
from helpers.panel import recall
from helpers.panel.learn import claims as module
from helpers.panel.learn.claims import Claims
from helpers.panel.learn.quiz import Question, Quiz
from helpers.panel.widgets.native import Answer, Choices, Typed

LETTER = Choice(
    question="Which letter?", answers=("a", "b"), right="b", explanation="It is b.", wrong=("Then a.",)
)
COUNT = Number(
    question="How many `ranks`?", least=2, explanation="Two.", otherwise="Count.", dump="\n<a>\n  b\n"
)


@pytest.fixture
def claims(tmp_path: Path) -> Claims:
    return LabBench(tmp_path).panel.claims()


def field_of(question: Question) -> Typed:
    [field] = [widget for widget in visible(question) if isinstance(widget, Typed)]
    return field


def test_nothing_is_counted_before_an_answer_and_the_open_ones_after() -> None:
    quiz = Quiz([LETTER, COUNT])
    assert "right." not in html_of(quiz)
    quiz.questions[0].answer("a")
    assert "<strong>0 of 2 right.</strong> 1 not answered." in html_of(quiz)
    quiz.questions[1].answer("2")
    assert "<strong>1 of 2 right.</strong></p>" in html_of(quiz) and not quiz.passed
    quiz.questions[0].answer("b")
    assert quiz.passed and quiz.answers == ("b", "2")
    quiz.restore(())
    assert quiz.answers == (None, None) and "right." not in html_of(quiz)


def test_a_number_is_typed_in_and_given_by_button_or_key() -> None:
    given: list[bool] = []
    question = Question("How many `ranks`?", (), COUNT.feedback, lambda: given.append(True), COUNT.dump)
    field = field_of(question)
    assert field.label == "How many <code>ranks</code>?"
    click(question, "Answer")
    assert "Type a number first." in html_of(question) and not given
    field.typed = " 3 "
    click(question, "Answer")
    assert "not right</span> Count. Try another number." in html_of(question)
    field._handle_custom_msg({"given": "2"}, [])
    assert question.response == "2" and question.feedback == "Right. Two." and len(given) == 2
    question.restore(None)
    assert field.typed == "" and question.feedback == ""
    [answer] = [widget for widget in visible(question) if isinstance(widget, Answer)]
    field.typed = "3"  # what the browser has saved so far; the click tells the rest
    answer._handle_custom_msg({"given": [{"given": "2"}]}, [])
    assert question.response == "2"


def test_a_dump_keeps_its_lines_in_html_and_text_and_no_markup() -> None:
    [question] = Quiz([COUNT]).questions
    assert '<pre class="sr-dump" tabindex="0">&lt;a&gt;\n  b</pre>' in html_of(question)
    assert repr(question) == "How many `ranks`?\n    <a>\n      b\n  a number: ____"


def test_a_claim_is_judged_and_then_shows_its_run(claims: Claims) -> None:
    [question] = claims.questions
    [choice] = [widget for widget in visible(claims) if isinstance(widget, Choices)]
    assert choice.label == "a is fine" and "Refuted here" not in html_of(claims)
    choice.value = "true"
    click(claims, "Answer")
    assert "not right</span> Refuted here. <code>broken</code>" in html_of(claims)
    assert question.answer("false") == "Right. Refuted here. `broken`"


def test_all_claims_stand_below_in_text_and_folded_in_html(
    claims: Claims, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(module, "display", shown.append)
    claims._ipython_display_()
    assert repr(claims).endswith(
        "table of all claims.\n1. a is fine\nEach is one of: true, partly, false, not established."
    )
    [table] = shown
    bundle = table._repr_mimebundle_()
    assert "a is fine" in bundle["text/plain"] and "confirmed here" in bundle["text/plain"]
    assert bundle["text/html"].startswith("<details><summary>All 2 claims</summary>")
    assert "<td" in bundle["text/html"] and bundle["text/html"].endswith("</table></details>")


def test_a_lab_begins_with_questions_that_are_the_same_every_time() -> None:
    assert repr(recall("02")) == repr(recall("02_fsdp_saving"))
    assert repr(recall("02")).startswith("1. Lab 05: ")
    assert recall("05").questions == ()
