"""The first exercise: nothing is told before an answer, and the verdict after the right one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from looks import diverging
from panel_fakes import click, control, html_of, text_of, visible, wait_for_threads

from helpers.labs import progress
from helpers.labs.lab import LabError
from helpers.panel.learn import first_hang as module
from helpers.panel.learn.first_hang import NOTHING, FirstHang, open_first_hang
from helpers.panel.widgets.wall import Wall

ODD = 41
MANY = diverging(64, ODD)
VERDICT = "Rank 41 is blocked in barrier #7"


@pytest.fixture
def hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FirstHang:
    monkeypatch.setenv("STUCK_RANKS_STATE", str(tmp_path / "state"))
    return FirstHang(MANY, keep=True)


def wall_of(hang: FirstHang) -> Wall:
    [found] = [widget for widget in visible(hang) if isinstance(widget, Wall)]
    return found


def own_lines(hang: FirstHang) -> list[str]:
    """Where the chosen rank is shown to be."""
    return re.findall(r"<li><code>(\S+)", html_of(hang))


def test_nothing_is_told_before_an_answer(hang: FirstHang) -> None:
    shown = text_of(html_of(hang))
    for told in (VERDICT, "collective-mismatch", "blocked", "never reaches", "culprit"):
        assert told not in shown + repr(hang)
    assert "rank is the odd one out?" in shown
    assert not hang.verdict_shown and progress.load(module.NAME) is None


def test_each_rank_has_a_lane_and_calls_that_differ_differ(hang: FirstHang) -> None:
    drawn = wall_of(hang).value
    lanes = dict(re.findall(r'<g data-rank="(\d+)"(.*)', drawn))
    assert list(lanes) == [str(rank) for rank in range(64)]
    assert {rank for rank, lane in lanes.items() if 'class="other"' in lane} == {str(ODD)}
    assert "in barrier" in drawn and "in all_reduce" in drawn


def test_the_slider_shows_the_run_as_it_was(hang: FirstHang) -> None:
    hang.seek(3.0)
    assert "barrier" not in wall_of(hang).value and hang.second == 3.0
    hang.seek(99.0)
    assert "barrier" in wall_of(hang).value


def test_a_click_on_a_lane_and_the_list_choose_a_rank(hang: FirstHang) -> None:
    wall_of(hang).chosen = 7
    assert control(hang, "Rank").value == 7
    assert own_lines(hang) == ["train.py:33"]
    control(hang, "Rank").value = ODD
    assert wall_of(hang).chosen == ODD
    assert own_lines(hang) == ["train.py:41"]


def test_a_wrong_answer_is_told_what_speaks_against_it_and_no_more(hang: FirstHang) -> None:
    click(hang, "Answer")
    assert NOTHING in html_of(hang)
    control(hang, "Rank").value = 3
    click(hang, "Answer")
    shown = text_of(html_of(hang))
    assert "not right" in shown and "like ranks 0-2, 4-40 and 42-63" in shown
    assert not hang.verdict_shown and VERDICT not in shown and progress.load(module.NAME) is None


def test_the_right_answer_is_told_the_verdict_and_kept(hang: FirstHang) -> None:
    control(hang, "Rank").value = ODD
    click(hang, "Answer")
    shown = text_of(html_of(hang))
    assert "What stuck-ranks says of this run" in shown
    assert "&lt;" not in html_of(hang)
    assert hang.verdict_shown and VERDICT in shown and "where ranks 0-40 and 42-63 are waiting" in shown
    kept = progress.load(module.NAME)
    assert kept is not None and kept.done == ("answered",)


def test_a_reveal_is_no_answer(hang: FirstHang) -> None:
    click(hang, "Reveal")
    assert VERDICT in text_of(html_of(hang))
    hang.answer(ODD)
    kept = progress.load(module.NAME)
    assert kept is not None and (kept.done, kept.revealed) == ((), ("verdict",))


def test_it_plays_from_the_first_lane_on() -> None:
    left = iter(range(4))
    hang = FirstHang(MANY, lambda pause, seconds: next(left, None) is None)
    first = hang.seek(0.0) or hang.second
    hang.seek(99.0)
    click(hang, "Play")
    wait_for_threads("replay")
    assert hang.second == first + 1.0, "four ticks of a quarter of a second"


def test_the_recording_of_the_guide_is_of_64_ranks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang = open_first_hang()
    assert repr(hang).startswith("A recorded hang of 64 ranks")
    assert "Rank 41" not in text_of(html_of(hang))
    assert hang.answer(40) == "No." and hang.answer(ODD) == "Right."
    assert "Rank 41 is blocked in barrier #24 at train.py:23" in text_of(html_of(hang))
    monkeypatch.setenv("STUCK_RANKS_NOTEBOOKS", str(tmp_path))
    with pytest.raises(LabError, match=module.RECORDING):
        open_first_hang()
