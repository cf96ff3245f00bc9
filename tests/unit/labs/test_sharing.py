"""What learners tell the leader of a workshop: one line, whole or not at all, and no answer in it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from helpers.labs import sharing
from helpers.labs.progress import Progress
from helpers.labs.sharing import ShareError, Standing, share, shared

PROGRESS = Progress(
    "05_spawn_ports", ("predicted", "broken"), 1, ("an answer", None), ("a",), ("b", "c")
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STUCK_RANKS_SHARE", str(tmp_path))
    return tmp_path


def standings(place: Path) -> list[Standing]:
    found = list(shared(place))
    assert all(isinstance(one, Standing) for one in found), found
    return [one for one in found if isinstance(one, Standing)]


def test_one_line_tells_the_steps_and_nothing_that_was_typed(place: Path) -> None:
    share("Ada", PROGRESS)
    [file] = place.iterdir()
    [line] = file.read_text().splitlines()
    told = json.loads(line)
    assert told.pop("at") > 1.7e9
    assert told == {
        "name": "Ada",
        "lab": "05_spawn_ports",
        "done": ["predicted", "broken"],
        "revealed": 2,
        "version": 1,
    }
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_the_next_line_of_a_learner_replaces_the_one_before(place: Path) -> None:
    share("Ada", Progress("05_spawn_ports"))
    share("Ada", PROGRESS)
    share("Ada", Progress("02_fsdp_saving"))
    share("Grace", PROGRESS)
    assert [(one.name, one.lab, len(one.done)) for one in standings(place)] == [
        ("Ada", "02_fsdp_saving", 0),
        ("Ada", "05_spawn_ports", 2),
        ("Grace", "05_spawn_ports", 2),
    ]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", ".", "x" * 300, "Zoë\n & Ørsted", "-"])
def test_any_name_is_a_file_in_the_folder_and_nowhere_else(place: Path, name: str) -> None:
    share(name, PROGRESS)
    [file] = place.iterdir()
    assert file.is_file() and [one.name for one in standings(place)] == [" ".join(name.split())[:40]]


def test_without_a_name_or_a_folder_nothing_is_shared(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ShareError, match="type in a name first"):
        share(" \n", PROGRESS)
    monkeypatch.setenv("STUCK_RANKS_SHARE", str(place / "lost"))
    with pytest.raises(ShareError, match="lost cannot be written to: No such file"):
        share("Ada", PROGRESS)
    monkeypatch.delenv("STUCK_RANKS_SHARE")
    with pytest.raises(ShareError, match="STUCK_RANKS_SHARE names no folder"):
        share("Ada", PROGRESS)
    assert list(place.iterdir()) == []


def test_a_line_that_cannot_be_written_leaves_the_one_before(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    share("Ada", Progress("05_spawn_ports"))

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(ShareError, match="No space left"):
        share("Ada", PROGRESS)
    assert len(list(place.iterdir())) == 1 and standings(place)[0].done == ()


@pytest.mark.parametrize(
    "text", [b"", b"{", b'{"name": "Ada"}', b"[" * 100_000, b'{"version": 2}', b"\xff"]
)
def test_what_is_no_such_line_is_named_and_read_past(place: Path, text: bytes) -> None:
    share("Ada", PROGRESS)
    (place / "Bob-05.shared.json").write_bytes(text)
    (place / "notes.txt").write_text("not ours")
    ada, bob = shared(place)
    assert isinstance(ada, Standing) and bob == "Bob-05.shared.json"


def test_clearing_removes_what_is_shared_and_nothing_else(place: Path) -> None:
    share("Ada", PROGRESS)
    (place / "notes.txt").write_text("not ours")
    assert sharing.clear(place) == 1
    assert [path.name for path in place.iterdir()] == ["notes.txt"]


def test_a_learner_is_called_as_on_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    assert sharing.own_name() == "ada"
    monkeypatch.delenv("JUPYTERHUB_USER")
    monkeypatch.setenv("LOGNAME", "grace")
    assert sharing.own_name() == "grace"
