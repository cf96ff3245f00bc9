"""A copy of the guide: complete, found by its notebooks, and never written over without being asked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from repository import ROOT

from helpers.cli.main import main
from helpers.labs import lab as labs
from helpers.labs.guide_copy import copy_guide
from helpers.labs.lab import all_labs, labs_folder

LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")
ONLY_IN_THE_CHECKOUT = {"README.md"}


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv(labs.NOTEBOOKS, raising=False)
    copy_guide(tmp_path / "guide")
    return tmp_path / "guide"


def test_every_link_of_a_lesson_leads_to_a_file_of_the_copy(copy: Path) -> None:
    links = {
        (page.parent / link).resolve()
        for page in (copy / "notebooks").rglob("*.ipynb")
        for link in LINK.findall(page.read_text(encoding="utf-8"))
    }
    assert len(links) > 50
    absent = {str(link.relative_to(copy.resolve())) for link in links if not link.exists()}
    assert {name for name in absent if "your_turn" not in name} <= ONLY_IN_THE_CHECKOUT


def test_a_copy_has_nothing_that_runs_have_left(copy: Path) -> None:
    names = {path.name for path in copy.rglob("*")}
    assert "lab.toml" in names and "collective_mismatch.md" in names
    assert not names & {".runs", ".built", "__pycache__", "your_turn.py"}
    assert not [path for path in (copy / "helpers").rglob("*.*") if path.suffix != ".md"]


@pytest.mark.parametrize("inside", [".", "notebooks", "notebooks/05_spawn_ports"])
def test_a_kernel_in_a_copy_has_the_labs_of_that_copy(
    copy: Path, inside: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(copy / inside)
    assert labs_folder() == copy / "notebooks"
    assert {lab.folder.parent for lab in all_labs()} == {copy / "notebooks"}


def test_elsewhere_the_labs_are_those_of_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(labs.NOTEBOOKS, raising=False)
    monkeypatch.chdir(tmp_path)
    assert labs_folder() == ROOT / "notebooks"
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert labs_folder() == ROOT / "notebooks"


def test_what_is_there_is_written_over_only_when_that_is_asked_for(
    copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own, lost = copy / "notebooks" / "index.ipynb", copy / "docs" / "clusters.md"
    of_the_guide = own.read_text()
    own.write_text("mine")
    lost.unlink()
    (copy / "notes.txt").write_text("mine too")
    assert main(["guide", str(copy)]) == 0
    said = capsys.readouterr().out
    assert "1 file written" in said and "    notebooks/index.ipynb\n" in said
    assert own.read_text() == "mine" and lost.is_file()
    assert main(["guide", "--overwrite", str(copy)]) == 0
    assert own.read_text() == of_the_guide
    assert (copy / "notes.txt").read_text() == "mine too"


def test_it_says_how_to_open_the_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["guide"]) == 0
    said = capsys.readouterr().out
    assert "    cd stuck-ranks-guide\n" in said and "-m jupyterlab notebooks/index.ipynb\n" in said
    assert (tmp_path / "stuck-ranks-guide" / "notebooks" / "index.ipynb").is_file()


@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/guide"])
def test_where_nothing_can_be_written_a_sentence_says_so(
    tmp_path: Path, folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.chdir(tmp_path)
    assert main(["guide", folder]) == 64
    assert "cannot be written: " in capsys.readouterr().err
