"""Files and folders that a user names -> their contents, a piece at a time, however large or odd."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..observe.account import UnreadableError

UNPACKED = 8 << 30
"""Bytes that all files may have together once they are unpacked."""

WHOLE = 1 << 30
"""Bytes of a file that has to be read as a whole: a dump."""

PIECE = 1 << 16
"""Bytes of a text that are read at once."""

GZIP = b"\x1f\x8b"


class MissingError(Exception):
    """A path that was named cannot be read; the text says why in one sentence."""


@dataclass
class Budget:
    """What may still be read.

    Attributes:
        left: bytes.
    """

    left: int = field(default=UNPACKED)

    def take(self, size: int) -> None:
        """Note that so many bytes have been read.

        Raises:
            UnreadableError: that is too much.
        """
        self.left -= size
        if self.left < 0:
            raise UnreadableError(f"it is not read to its end: more than {UNPACKED >> 30} GB in all")


def files(paths: Iterable[str]) -> Iterator[Path]:
    """The ordinary files that are named, and those in the folders that are, each once.

    Raises:
        MissingError: there is no such file or folder, or it may not be read.
    """
    seen: set[tuple[int, int]] = set()
    for named in paths:
        path = Path(named)
        try:
            kind = path.stat()
            found = sorted(_inside(path)) if stat.S_ISDIR(kind.st_mode) else [path]
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or "no such file or folder"
            raise MissingError(f"{named} cannot be read: {reason}") from None
        if not (stat.S_ISDIR(kind.st_mode) or stat.S_ISREG(kind.st_mode)):
            raise MissingError(f"{named} is neither a file nor a folder")
        for file in found:
            identity = _identity(file)
            if identity is not None and identity not in seen:
                seen.add(identity)
                yield file


def _inside(folder: Path) -> Iterator[Path]:
    # Links are not followed: they may lead in circles, or out of what was named.
    for parent, _, names in os.walk(folder):
        yield from (Path(parent, name) for name in names)


def _identity(file: Path) -> tuple[int, int] | None:
    """Device and number of an ordinary file; None for a link, a device, a pipe or a socket."""
    try:
        found = file.lstat() if file.is_symlink() else file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


@contextmanager
def opened(file: Path) -> Iterator[BinaryIO]:
    """The content of a file, unpacked.

    Raises:
        UnreadableError: it cannot be read, or is packed and damaged.
    """
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == GZIP
            raw.seek(0)
            if packed:
                with gzip.open(raw, "rb") as unpacked:
                    yield unpacked  # type: ignore[misc]
            else:
                yield raw
    except (OSError, EOFError, zlib.error) as problem:
        reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())
        raise UnreadableError(f"it cannot be read: {reason}") from None


def whole(content: BinaryIO, budget: Budget) -> bytes:
    """All of a file.

    Raises:
        UnreadableError: it is larger than a dump can be.
    """
    data = content.read(WHOLE + 1)
    budget.take(len(data))
    if len(data) > WHOLE:
        raise UnreadableError(f"it has more than {WHOLE >> 30} GB, which no dump has")
    return data


def pieces(content: BinaryIO, budget: Budget) -> Iterator[bytes]:
    """A text, some whole lines at a time; a line without an end comes in parts."""
    rest = b""
    while data := content.read(PIECE):
        budget.take(len(data))
        whole_lines, newline, begun = data.rpartition(b"\n")
        if newline:
            yield rest + whole_lines
            rest = begun
        else:
            rest += data
        if len(rest) > PIECE:
            yield rest
            rest = b""
    if rest:
        yield rest
