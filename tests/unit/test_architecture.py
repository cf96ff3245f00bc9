"""The page on how the instrument is built names what there is."""

from __future__ import annotations

import importlib
import re

import pytest
from repository import ROOT

HELPERS = ROOT / "helpers"
PAGE = (HELPERS / "ARCHITECTURE.md").read_text(encoding="utf-8")


def test_every_room_has_its_row() -> None:
    rooms = {folder.name for folder in HELPERS.iterdir() if (folder / "__init__.py").is_file()}
    rows = set(re.findall(r"`(\w+)/`", PAGE.partition("## The rooms")[2].partition("\n\n`lint")[0]))
    assert rows == rooms


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(\w+(?:\.\w+)+)`", PAGE))))
def test_what_it_names_is_there(name: str) -> None:
    """A file (`session.py`), or a module with what is in it (`observe.evidence.merge`)."""
    if (HELPERS / name).is_file():
        return
    words = name.split(".")
    at = next(n for n in range(len(words), 0, -1) if is_module(words[:n]))
    found: object = importlib.import_module(".".join(("helpers", *words[:at])))
    for word in words[at:]:
        found = getattr(found, word)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`(\w+/\w+(?:\.(?:py|md))?)`", PAGE))))
def test_what_it_leads_to_is_there(path: str) -> None:
    assert "NAME" in path or (HELPERS / path).exists() or (ROOT / path).exists()


def is_module(words: list[str]) -> bool:
    file = HELPERS.joinpath(*words)
    return file.with_suffix(".py").is_file() or (file / "__init__.py").is_file()
