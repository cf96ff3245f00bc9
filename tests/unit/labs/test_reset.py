"""A seat for the next group: no progress, and no copy under its name."""

from __future__ import annotations

from pathlib import Path

import pytest
from example_lab import example, write_programs

from helpers.cli.main import main
from helpers.labs import lab as labs
from helpers.labs import progress, reset
from helpers.labs.progress import Progress


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "state"
    monkeypatch.setenv("STUCK_RANKS_STATE", str(folder))
    return folder


def test_progress_goes_and_copies_are_kept_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = example(write_programs(tmp_path))
    progress.save(Progress(lab.name, ("predicted",)))
    progress.save(Progress("02_other", ("predicted",)))
    lab.my_copy().write_text("mine")
    assert reset.main([lab]) == 0
    assert progress.load(lab.name) is None and progress.load("02_other") is not None
    assert not lab.copy().exists()
    assert (lab.folder / "your_turn.1.py").read_text() == "mine"
    shown = "07_example: progress forgotten; your_turn.py is now your_turn.1.py\n"
    assert capsys.readouterr().out == shown
    assert reset.main([lab]) == 0  # nothing is left to forget
    assert capsys.readouterr().out == "07_example: progress forgotten\n"


def test_a_file_that_stays_is_one_sentence(
    state: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lab = example(write_programs(tmp_path))
    monkeypatch.setattr(labs, "find_lab", lambda _: lab)
    (state / f"{lab.name}.json").mkdir(parents=True)
    assert main(["lab", "07", "--reset"]) == 64
    assert "cannot be removed" in capsys.readouterr().err
