"""How far a learner has come in a lab, remembered on disk: one small JSON file per lab.

The files lie in `$STUCK_RANKS_STATE`, else where this system keeps a user's state: on Linux in
`~/.local/state/stuck-ranks`.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from platformdirs import user_state_path

from ..report.files import write_atomically

FOLDER = "STUCK_RANKS_STATE"
"""Environment variable that names the folder of the files."""


class ProgressError(Exception):
    """A learner's progress cannot be read or kept; the text says why in one sentence."""


class Progress(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a learner has come in one lab.

    Attributes:
        lab: its name, `05_spawn_ports`.
        done: names of the steps that are done, in their order: `predicted`, `broken`, `fixed`,
            `by_hand`, `checked`, `quiz`; of practice, the hangs that are solved, or are repaired.
        score: 1 when the prediction came true, 0 when it did not, None before there is one.
        answers: given to the quiz, one for each question; None for one that is open.
        steps, revealed: what the gate of the lab's reports holds (`helpers.panel.learn.gate`).
        version: of the file's form; a file of another version is not read.
    """

    lab: str
    done: tuple[str, ...] = ()
    score: int | None = None
    answers: tuple[str | None, ...] = ()
    steps: tuple[str, ...] = ()
    revealed: tuple[str, ...] = ()
    version: Literal[1] = 1


def folder() -> Path:
    """Where the files lie; it need not exist.

    Raises:
        ProgressError: there is no home directory.
    """
    if path := os.environ.get(FOLDER):
        return Path(path)
    try:
        return user_state_path("stuck-ranks", appauthor=False)
    except RuntimeError as problem:
        raise ProgressError(f"progress is not kept, set {FOLDER}: {problem}") from problem


def load(lab: str) -> Progress | None:
    """How far the learner has come in `lab`; None before the first step and when `read` fails."""
    with suppress(ProgressError):
        return read(lab)
    return None


def read(lab: str) -> Progress | None:
    """As `load`, but says what is wrong with a file that cannot be used.

    Raises:
        ProgressError: the file is unreadable, damaged, or of another version.
    """
    file = _file(lab)
    try:
        progress = msgspec.json.decode(file.read_bytes(), type=Progress)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ProgressError(f"{file} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise ProgressError(f"{file} is damaged or of another version") from problem
    if progress.lab != lab:
        raise ProgressError(f"{file} is damaged: it is about another lab")
    return progress


def save(progress: Progress) -> None:
    """Keep `progress`; a reader sees the old file or the new one, never a part.

    Raises:
        ProgressError: it cannot be written; what was kept before stays.
    """
    file = _file(progress.lab)
    text = msgspec.json.format(msgspec.json.encode(progress), indent=1).decode()
    try:
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(file, text)
    except OSError as problem:
        raise ProgressError(f"progress cannot be kept in {file}: {problem.strerror}") from problem


def clear(lab: str) -> None:
    """Forget how far the learner has come in `lab`.

    Raises:
        ProgressError: the file cannot be removed.
    """
    file = _file(lab)
    try:
        file.unlink(missing_ok=True)
    except OSError as problem:
        raise ProgressError(f"{file} cannot be removed: {problem.strerror}") from problem


def set_aside(lab: str) -> Path:
    """Rename a file that cannot be used, so that the next `save` does not replace it.

    Returns:
        Where it is now: `05_spawn_ports.damaged-1.json`, or a higher number.

    Raises:
        ProgressError: it cannot be renamed.
    """
    file, number = _file(lab), 1
    while (backup := file.with_suffix(f".damaged-{number}.json")).exists():
        number += 1
    try:
        os.rename(file, backup)
    except OSError as problem:
        raise ProgressError(f"{file} cannot be renamed: {problem.strerror}") from problem
    return backup


def _file(lab: str) -> Path:
    if not re.fullmatch(r"\w[\w.-]*", lab, re.ASCII):
        raise ProgressError(f"{lab!r} is not the name of a lab")
    return folder() / f"{lab}.json"
