"""The panel of a lab: buttons and cells, knobs, questions, results."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from lab_bench import LabBench
from panel_fakes import DEADLINE, buttons, click, control, html_of, visible, wait_for_threads

from helpers.labs.declaration import MINE
from helpers.labs.lab import Lab, LabError, all_labs
from helpers.panel.lab_panel import LabPanel
from helpers.panel.widgets import controls


@pytest.fixture
def bench(tmp_path: Path) -> LabBench:
    return LabBench(tmp_path)


def test_lab_panel_has_a_stable_text_and_a_live_view(bench: LabBench) -> None:
    text = "Lab 07 Two letters: Run broken, Run fixed, Stop, Reset; settings few=one, many=1"
    assert repr(bench.panel) == text
    bundle = bench.panel._repr_mimebundle_()
    assert bundle["text/plain"] == text
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_a_cell_shows_the_view_and_a_sentence_for_when_its_kernel_has_ended(
    bench: LabBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[dict[str, str]] = []
    monkeypatch.setattr(controls, "display", lambda bundle, raw: shown.append(bundle))
    bench.panel._ipython_display_()
    view, sentence = shown
    assert view["text/plain"] == repr(bench.panel)
    assert sentence["text/plain"] == controls.ENDED and controls.ENDED in sentence["text/html"]
    assert ":has(.sr-ended)" in html_of(bench.panel), "the live view hides the sentence"


def test_every_knob_says_which_value_is_chosen(bench: LabBench) -> None:
    few, many = control(bench.panel, "A few"), control(bench.panel, "Many")
    assert (few.texts, few.chosen, few.value) == (["one", "two"], [0], "one")
    assert (many.label, many.value) == ("1", "1")


def test_a_click_runs_with_what_the_controls_say(bench: LabBench) -> None:
    few, many = control(bench.panel, "A few"), control(bench.panel, "Many")
    few.value, many.value = "two", "5"
    click(bench.panel, "Run broken")
    assert bench.session_made.wait(DEADLINE)
    assert bench.made == [("broken", {"few": "two", "many": "5"})]
    assert bench.sessions[0].started.wait(DEADLINE)
    click(bench.panel, "Stop")
    wait_for_threads("panel run")
    assert bench.panel.status == "stopped; no process is left behind"


def test_a_cell_s_knobs_are_shown_in_the_controls(bench: LabBench) -> None:
    result = bench.finish(lambda: bench.panel.run("fixed", many="3"))
    assert bench.made == [("fixed", {"few": "one", "many": "3"})]
    assert repr(bench.panel).endswith("settings few=one, many=3")
    assert (result.outcome, result.cause) == ("ok", "none")
    assert repr(result).startswith("outcome: ok")


@pytest.mark.parametrize(
    ("program", "knobs", "said"),
    [("brokn", {}, "brokn"), ("broken", {"fwe": "one"}, "fwe"), ("broken", {"few": "six"}, "six")],
)
def test_what_a_lab_has_not_is_said(
    bench: LabBench, program: str, knobs: dict[str, str], said: str
) -> None:
    with pytest.raises(LabError, match=said):
        asyncio.run(bench.panel.run(program, **knobs))
    assert bench.made == []
    assert bench.panel.status == "Ready."


def test_nothing_of_the_results_is_left(bench: LabBench) -> None:
    bench.finish(lambda: bench.panel.run("fixed"))
    wait_for_threads("panel run")
    assert not bench.folders[0].exists()


def test_the_prediction_is_scored_when_the_broken_program_has_run(bench: LabBench) -> None:
    assert "Run broken" in bench.panel.predict.answer("rank 0")
    bench.finish(lambda: bench.panel.run("fixed"))
    assert "Run broken" in bench.panel.predict.feedback
    bench.finish(lambda: bench.panel.run("broken"))
    assert "Run broken" in bench.panel.predict.feedback
    bench.reveal()
    assert bench.panel.predict.feedback == "No: rank 1. It is `rank 1`."
    assert "No: rank 1. It is <code>rank 1</code>." in html_of(bench.panel.predict)
    assert bench.panel.predict.answer("rank 1") == "Right. It is `rank 1`."
    bench.panel.reset()
    assert bench.panel.predict.feedback == ""


def test_a_run_that_shows_no_answer_scores_nothing(bench: LabBench) -> None:
    bench.culprits = (0, 1)
    bench.panel.predict.answer("rank 0")
    bench.finish(lambda: bench.panel.run("broken"))
    bench.reveal()
    assert bench.panel.predict.feedback.startswith("This run shows none of the answers")


def test_questions_have_a_stable_text(bench: LabBench) -> None:
    assert repr(bench.panel.predict) == "Which rank fails?\n  ( ) rank 0\n  ( ) rank 1"
    assert repr(bench.panel.quiz) == "1. Which letter?\n  ( ) a\n  ( ) b"
    click(bench.panel.quiz, "Answer")
    assert "Choose an answer first." in html_of(bench.panel.quiz)
    [question] = bench.panel.quiz.questions
    assert question.answer("a") == "No. It is the first, and it is broken. Try another answer."
    assert question.answer("b") == "Right. a is broken."


def test_check_judges_by_what_the_ranks_have_left(bench: LabBench) -> None:
    bench.ranks_write = '{"rank": RANK, "world_size": 2, "loss": RANK}'
    judgement = bench.finish(lambda: bench.panel.check())
    assert bench.made[0][0] == "mine"
    assert "no  `loss`: the same value on all ranks" in repr(judgement)
    assert not bench.folders[0].exists()


def test_check_takes_a_path(bench: LabBench) -> None:
    path = bench.lab.folder / "fixed.py"
    bench.finish(lambda: bench.panel.check(str(path)))
    assert bench.made[0][0] == str(path)
    with pytest.raises(LabError, match="no such file"):
        asyncio.run(bench.panel.check("nowhere.py"))


def test_the_copy_is_made_once(bench: LabBench) -> None:
    copy = bench.panel.your_copy()
    assert copy.read_text() == "print('a')\n"
    copy.write_text("mine")
    assert bench.panel.your_copy().read_text() == "mine"


def test_hints_and_errors_wait_for_the_run_and_for_the_answers(bench: LabBench) -> None:
    assert "after the first run" in repr(bench.panel.hints()) == bench.panel.hints()._repr_html_()
    broken = bench.finish(lambda: bench.panel.run("broken"))
    assert repr(bench.panel.hints()).startswith("2 hints")
    assert (broken.first, broken.masked) == ("held back", ("held back",))
    bench.reveal()
    assert (broken.first, broken.masked) == ("a tensor is lost", ("RuntimeError: gone (rank 0)",))
    bench.panel.reset()
    assert "after the first run" in repr(bench.panel.hints())


def test_the_texts_of_a_lab(bench: LabBench) -> None:
    broken = bench.finish(lambda: bench.panel.run("broken"))
    fixed = bench.finish(lambda: bench.panel.run("fixed"))
    assert "broken" in repr(bench.panel.compare(broken, fixed)).splitlines()[0]
    assert "-print('a')" in repr(bench.panel.diff())
    hints = bench.panel.hints()
    assert repr(hints).startswith("2 hints")
    assert hints._repr_html_().count("<details>") == 2


def test_the_buttons_follow_the_learner(bench: LabBench) -> None:
    assert buttons(bench.panel) == {"Run broken", "Stop", "Reset"}
    bench.press("Run broken")
    asked = {"Answer", "Reveal the odd one out and the cause"}
    assert buttons(bench.panel) == {"Run broken", "Stop", "Reset", *asked}
    bench.reveal()
    turn = {"Make my copy", "Check my copy"}
    assert buttons(bench.panel) == {"Run broken", "Stop", "Reset", "Reveal what to do", *turn}
    bench.ranks_write = '{"rank": RANK, "world_size": 2, "loss": 0.5}'
    click(bench.panel, "Make my copy")
    turn |= {"Start over"}
    bench.press("Check my copy")
    files = {"Web page", "Recording"}
    assert buttons(bench.panel) == {"Run broken", "Run fixed", "Stop", "Reset", *turn, *files}
    bench.panel.reset()
    assert buttons(bench.panel) == {"Run broken", "Stop", "Reset"}


def test_a_program_that_a_cell_has_run_has_its_button(bench: LabBench) -> None:
    bench.finish(lambda: bench.panel.run("fixed"))
    assert "Run fixed" in buttons(bench.panel)
    bench.finish(lambda: bench.panel.check())
    assert "Check my copy" in buttons(bench.panel)


def test_all_buttons_are_there_for_who_asks_for_everything_at_once(bench: LabBench) -> None:
    control(bench.panel, "Show everything at once, without asking me").value = True
    assert {"Run fixed", "Check my copy"} <= buttons(bench.panel)


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_a_lab_begins_with_the_program_that_it_is_about(lab: Lab) -> None:
    panel = LabPanel(lab)
    first = lab.file.turns[MINE].copy_of
    assert buttons(panel) == {f"Run {first}", "Stop", "Reset"}
    controls = panel._knobs.controls
    assert {knob for knob in controls if controls[knob] in visible(panel)} == set(
        lab.file.applying(first)
    )
    can_run = {f"Run {name}" for name in lab.file.programs if not lab.lacking(name)}
    assert can_run <= buttons(LabPanel(lab, free=True))


def test_the_big_screen_enlarges_the_panel(bench: LabBench) -> None:
    switch = control(bench.panel, "Big screen")
    switch.value = True
    assert "sr-big" in bench.panel._dom_classes
    switch.value = False
    assert "sr-big" not in bench.panel._dom_classes
