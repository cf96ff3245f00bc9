"""Two programs side by side: aligned, marked, in words, escaped."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from panel_fakes import text_of
from repository import NOTEBOOKS

from helpers.labs.side_by_side import CONTEXT, pairs, side_by_side

NAMES = ("broken.py", "fixed.py")
LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=20)


@given(LINES, LINES)
def test_every_line_is_there_once_or_counted(old: list[str], new: list[str]) -> None:
    found = list(pairs(old, new))
    for side, lines in (("old", old), ("new", new)):
        shown = [getattr(pair, side) for pair in found if getattr(pair, side).number]
        assert [lines[one.number - 1] for one in shown] == [one.text for one in shown]
        assert [one.number for one in shown] == sorted({one.number for one in shown})
        assert len(shown) + sum(pair.skipped for pair in found) == len(lines)


def test_equal_lines_far_from_a_change_are_left_out() -> None:
    old = [str(n) for n in range(30)]
    found = list(pairs(old, [*old[:15], "new", *old[15:]]))
    assert [pair.skipped for pair in found if pair.skipped] == [15 - CONTEXT, 15 - CONTEXT]
    assert [pair.new.text for pair in found if pair.change == "added"] == ["new"]


def test_changes_have_a_sign_and_the_words_that_differ_are_marked() -> None:
    html = side_by_side("a\nfabric.launch()\n", "a\nmain.launch()\nb\n", NAMES)
    assert text_of(html) == "broken.py fixed.py 1 a 1 a 2 - fabric .launch() 2 + main .launch() 3 + b"
    assert "<del>" in html and "<ins>" in html
    assert len(re.findall(r"<b>", html)) >= 2


def test_programs_are_escaped() -> None:
    evil = "</code><script>alert(1)</script>\x1b[31m"
    html = side_by_side(f"{evil}a", f"{evil}b", (evil, evil))
    assert "<script" not in html and "\x1b" not in html


def test_equal_programs_are_said_to_be_the_same() -> None:
    assert side_by_side("a\n", "a\n", NAMES) == "<p>broken.py and fixed.py are the same.</p>"


def test_the_programs_of_a_lab() -> None:
    lab = NOTEBOOKS / "05_spawn_ports"
    html = side_by_side((lab / "broken.py").read_text(), (lab / "fixed.py").read_text(), NAMES)
    assert "equal lines" in html and "sr-removed" in html and "sr-added" in html
