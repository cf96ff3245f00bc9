"""Where learners stand, shared with the leader of a workshop in a folder: one line each.

A learner who presses *Share* writes one small file, named after the learner and the lab, which the next
press replaces. It holds the steps of the lab that are done and no answer.
"""

from __future__ import annotations

import getpass
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ..report.files import write_atomically
from .progress import Progress

SHARE = "STUCK_RANKS_SHARE"
"""Environment variable that names the folder; without it nothing is shared."""

LONGEST = 40
"""Characters of a name."""

ENDING = ".shared.json"


class ShareError(Exception):
    """Nothing can be shared; the text says why in one sentence."""


class Standing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a learner has come in one lab, as told to the leader.

    Attributes:
        name: what the learner is to be called.
        lab: its name, `05_spawn_ports`.
        done: names of the steps that are done.
        revealed: how much was revealed without an answer.
        at: when it was shared, in seconds since 1970.
        version: of the line's form; a line of another version is not read.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=LONGEST)]
    lab: str
    done: tuple[str, ...]
    revealed: int
    at: float
    version: Literal[1] = 1


def folder() -> Path | None:
    """The leader's folder; None where nothing is to be shared."""
    path = os.environ.get(SHARE)
    return Path(path) if path else None


def own_name() -> str:
    """What a learner is called who types in no name: as on the hub, else as on this machine."""
    with suppress(KeyError, OSError):  # a container's user id without a name
        return os.environ.get("JUPYTERHUB_USER") or getpass.getuser()
    return ""


def share(name: str, progress: Progress) -> None:
    """Write how far a learner has come.

    Raises:
        ShareError: there is no name or no folder, or the file cannot be written; what was shared before
            stays.
    """
    place, name = folder(), " ".join(name.split())[:LONGEST].strip()
    if place is None:
        raise ShareError(f"{SHARE} names no folder")
    if not name:
        raise ShareError("type in a name first")
    standing = Standing(name, progress.lab, progress.done, len(progress.revealed), time.time())
    safe = re.sub(r"[^\w-]", "_", name)
    file = place / f"{safe}-{progress.lab}{ENDING}"
    try:
        write_atomically(file, msgspec.json.encode(standing) + b"\n")
        file.chmod(0o644)  # another user, the leader, reads it
    except OSError as problem:
        raise ShareError(f"{place} cannot be written to: {problem.strerror}") from problem


def shared(place: Path) -> Iterator[Standing | str]:
    """What is in a folder, in the order of the files' names; of a file that cannot be read, its name."""
    for file in _files(place):
        try:
            yield msgspec.json.decode(file.read_bytes(), type=Standing)
        except FileNotFoundError:  # cleared away meanwhile
            continue
        except (OSError, ValueError, RecursionError):
            yield file.name


def clear(place: Path) -> int:
    """Remove what learners have shared, and nothing else; returns how many files that were.

    Raises:
        ShareError: a file cannot be removed.
    """
    files = _files(place)
    try:
        for file in files:
            file.unlink(missing_ok=True)
    except OSError as problem:
        raise ShareError(f"{place} cannot be cleared: {problem.strerror}") from problem
    return len(files)


def _files(place: Path) -> list[Path]:
    return sorted(place.glob(f"*{ENDING}"))
