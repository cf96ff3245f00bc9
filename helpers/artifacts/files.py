"""Files and folders that a user names -> their contents, a piece at a time, however large or odd."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO, cast

import msgspec

from ..observe.account import UnreadableError

UNPACKED = 8 << 30
"""Bytes that all files may have together once they are unpacked."""

WHOLE = 1 << 30
"""Bytes of a file that has to be read as a whole: a dump."""

PIECE = 1 << 16
"""Bytes of a text that are read at once."""

PACKED: Mapping[bytes, Callable[[BinaryIO], IO[bytes]]] = {
    b"\x1f\x8b": lambda raw: cast("IO[bytes]", gzip.GzipFile(fileobj=raw)),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ": lzma.LZMAFile,
}
"""How a packed file begins, and what unpacks it."""

ARCHIVES = {b"PK\x03\x04": "a zip archive", b"\x28\xb5\x2f\xfd": "packed by zstd"}
"""How a file begins that has to be unpacked first."""

TAR, TAR_AT = b"ustar", 257
"""What a tar archive says that it is, and where."""

UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

ODD = 0.05
"""The share of control characters, and of bytes that are none, from which on a file is no text."""


class MissingError(Exception):
    """A path that was named cannot be read; the text says why in one sentence."""


class Budget(msgspec.Struct):
    """What may still be read.

    Attributes:
        remaining: bytes.
    """

    remaining: int = msgspec.field(default=UNPACKED)

    def take(self, size: int) -> None:
        """Note that so many bytes have been read.

        Raises:
            UnreadableError: that is too much.
        """
        self.remaining -= size
        if self.remaining < 0:
            raise UnreadableError(f"it is not read to its end: more than {UNPACKED >> 30} GB in all")


def files(paths: Iterable[str]) -> Iterator[Path]:
    """The ordinary files that are named, and those in the folders that are, each once.

    Raises:
        MissingError: there is no such file or folder, or it may not be read.
    """
    identities: set[tuple[int, int]] = set()
    for name in paths:
        path = Path(name)
        try:
            kind = path.stat()
            listing = _inside(path) if stat.S_ISDIR(kind.st_mode) else [path]
        except (OSError, ValueError) as problem:
            reason = getattr(problem, "strerror", None) or "no such file or folder"
            raise MissingError(f"{name} cannot be read: {reason}") from None
        if not (stat.S_ISDIR(kind.st_mode) or stat.S_ISREG(kind.st_mode)):
            raise MissingError(f"{name} is neither a file nor a folder")
        for file in listing:
            identity = _identity(file)
            if identity is not None and identity not in identities:
                identities.add(identity)
                yield file


def _inside(folder: Path) -> list[Path]:
    """The files below a folder, links at last, and the folders there that may not be read.

    Links to files are followed, as Kubernetes keeps its logs; links to folders may lead in circles.
    """
    paths: list[Path] = []

    def lock(problem: OSError) -> None:
        paths.append(Path(problem.filename))

    for parent, _, names in os.walk(folder, onerror=lock):
        paths += [Path(parent, name) for name in names]
    return sorted(paths, key=lambda file: (file.is_symlink(), file))


def _identity(file: Path) -> tuple[int, int] | None:
    """Device and number of a file or a folder; None for a device, a pipe or a socket."""
    try:
        status = file.stat()
    except OSError:
        return None
    ordinary = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return (status.st_dev, status.st_ino) if ordinary else None


@contextmanager
def opened(file: Path) -> Iterator[IO[bytes]]:
    """The content of a file, unpacked.

    Raises:
        UnreadableError: it cannot be read, or is packed and damaged.
    """
    try:
        with file.open("rb") as raw:
            head = raw.read(TAR_AT + len(TAR))
            raw.seek(0)
            _refuse_archive(head)
            unpack = next((way for begin, way in PACKED.items() if head.startswith(begin)), None)
            if unpack is not None:
                with unpack(raw) as unpacked:
                    _refuse_archive(unpacked.read(len(head)))
                    unpacked.seek(0)
                    yield unpacked
            elif head.startswith(UTF_16):
                yield io.BytesIO(raw.read(WHOLE).decode("utf-16", "replace").encode())
            else:
                yield raw
    except IsADirectoryError:
        raise UnreadableError("no permission to read this folder") from None
    except PermissionError:
        raise UnreadableError("no permission to read it") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as problem:
        reason = getattr(problem, "strerror", None) or " ".join(str(problem).split())
        raise UnreadableError(f"it cannot be read: {reason}") from None


def _refuse_archive(head: bytes) -> None:
    """Say of an archive that it has to be unpacked.

    Args:
        head: its first bytes.
    """
    kind = next((name for begin, name in ARCHIVES.items() if head.startswith(begin)), None)
    if head[TAR_AT:].startswith(TAR):
        kind = "a tar archive"
    if kind is not None:
        raise UnreadableError(f"it is {kind}: unpack it, and read the folder")


def is_text(head: bytes) -> bool:
    """True for the first bytes of a text: a file that was cut off at its front may begin with NULs."""
    letters = head.replace(b"\0", b"").decode("utf-8", "ignore")
    odd = sum(letter < " " and letter not in "\t\n\r\x1b\x08\x0c" for letter in letters)
    lost = len(head.replace(b"\0", b"")) - len(letters.encode())
    return bool(letters) and odd + lost <= ODD * len(letters)


def whole(content: IO[bytes], budget: Budget) -> bytes:
    """All of a file.

    Raises:
        UnreadableError: it is larger than a dump can be.
    """
    data = content.read(WHOLE + 1)
    budget.take(len(data))
    if len(data) > WHOLE:
        raise UnreadableError(f"it has more than {WHOLE >> 30} GB, which no dump has")
    return data


def pieces(content: IO[bytes], budget: Budget) -> Iterator[bytes]:
    """A text, some whole lines at a time; of a line without an end its first part."""
    rest = b""
    while data := content.read(PIECE):
        budget.take(len(data))
        whole_lines, newline, begun = data.rpartition(b"\n")
        if newline:
            yield rest + whole_lines
            rest = begun
        elif len(rest) < PIECE:
            rest += data
    if rest:
        yield rest
