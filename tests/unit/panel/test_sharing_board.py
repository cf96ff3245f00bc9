"""The Share button of a learner, and the leader's board."""

from __future__ import annotations

from pathlib import Path

import pytest
from lab_bench import LabBench
from panel_fakes import buttons, click, html_of, visible

from helpers.labs.progress import Progress
from helpers.labs.sharing import share
from helpers.panel import open_board
from helpers.panel.widgets.native import Typed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    monkeypatch.setenv("STUCK_RANKS_SHARE", str(folder))
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    return folder


def test_without_a_folder_there_is_no_button(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUCK_RANKS_SHARE", raising=False)
    assert "Share" not in buttons(LabBench(tmp_path).panel)
    assert "Set STUCK_RANKS_SHARE" in html_of(open_board())


def test_what_a_learner_shares_is_on_the_board(tmp_path: Path, place: Path) -> None:
    bench, board = LabBench(tmp_path), open_board()
    assert "ada" not in html_of(board) and repr(board) == "Board: 0 learners, 0 labs"
    bench.panel.by_hand.answer(1, "print", 1)
    assert list(place.iterdir()) == []
    click(bench.panel, "Share")
    assert "Shared as <strong>ada</strong>." in bench.shown
    click(board, "Refresh")
    row = html_of(board).rpartition("<tr>")[2]
    assert "ada" in row and "07_two_letters" in row and row.count("✓") == 1
    assert repr(board) == "Board: 1 learners, 1 labs"


def test_a_learner_may_choose_another_name_and_is_told_what_is_wrong(
    tmp_path: Path, place: Path
) -> None:
    bench = LabBench(tmp_path)
    [field] = [one for one in visible(bench.panel) if isinstance(one, Typed)]
    field.typed = " "
    click(bench.panel, "Share")
    assert "Not shared: type in a name first." in bench.shown
    field.typed = "<b>Grace</b>"
    click(bench.panel, "Share")
    assert "&lt;b&gt;Grace&lt;/b&gt;" in html_of(open_board()) and "<b>Grace" not in html_of(
        open_board()
    )


def test_the_newest_is_first_and_damage_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", iter([1.7e9, 1.8e9]).__next__)
    share("ada", Progress("05_spawn_ports"))
    share("grace", Progress("05_spawn_ports", ("predicted",), revealed=("a", "b")))
    (place / "x.shared.json").write_text("{")
    shown = html_of(open_board())
    assert shown.index("grace") < shown.index(">ada<")
    assert "Not readable: x.shared.json." in shown and ">2<" in shown


def test_clearing_the_board_is_one_click(place: Path) -> None:
    share("ada", Progress("05_spawn_ports"))
    board = open_board()
    click(board, "Clear the board")
    assert list(place.iterdir()) == [] and "1 removed." in html_of(board) and "ada" not in html_of(board)
