"""The form for what was found in a terminal: field by field, counted where it is revealed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lab_bench import LabBench
from panel_fakes import click, html_of, visible

from helpers.panel.learn.by_hand import ByHandForm
from helpers.panel.widgets.native import Answer, Typed

ANSWER = "rank 1, <code>print</code>, <code>broken.py:1</code>."


@pytest.fixture
def bench(tmp_path: Path) -> LabBench:
    return LabBench(tmp_path)


@pytest.fixture
def form(bench: LabBench) -> ByHandForm:
    return bench.panel.by_hand


def fields(form: ByHandForm) -> list[Typed]:
    return [widget for widget in visible(form) if isinstance(widget, Typed)]


def test_the_form_says_how_to_start_the_program_and_its_text_names_no_place(
    bench: LabBench, form: ByHandForm
) -> None:
    lines = html_of(form)
    assert f"cd {bench.lab.folder}" in lines and str(Path(sys.executable).parent) in lines
    assert "python broken.py --few one --many 1" in lines and "Who is odd?" in lines
    assert repr(form).splitlines() == [
        "    python broken.py --few one --many 1",
        "Who is odd?",
        "  rank: ____   call: ____   line: ____",
    ]


def test_a_wrong_answer_tells_which_fields_are_right_and_nothing_more(
    bench: LabBench, form: ByHandForm
) -> None:
    [rank, call, line] = fields(form)
    rank.typed, call.typed = "1", "sleep"
    click(form, "Answer")
    assert "Right: rank. Not yet: call. Empty: line." in html_of(form)
    assert ANSWER not in html_of(form) and "by hand" not in bench.done
    [answer] = [widget for widget in visible(form) if isinstance(widget, Answer)]
    answer._handle_custom_msg({"given": [{"given": "1"}, {"given": "print"}, {"given": "1"}]}, [])
    assert "It prints." in html_of(form) and line.typed == "1"
    assert bench.done == ["by hand"]


def test_the_enter_key_answers(bench: LabBench, form: ByHandForm) -> None:
    assert form.answer(0, "print", 1) == "Right: call and line. Not yet: rank."
    fields(form)[0]._handle_custom_msg({"given": "1"}, [])
    assert bench.done == ["by hand"]


def test_a_reveal_is_counted_once_and_does_nothing_else(bench: LabBench, form: ByHandForm) -> None:
    click(form, "Reveal")
    click(form, "Reveal")
    assert ANSWER in html_of(form)
    assert "revealed: 1" in bench.shown and bench.done == []
    bench.panel.reset()
    assert ANSWER not in html_of(form) and "revealed: 1" not in bench.shown


def test_a_run_beside_it_leaves_what_was_said(bench: LabBench, form: ByHandForm) -> None:
    form.answer(1, "sleep", 1)
    bench.press("Run broken")
    assert "Not yet: call." in html_of(form)
    bench.panel.reset()
    assert "Not yet" not in html_of(form) and [field.typed for field in fields(form)] == ["", "", ""]


def test_what_was_found_is_shown_again_when_a_lab_is_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUCK_RANKS_STATE", str(tmp_path / "state"))
    LabBench(tmp_path, keep=True).panel.by_hand.answer(1, "print", 1)
    second = LabBench(tmp_path, keep=True)
    assert ANSWER not in html_of(second.panel.by_hand)
    click(second.panel, "Go on")
    assert ANSWER in html_of(second.panel.by_hand) and second.done == ["by hand"]
