"""What a lab asks of a learner: a prediction, a repaired copy, a quiz; and where the learner stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ipywidgets import Output
from lab_bench import LabBench
from panel_fakes import (
    DEADLINE,
    buttons,
    click,
    control,
    html_of,
    visible,
    wait_for_threads,
)

from helpers.labs import progress
from helpers.labs.progress import Progress
from helpers.panel.learn import course
from helpers.panel.learn.course import Course
from helpers.panel.waiting import in_jupyter
from helpers.panel.widgets.native import Answer, Choices

GOOD = '{"rank": RANK, "world_size": 2, "loss": 0.5}'
NAME = "07_two_letters"
AT_ONCE = "Show everything at once, without asking me"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state" / "stuck-ranks"
    monkeypatch.setenv("STUCK_RANKS_STATE", str(folder))
    return folder


@pytest.fixture
def bench(tmp_path: Path) -> LabBench:
    return LabBench(tmp_path)


def test_a_click_holds_the_verdict_back_until_it_is_predicted(bench: LabBench) -> None:
    bench.press("Run broken")
    assert "Rank 1 fails." not in bench.shown and "What is yours?" in bench.shown
    assert 'run broken</span><span class="sr-hidden">: still open' in bench.shown

    click(bench.panel, "Answer")
    assert "Answer every question first" in bench.shown and "Rank 1 fails." not in bench.shown

    bench.choose("rank 0")
    click(bench.panel, "Answer")
    assert "0 of 1 right" in bench.shown and "No: rank 1." in bench.shown
    assert "It is <code>rank 1</code>." in bench.shown and "Rank 1 fails." in bench.shown
    assert bench.done == ["predict", "run broken"]


def test_questions_and_answers_show_code_and_no_markup_of_the_job() -> None:
    choices = Choices("Is it `a`?", ["yes, `b`", "<i>no</i>"])
    assert choices.label == "Is it <code>a</code>?"
    assert choices.texts == ["yes, <code>b</code>", "&lt;i&gt;no&lt;/i&gt;"]
    choices.value = "<i>no</i>"
    assert (choices.chosen, choices.selection) == ([1], ("<i>no</i>",))


def test_a_choice_counts_that_reaches_the_kernel_only_as_a_message_before_the_click() -> None:
    choices = Choices("Which?", ["first", "second", "third"])
    choices.chosen = [0]  # the browser sends the next change when the kernel has answered this one
    choices._handle_custom_msg({"chosen": [1]}, [])
    assert choices.selection == ("second",)
    choices.chosen = [1]
    choices.value = "third"
    assert choices.selection == ("third",)


def test_what_was_chosen_comes_with_the_click_and_counts_whatever_came_before_it() -> None:
    first, second = Choices("Which?", ["a", "b"]), Choices("Which of these?", ["c", "d"], several=True)
    first.chosen = [0]
    given: list[tuple[str, ...]] = []
    answer = Answer([first, second], lambda: given.extend([first.selection, second.selection]), "")
    answer._handle_custom_msg({"given": [{"chosen": [1]}, {"chosen": [0, 1]}]}, [])
    assert given == [("b",), ("c", "d")]


def test_several_ranks_can_be_named(bench: LabBench) -> None:
    bench.culprits = (0, 1)
    bench.press("Run broken")
    bench.choose("rank 0")
    bench.choose("rank 1")
    click(bench.panel, "Answer")
    assert "1 of 1 right" in bench.shown


def test_a_verdict_can_be_had_without_an_answer(bench: LabBench) -> None:
    bench.press("Run broken")
    bench.reveal()
    assert "Rank 1 fails." in bench.shown and "What is yours?" not in bench.shown
    assert bench.done == ["run broken"]


def test_the_questions_can_be_switched_off_before_and_while_they_stand(bench: LabBench) -> None:
    bench.press("Run broken")
    control(bench.panel, AT_ONCE).value = True
    assert "Rank 1 fails." in bench.shown and "What is yours?" not in bench.shown
    bench.press("Run broken")
    assert "Rank 1 fails." in bench.shown and "What is yours?" not in bench.shown
    control(bench.panel, AT_ONCE).value = False
    bench.press("Run broken")
    assert "What is yours?" in bench.shown


def test_switching_off_in_the_middle_of_a_run_shows_what_is_known(bench: LabBench) -> None:
    click(bench.panel, "Run broken")
    assert bench.session_made.wait(DEADLINE) and bench.sessions[0].started.wait(DEADLINE)
    bench.sessions[0].sample(suspicion="rank 1 is suspect")
    assert "suspect" not in bench.shown
    control(bench.panel, AT_ONCE).value = True
    assert "suspect" in bench.shown
    bench.sessions[0].end()
    wait_for_threads("panel run")
    assert "Rank 1 fails." in bench.shown


def test_a_cell_waits_for_no_answer_and_shows_no_more_than_the_panel(bench: LabBench) -> None:
    result = bench.finish(lambda: bench.panel.run("broken"))
    assert "Rank 1 fails." not in bench.shown and "What is yours?" in bench.shown
    assert "culprits" not in repr(result) and "3 things are held back" in repr(result)
    bench.reveal()
    assert "culprits: 1" in repr(result) and "1 thing is held back: what to do." in repr(result)


def test_nothing_is_asked_on_a_program_that_works_or_a_run_that_was_stopped(bench: LabBench) -> None:
    bench.finish(lambda: bench.panel.run("fixed"))
    assert "All is well." in bench.shown
    bench.press("Run broken", stop=True)
    assert "What is yours?" not in bench.shown and "verdict is ready" not in bench.shown
    assert "Rank 1 fails." in bench.shown


def test_the_cell_s_prediction_is_not_scored_before_the_verdict_is_shown(bench: LabBench) -> None:
    bench.panel.predict.answer("rank 1")
    bench.press("Run broken")
    assert bench.panel.predict.feedback.startswith("Noted.")
    bench.reveal()
    assert bench.panel.predict.feedback.startswith("Right.")


@pytest.mark.parametrize(("answer", "score"), [("rank 0", 0), ("rank 1", 1)])
def test_a_prediction_in_the_notebook_counts_when_a_run_has_shown_whether_it_is_right(
    tmp_path: Path, answer: str, score: int
) -> None:
    bench = LabBench(tmp_path, keep=True)
    bench.panel.predict.answer(answer)
    assert bench.done == []
    bench.finish(lambda: bench.panel.run("broken"))
    assert bench.done == []
    bench.reveal()
    assert (bench.done, kept().score) == (["predict", "run broken"], score)


def test_an_answer_after_the_run_is_no_prediction(tmp_path: Path) -> None:
    bench = LabBench(tmp_path, keep=True)
    bench.finish(lambda: bench.panel.run("broken"))
    bench.reveal()
    bench.panel.predict.answer("rank 1")
    assert (kept().done, kept().score) == (("predicted", "broken"), None)


def test_an_answer_given_before_the_run_is_chosen_in_the_form(bench: LabBench) -> None:
    bench.panel.predict.answer("rank 0")
    bench.press("Run broken")
    assert control(bench.panel, "Which rank fails?").selection == ("rank 0",)
    click(bench.panel, "Answer")
    assert "0 of 1 right" in bench.shown


def test_the_score_of_a_prediction_is_kept(tmp_path: Path) -> None:
    bench = LabBench(tmp_path, keep=True)
    for answer, score in (("rank 0", 0), ("rank 1", 1)):
        bench.press("Run broken")
        bench.choose(answer)
        click(bench.panel, "Answer")
        assert (kept().done, kept().score) == (("predicted", "broken"), score)
        bench.panel._lesson.gate.restore((), ())


def test_a_new_run_drops_a_question_that_was_not_answered(bench: LabBench) -> None:
    bench.press("Run broken")
    bench.finish(lambda: bench.panel.run("fixed"))
    assert "What is yours?" not in bench.shown and "All is well." in bench.shown


def test_files_that_name_the_verdict_are_held_back_with_it(bench: LabBench) -> None:
    bench.press("Run broken")
    assert "Recording" not in buttons(bench.panel)
    bench.reveal()
    click(bench.panel, "Reveal what to do")
    assert "Recording" in buttons(bench.panel)


def test_the_change_and_both_runs_are_shown_once_the_fixed_program_has_run(bench: LabBench) -> None:
    bench.press("Run broken")
    bench.reveal()
    click(bench.panel, "Reveal what to do")
    assert "What changes" not in bench.shown
    bench.press("Run fixed")
    assert bench.shown.count("<svg") == 3 and "broken: ERROR" in bench.shown
    assert "What changes from broken to fixed" in bench.shown
    bench.panel.reset()
    assert "What changes" not in bench.shown and "<svg" not in bench.shown


def test_a_run_that_is_held_back_is_not_in_the_comparison(bench: LabBench) -> None:
    bench.finish(lambda: bench.panel.run("fixed"))
    bench.press("Run broken")
    assert "broken: ERROR" not in bench.shown
    bench.reveal()
    click(bench.panel, "Reveal what to do")
    assert "broken: ERROR" in bench.shown


def test_a_copy_is_made_opened_checked_and_passed(bench: LabBench) -> None:
    bench.come_to_your_turn()
    assert not links(bench)
    click(bench.panel, "Make my copy")
    assert bench.lab.copy().read_text() == "print('a')\n"
    assert "Edit it, save it" in bench.shown
    [link] = links(bench)
    assert 'your_turn.py">your_turn.py</a>' in link

    bench.press("Check my copy")
    assert bench.made[-1][0] == "mine" and "not yet:" in bench.shown
    assert "✗</span> not yet</span></td>" in bench.shown
    assert "What is yours?" not in bench.shown

    bench.ranks_write = GOOD
    bench.press("Check my copy")
    assert "passed: 7 checks" in bench.shown and "not yet" not in bench.shown
    assert bench.done == ["run broken", "your turn"]


def test_a_copy_is_judged_before_its_results_are_removed(bench: LabBench) -> None:
    """A session is over before it tells so: the run's thread wakes first."""
    bench.come_to_your_turn()
    bench.ranks_write = GOOD
    bench.session_made.clear()
    click(bench.panel, "Check my copy")
    assert bench.session_made.wait(DEADLINE) and bench.sessions[-1].started.wait(DEADLINE)
    bench.sessions[-1].over.set()
    wait_for_threads("panel run")
    assert not bench.folders[-1].exists()
    assert "passed: 7 checks" in bench.shown


def test_while_a_copy_is_checked_the_panel_shows_no_old_judgement(bench: LabBench) -> None:
    bench.come_to_your_turn()
    bench.press("Check my copy")
    assert "not yet:" in bench.shown
    bench.session_made.clear()
    click(bench.panel, "Check my copy")
    assert bench.session_made.wait(DEADLINE) and bench.sessions[-1].started.wait(DEADLINE)
    assert "not yet:" not in bench.shown and "✗" not in bench.shown
    assert "It is judged when all its processes have ended." in bench.shown
    bench.sessions[-1].end()
    wait_for_threads("panel run")
    assert "not yet:" in bench.shown and "It is judged when" not in bench.shown


def test_a_check_that_is_stopped_judges_nothing(bench: LabBench) -> None:
    bench.come_to_your_turn()
    bench.press("Check my copy", stop=True)
    assert "nothing is judged" in bench.shown and "not yet" not in bench.shown


def test_a_copy_is_never_lost(bench: LabBench) -> None:
    bench.come_to_your_turn()
    click(bench.panel, "Make my copy")
    bench.lab.copy().write_text("mine")
    click(bench.panel, "Make my copy")
    assert "was there already" in bench.shown and bench.lab.copy().read_text() == "mine"

    click(bench.panel, "Start over")
    assert "kept beside it" in bench.shown and bench.lab.copy().read_text() == "mine"
    click(bench.panel, "No, keep mine")
    assert "stays as it is" in bench.shown and bench.lab.copy().read_text() == "mine"

    click(bench.panel, "Start over")
    click(bench.panel, "Yes, start over")
    assert "your_turn.1.py" in bench.shown
    assert bench.lab.copy().read_text() == "print('a')\n"
    assert bench.lab.copy().with_suffix(".1.py").read_text() == "mine"


def test_a_copy_that_cannot_be_made_is_one_sentence(
    bench: LabBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.come_to_your_turn()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("helpers.labs.lab.shutil.copyfile", full)
    click(bench.panel, "Make my copy")
    assert "cannot be made: No space left on device." in bench.shown


def test_the_quiz_counts_what_is_right_and_explains_what_is_not(bench: LabBench) -> None:
    quiz = bench.panel.quiz
    assert "of 1 right." not in html_of(quiz) and not quiz.passed
    [question] = quiz.questions
    question.answer("a")
    shown = html_of(quiz)
    assert "not right</span> It is the first, and it is broken. Try another answer." in shown
    assert "0 of 1 right." in shown
    question.answer("b")
    assert "right</span> a is broken." in html_of(quiz) and "1 of 1 right." in html_of(quiz)
    assert bench.done == ["quiz"]


def test_reset_forgets_everything_but_the_copy(bench: LabBench) -> None:
    bench.come_to_your_turn()
    click(bench.panel, "Make my copy")
    bench.panel.quiz.questions[0].answer("b")
    bench.panel.predict.answer("rank 1")
    bench.press("Run broken")
    click(bench.panel, "Reset")
    assert bench.done == []
    assert bench.panel.quiz.answers == (None,) and bench.panel.predict.feedback == ""
    assert "What is yours?" not in bench.shown and "Rank 1 fails." not in bench.shown
    assert bench.lab.copy().exists()
    bench.press("Run broken")
    assert "What is yours?" in bench.shown


def test_nothing_is_kept_where_nobody_reads_the_notebook(bench: LabBench, state: Path) -> None:
    bench.finish(lambda: bench.panel.run("broken"))
    bench.panel.quiz.questions[0].answer("b")
    bench.panel.reset()
    assert not state.parent.exists()


@pytest.mark.parametrize("inside", [True, False])
def test_a_notebook_in_jupyter_is_told_from_a_test_of_it(
    inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if inside:
        monkeypatch.setenv("JPY_SESSION_NAME", "/labs/05.ipynb")
    assert in_jupyter() is inside


def test_where_a_learner_stands_is_asked_about_before_it_is_taken_up(tmp_path: Path) -> None:
    first = LabBench(tmp_path, keep=True)
    assert "Go on" not in buttons(first.panel)
    first.finish(lambda: first.panel.run("broken"))
    first.reveal()
    first.panel.quiz.questions[0].answer("a")

    second = LabBench(tmp_path, keep=True)
    assert "You were at <strong>predict, 1 of 6 steps done</strong>" in second.shown
    assert second.done == []
    second.finish(lambda: second.panel.run("fixed"))
    assert (kept().done, kept().answers) == (("broken",), ("a",)), "not asked yet"

    click(second.panel, "Go on")
    assert second.done == ["run broken", "run fixed"]
    assert (kept().done, kept().answers) == (("broken", "fixed"), ("a",))
    assert len(kept().revealed) == 2
    assert second.panel.quiz.answers == ("a",) and "Go on" not in buttons(second.panel)


def test_starting_over_forgets_what_was_kept(tmp_path: Path) -> None:
    LabBench(tmp_path, keep=True).panel.quiz.questions[0].answer("b")

    second = LabBench(tmp_path, keep=True)
    [course] = [found for found in visible(second.panel) if isinstance(found, Course)]
    click(course, "Start over")
    assert progress.load(NAME) is None and "You were at" not in second.shown
    second.panel.quiz.questions[0].answer("a")
    assert progress.load(NAME) == Progress(NAME, answers=("a",))


def test_reset_clears_the_file(tmp_path: Path, state: Path) -> None:
    bench = LabBench(tmp_path, keep=True)
    bench.panel.quiz.questions[0].answer("b")
    assert list(state.iterdir())
    bench.panel.reset()
    assert not list(state.iterdir())


def test_a_damaged_file_is_set_aside_with_one_sentence(tmp_path: Path, state: Path) -> None:
    state.mkdir(parents=True)
    (state / f"{NAME}.json").write_text("{half")
    bench = LabBench(tmp_path, keep=True)
    assert "is damaged or of another version; it is kept as" in bench.shown
    assert "Go on" not in buttons(bench.panel)
    bench.panel.quiz.questions[0].answer("b")
    assert (state / f"{NAME}.damaged-1.json").read_text() == "{half"
    assert json.loads((state / f"{NAME}.json").read_text())["answers"] == ["b"]


def test_a_file_that_cannot_be_set_aside_is_left_alone(
    tmp_path: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.mkdir(parents=True)
    (state / f"{NAME}.json").write_text("{half")

    def refuse(_: str) -> Path:
        raise progress.ProgressError("no")

    monkeypatch.setattr(course.progress, "set_aside", refuse)
    bench = LabBench(tmp_path, keep=True)
    assert "nothing is kept this time." in bench.shown
    bench.panel.quiz.questions[0].answer("b")
    assert (state / f"{NAME}.json").read_text() == "{half"


def test_progress_that_cannot_be_kept_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    bench = LabBench(tmp_path, keep=True)
    monkeypatch.setattr(course.progress.os, "replace", full)
    bench.panel.quiz.questions[0].answer("b")
    assert "No space left on device." in bench.shown
    assert bench.panel.quiz.passed


def kept() -> Progress:
    found = progress.load(NAME)
    assert found is not None
    return found


def links(bench: LabBench) -> list[str]:
    found = [widget for widget in visible(bench.panel) if isinstance(widget, Output)]
    return [output["data"]["text/html"] for widget in found for output in widget.outputs]
