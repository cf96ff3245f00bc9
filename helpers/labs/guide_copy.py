"""The files of the guide, as they came with the package, and a copy of them that is a user's own.

In a checkout they lie beside the package. A wheel has them in one archive, which setup.py makes of what
`guide_files` finds: the tool alone is to stay small, and lessons are not run where packages are.
"""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import msgspec

PACKAGE = Path(__file__).resolve().parents[1]
CHECKOUT = PACKAGE.parent
ARCHIVE = PACKAGE / "guide.tar.xz"

START = "notebooks/index.ipynb"
"""The page of a copy that is read first."""

FOLDERS = ("notebooks", "docs", "helpers/diagnose/causes", "helpers/diagnose/topics")
"""Folders of a checkout that a copy has, too: the lessons, and what they link to."""

LEFT_OUT = (".*", "__pycache__", "your_turn*", "stuck-ranks-saved", "*.png")
"""Names in `notebooks` that are a learner's and not the guide's; and pictures of the README."""


class Copied(msgspec.Struct, frozen=True):
    """What has become of the files of a copy.

    Attributes:
        written: those that were not there, or have been replaced.
        conflicts: those that differ from the guide's, and were left as they are.
    """

    written: tuple[Path, ...]
    conflicts: tuple[Path, ...]


def copy_guide(folder: Path, *, overwrite: bool = False) -> Copied:
    """Copy the guide to a folder, with the pages that its lessons link to.

    Args:
        folder: made where it is not there. What is in it stays, but for what `overwrite` replaces.
        overwrite: True replaces files that differ from the guide's.

    Raises:
        OSError: something cannot be written; what has been copied stays.
        tarfile.TarError: this Python cannot unpack the archive.
    """
    written, conflicts = list[Path](), list[Path]()
    for place, content in guide_files():
        target = folder / place
        if target.is_file() and target.read_bytes() == content:
            continue
        if os.path.lexists(target) and not overwrite:
            conflicts.append(place)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        written.append(place)
    return Copied(tuple(written), tuple(conflicts))


def copy_around(folder: Path) -> Path | None:
    """The notebooks of the copy in which a folder is, or which it holds; None where there is none."""
    for parent in (folder, *folder.parents):
        for notebooks in (parent, parent / "notebooks"):
            if (notebooks / "index.ipynb").is_file() and any(notebooks.glob("*/lab.toml")):
                return notebooks
    return None


def guide_files() -> Iterator[tuple[Path, bytes]]:
    """Each file of the guide: its place in a copy, and its content."""
    if ARCHIVE.is_file():
        yield from _packed()
        return
    for root in FOLDERS:
        for folder, folders, names in os.walk(CHECKOUT / root):
            folders[:] = sorted(filter(_is_guide, folders))
            for name in sorted(filter(_is_guide, names)):
                file = Path(folder, name)
                if file.suffix == ".md" or not root.startswith("helpers"):
                    yield file.relative_to(CHECKOUT), file.read_bytes()


def _packed() -> Iterator[tuple[Path, bytes]]:
    """The files of the archive, in which recordings are packed together and not each by itself."""
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None, "setup.py adds files only"
            content = file.read()
            place = Path(member.name)
            yield place, gzip.compress(content, mtime=0) if place.suffix == ".gz" else content


def _is_guide(name: str) -> bool:
    return not any(fnmatch(name, pattern) for pattern in LEFT_OUT)
