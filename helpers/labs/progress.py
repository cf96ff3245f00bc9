"""Where a learner stands in a lab, remembered on disk: one small JSON file a lab.

The files lie in `$STUCK_RANKS_STATE`, else in `stuck-ranks` under `$XDG_STATE_HOME`, whose default is
`~/.local/state` and which counts only when it is absolute (XDG Base Directory Specification 0.8).
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..report.files import write_atomically

VERSION = 1
"""Of the file's form; a file of another version is left unread."""

FOLDER = "STUCK_RANKS_STATE"
"""Environment variable that names the folder of the files."""


class ProgressError(Exception):
    """A learner's progress cannot be read or kept; the text says why in one sentence."""


@dataclass(frozen=True)
class Progress:
    """Where a learner stands in one lab.

    Attributes:
        lab: its name, `05_spawn_ports`.
        done: names of the steps that are done, in their order: `predicted`, `broken`, `fixed`,
            `checked`, `quiz`.
        score: 1 when the prediction came true, 0 when it did not, None before there is one.
        answers: given to the quiz, one for each question; None for one that is open.
    """

    lab: str
    done: tuple[str, ...] = ()
    score: int | None = None
    answers: tuple[str | None, ...] = ()


def folder() -> Path:
    """Where the files lie; it need not exist.

    Raises:
        ProgressError: there is no home directory.
    """
    if own := os.environ.get(FOLDER):
        return Path(own)
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    if not state.is_absolute():
        try:
            state = Path.home() / ".local" / "state"
        except RuntimeError as problem:
            raise ProgressError(f"progress is not kept, set {FOLDER}: {problem}") from problem
    return state / "stuck-ranks"


def load(lab: str) -> Progress | None:
    """Where the learner stands in `lab`; None before the first step and when `read` fails."""
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
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ProgressError(f"{file} cannot be read: {problem.strerror}") from problem
    except (ValueError, RecursionError) as problem:
        raise ProgressError(f"{file} is damaged") from problem
    if not isinstance(content, dict) or content.get("version") != VERSION:
        raise ProgressError(f"{file} is of another version")
    progress = _progress(lab, content)
    if progress is None:
        raise ProgressError(f"{file} is damaged")
    return progress


def save(progress: Progress) -> None:
    """Keep `progress`; a reader sees the file of before or the new one, never a part.

    Raises:
        ProgressError: it cannot be written; what was kept before stays.
    """
    file = _file(progress.lab)
    text = json.dumps({"version": VERSION, **asdict(progress)}, indent=1)
    try:
        file.parent.parent.mkdir(parents=True, exist_ok=True)
        file.parent.mkdir(mode=0o700, exist_ok=True)
        write_atomically(file, text, mode=0o600)
    except OSError as problem:
        raise ProgressError(f"progress cannot be kept in {file}: {problem.strerror}") from problem


def clear(lab: str) -> None:
    """Forget where the learner stands in `lab`.

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
    while (aside := file.with_suffix(f".damaged-{number}.json")).exists():
        number += 1
    try:
        os.rename(file, aside)
    except OSError as problem:
        raise ProgressError(f"{file} cannot be renamed: {problem.strerror}") from problem
    return aside


def _file(lab: str) -> Path:
    if not re.fullmatch(r"\w[\w.-]*", lab, re.ASCII):
        raise ProgressError(f"{lab!r} is no name of a lab")
    return folder() / f"{lab}.json"


def _progress(lab: str, content: dict[str, Any]) -> Progress | None:
    """What a file says, or None when it does not say all of it."""
    done, score, answers = (content.get(name, "") for name in ("done", "score", "answers"))
    fits = (
        content.get("lab") == lab
        and isinstance(done, list)
        and all(isinstance(step, str) for step in done)
        and (score is None or type(score) is int)
        and isinstance(answers, list)
        and all(answer is None or isinstance(answer, str) for answer in answers)
    )
    return Progress(lab, tuple(done), score, tuple(answers)) if fits else None
