"""The pages of recordings: the first page, and one for each unseen hang."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from helpers.labs.practice import Hang, all_hangs
from helpers.panel.learn.first_hang import RECORDING

from .bodies import listing
from .places import HANGS, ROOT
from .playback import playback, templates

Play = Callable[..., str]
"""`playback`, or what stands in for it where no recording is to be read."""

FIRST = ROOT / "notebooks" / "method" / RECORDING
FRONT_WIDTH, HANG_WIDTH = 900, 740
"""Pixels of the pictures, where there is room for them."""


def front(play: Play = playback) -> str:
    """The first page: a hang of 64 ranks that plays, one question, and what comes next."""
    played = play(FIRST, width=FRONT_WIDTH, imports=False)
    program = listing(FIRST.with_name("train.py"))
    return templates().get_template("front.html").render(played=played, program=program)


def hang(name: str, play: Play = playback) -> str:
    """The page of an unseen hang: how it ran, its program, and, folded, what is said of it."""
    found = next(one for one in all_hangs() if one.name == name)
    played = play(found.folder / "run.jsonl.gz", width=HANG_WIDTH)
    files = [(_name(found, file), listing(file)) for file in found.files]
    return templates().get_template("hang.html").render(hang=found, played=played, files=files)


def hangs() -> list[str]:
    """The sources of the pages of unseen hangs."""
    return [f"{HANGS}/{found.name}" for found in all_hangs()]


def _name(found: Hang, file: Path) -> str:
    return str(file.relative_to(found.folder))
