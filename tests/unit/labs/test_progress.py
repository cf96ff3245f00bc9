"""Where a learner stands, kept on disk and read back; nothing here touches the real folder."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from helpers.labs import progress
from helpers.labs.progress import Progress, ProgressError, clear, load, read, save

LAB = "05_spawn_ports"
HALF = Progress(LAB, ("predicted", "broken"), score=1)
WHOLE = Progress(
    LAB, ("predicted", "broken", "fixed", "checked", "quiz"), score=0, answers=("é \u2028", None)
)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a" / "state"
    monkeypatch.setenv("STUCK_RANKS_STATE", str(folder))
    return folder


def written(folder: Path, content: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{LAB}.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def content(**changes: Any) -> dict[str, Any]:
    return {"version": 1, "lab": LAB, "done": ["broken"], "score": None, "answers": [], **changes}


@pytest.mark.parametrize("given", [Progress(LAB), HALF, WHOLE], ids=["none", "half", "whole"])
def test_what_is_saved_is_loaded(given: Progress) -> None:
    save(given)

    assert load(LAB) == read(LAB) == given


def test_labs_do_not_meet() -> None:
    save(HALF)
    save(Progress("04_ddp_dataloader"))

    clear(LAB)

    assert load(LAB) is None
    assert load("04_ddp_dataloader") == Progress("04_ddp_dataloader")


def test_there_is_nothing_before_the_first_step(state: Path) -> None:
    assert load(LAB) is None
    assert read(LAB) is None
    clear(LAB)

    assert not state.exists(), "only a save makes the folder"


def test_folder_and_file_are_the_learners_own(state: Path) -> None:
    save(HALF)

    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert stat.S_IMODE((state / f"{LAB}.json").stat().st_mode) == 0o600


def test_a_folder_that_is_there_keeps_its_mode(state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o755)

    save(HALF)

    assert stat.S_IMODE(state.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("", "damaged"),
        ('{"version": 1', "damaged"),
        ("[" * 100_000, "damaged"),
        ("[]", "damaged"),
        (content(version=2), "another version"),
        (content(lab="04_ddp_dataloader"), "damaged"),
        (content(done="broken"), "damaged"),
        (content(done=[1]), "damaged"),
        (content(score="1"), "damaged"),
        (content(score=True), "damaged"),
        (content(answers=[2]), "damaged"),
        (content(colour="red"), "damaged"),
        ('{"lab": "05_spawn_ports", "done": [' + "[" * 100_000, "damaged"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_file_that_cannot_be_used_counts_as_none(state: Path, given: object, says: str) -> None:
    file = written(state, given)

    assert load(LAB) is None
    with pytest.raises(ProgressError, match=says) as refused:
        read(LAB)
    assert str(file) in str(refused.value)
    save(HALF)
    assert load(LAB) == HALF


def test_bytes_that_are_no_text_count_as_none(state: Path) -> None:
    written(state, "").write_bytes(b"\xff\xfe{")

    assert load(LAB) is None
    with pytest.raises(ProgressError, match="damaged"):
        read(LAB)


def test_a_folder_in_the_place_of_the_file_is_said(state: Path) -> None:
    (state / f"{LAB}.json").mkdir(parents=True)

    assert load(LAB) is None
    for refused in (lambda: read(LAB), lambda: save(HALF), lambda: clear(LAB)):
        with pytest.raises(ProgressError, match=f"{LAB}.json"):
            refused()
    assert [path.name for path in state.iterdir()] == [f"{LAB}.json"]


def test_a_file_in_the_place_of_the_folder_is_said(state: Path) -> None:
    state.parent.mkdir(parents=True)
    state.write_text("")

    with pytest.raises(ProgressError, match="cannot be kept"):
        save(HALF)


def test_a_save_that_fails_loses_nothing(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(HALF)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ProgressError, match="No space left on device"):
        save(WHOLE)

    assert load(LAB) == HALF
    assert [path.name for path in state.iterdir()] == [f"{LAB}.json"]


@pytest.mark.parametrize("lab", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\nb", "a\0b", "-x"])
def test_a_lab_is_a_plain_name(lab: str) -> None:
    assert load(lab) is None
    for refused in (read, clear, lambda name: save(Progress(name))):
        with pytest.raises(ProgressError, match="not the name of a lab"):
            refused(lab)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"STUCK_RANKS_STATE": "/own", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/own"),
        ({"XDG_STATE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/stuck-ranks"),
        ({"XDG_STATE_HOME": "", "HOME": "/home/me"}, "/home/me/.local/state/stuck-ranks"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.local/state/stuck-ranks"),
        ({"STUCK_RANKS_STATE": "", "HOME": "/home/me"}, "/home/me/.local/state/stuck-ranks"),
    ],
)
def test_the_folder_follows_the_environment(
    environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STUCK_RANKS_STATE", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert progress.folder() == Path(expected)


def test_a_user_without_a_home_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUCK_RANKS_STATE")
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # as where no user has this number

    assert load(LAB) is None
    with pytest.raises(ProgressError, match="STUCK_RANKS_STATE"):
        save(HALF)
