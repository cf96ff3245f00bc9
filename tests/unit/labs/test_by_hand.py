"""What is typed in after a search by hand is judged field by field, and never told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from example_lab import changed, example, write_programs

from helpers.labs.by_hand import ByHand
from helpers.labs.lab import Lab, all_labs
from helpers.labs.toml_file import TomlError

FOUND = ByHand(
    program="broken",
    question="Who?",
    rank=1,
    calls=("barrier", "Model"),
    lines=("broken.py:8", "model.py:26"),
    explanation="So it is.",
)
NOBODY = ByHand(program="broken", question="Who?", calls=("w",), lines=("a.py:1",), explanation="All.")


def given(rank: str = "1", call: str = "barrier", line: str = "8") -> dict[str, str]:
    return {"rank": rank, "call": call, "line": line}


@pytest.mark.parametrize(
    "call", ["barrier", "Fabric.barrier()", "`dist.barrier`", "model.__init__", "Model(x)"]
)
@pytest.mark.parametrize(
    "line", ["8", "broken.py:8", "line 8", "lab/broken.py:8", "broken.py, line 8", "model.py:26"]
)
@pytest.mark.parametrize("rank", ["1", "rank 1"])
def test_what_says_the_same_in_other_words_is_right(rank: str, call: str, line: str) -> None:
    assert FOUND.feedback(given(rank, call, line)) == "Right. So it is."


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (given(line="9"), "Right: rank and call. Not yet: line."),
        (given(line="model.py:8"), "Right: rank and call. Not yet: line."),
        (given(line="eight"), "Right: rank and call. Not yet: line."),
        (given(rank="0", call="all_reduce"), "Right: line. Not yet: rank and call."),
        (given(rank="0 and 1"), "Right: call and line. Not yet: rank."),
        (given(rank="none"), "Right: call and line. Not yet: rank."),
        (given(call="barrier_of_mine", line=""), "Right: rank. Not yet: call. Empty: line."),
        (given(call="...", line=""), "Right: rank. Not yet: call. Empty: line."),
        ({}, "Empty: rank, call and line."),
    ],
)
def test_each_field_is_judged_by_itself(wrong: dict[str, str], said: str) -> None:
    assert FOUND.feedback(wrong) == said and not FOUND.is_right(wrong)


def test_that_no_rank_differs_is_said_in_words() -> None:
    assert NOBODY.is_right(given("None", "w", "1")) and NOBODY.is_right(given("none of them", "w", "1"))
    assert not NOBODY.is_right(given("0", "w", "1")) and not NOBODY.is_right(
        given("none but 0", "w", "1")
    )
    assert NOBODY.answer == "no rank differs, `w`, `a.py:1`."
    assert FOUND.answer == "rank 1, `barrier`, `broken.py:8`."


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("by_hand", None, "Object missing required field `by_hand`"),
        ("by_hand/program", "lost", 'by_hand.program: "lost" is not one of: broken, fixed, alone'),
        ("by_hand/knobs", {"mode": "fast"}, 'by_hand.knobs.mode: "fast" is not one of: plain, lazy'),
        ("by_hand/lines", ["8"], "by_hand: lines: '8' is not FILE.py:NUMBER"),
        ("by_hand/calls", [], "by_hand.calls: Expected `array` of length >= 1"),
    ],
)
def test_what_a_lab_asks_for_is_checked(tmp_path: Path, path: str, value: object, said: str) -> None:
    folder = write_programs(tmp_path)
    with pytest.raises(TomlError, match=re.escape(said)):
        example(folder, changed(path, value))


def test_a_run_in_a_terminal_gets_what_a_run_in_the_panel_gets(tmp_path: Path) -> None:
    lab = example(write_programs(tmp_path))
    *exports, command = lab.in_terminal("broken", {"mode": "lazy"})
    assert exports == ["export CACHE=$(mktemp -d)/cache", "export LAZY=1"]
    assert command.split() == lab.command("broken", {"mode": "lazy"})


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_what_is_to_be_found_is_in_the_lab_and_not_in_its_question(lab: Lab) -> None:
    """A nightly test holds it against a run."""
    asked = lab.file.by_hand
    culprits = lab.expected(asked.program, asked.knobs).culprits
    assert asked.rank in culprits if asked.rank is not None else culprits == ()
    for place in asked.lines:
        file, _, number = place.rpartition(":")
        text = (lab.folder / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]
        assert any(call in text for call in asked.calls) or re.search(r"\w\(", text), text
        assert number not in re.findall(r"\d+", asked.question)
    assert not set(re.findall(r"\w+", asked.question)) & set(asked.calls)
    assert f"{asked.lines[0].rpartition(':')[2]}" in re.findall(r"\d+", lab.file.by_hand.answer)
