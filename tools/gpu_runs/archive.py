"""The folder of a `make gpu`, and the archive in which it travels."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path

from .plan import PARTS

NAME = "gpu.tar.gz"

ROWS = "rows.jsonl"
"""What came of each run, a line each."""


class ArchiveError(Exception):
    """An archive cannot be read; the text says why in one sentence."""


def kept(folder: Path) -> Iterator[Path]:
    """The rows, the reports and the recordings of a folder."""
    for pattern in (ROWS, *(f"{part}-*.json*" for part in PARTS)):
        yield from sorted(folder.glob(pattern))


def clear(folder: Path) -> None:
    """Remove what an earlier run has left in a folder."""
    for file in kept(folder):
        file.unlink()


def write(file: Path, folder: Path, text: str) -> None:
    """Write the page to a file, and the archive of page and folder into the folder."""
    file.write_text(text)
    growing = folder / f".{NAME}"
    with tarfile.open(growing, "w:gz") as archive:
        archive.add(file, file.name)
        for one in kept(folder):
            archive.add(one, f"gpu/{one.name}")
    growing.replace(folder / NAME)


def unpack(file: Path, folder: Path) -> None:
    """Put the page of an archive into a folder, and the rest into `gpu` in it.

    Raises:
        ArchiveError: it is not there, or is none of `write`.
    """
    try:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data")
    except (OSError, tarfile.TarError) as problem:
        raise ArchiveError(f"{file} cannot be unpacked: {problem}") from None
