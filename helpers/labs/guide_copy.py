"""The files of the guide: where they came with the package, and a copy of them that is a user's own."""

from __future__ import annotations

import filecmp
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

START = "notebooks/index.ipynb"
"""The page of a copy that is read first."""

PAGES = ("diagnose/causes", "diagnose/topics")
"""Folders of the package whose pages the lessons link to, as `helpers/diagnose/...`."""

MADE_BY_RUNS = (".*", "__pycache__", "your_turn*", "stuck-ranks-saved", "*.py[co]")
"""Names of files and folders in a checkout that are a learner's, and not the guide's."""


@dataclass(frozen=True)
class Copied:
    """What has become of the files of a copy.

    Attributes:
        written: those that were not there, or have been replaced.
        kept: those that differ from the guide's, and were left as they are.
    """

    written: tuple[Path, ...]
    kept: tuple[Path, ...]


def shipped(name: str) -> Path:
    """A folder that came with this package: inside it when it is installed, beside it in a checkout."""
    inside = PACKAGE / name
    return inside if inside.is_dir() else PACKAGE.parent / name


def copy_guide(folder: Path, *, overwrite: bool = False) -> Copied:
    """Copy the guide to a folder, with the pages that its lessons link to.

    Args:
        folder: made where it is not there. What is in it stays, but for what `overwrite` replaces.
        overwrite: True replaces files that differ from the guide's.

    Raises:
        OSError: something cannot be written; what has been copied stays.
    """
    written, kept = list[Path](), list[Path]()
    for source, place in _files():
        target = folder / place
        if target.exists() and filecmp.cmp(source, target, shallow=False):
            continue
        if target.exists() and not overwrite:
            kept.append(place)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        written.append(place)
    return Copied(tuple(written), tuple(kept))


def copy_around(folder: Path) -> Path | None:
    """The notebooks of the copy in which a folder is, or which it holds; None where there is none."""
    for parent in (folder, *folder.parents):
        for notebooks in (parent, parent / "notebooks"):
            if (notebooks / "index.ipynb").is_file() and any(notebooks.glob("*/lab.toml")):
                return notebooks
    return None


def _files() -> Iterator[tuple[Path, Path]]:
    """Each file of the guide, and its place in a copy."""
    roots = [(shipped(name), Path(name)) for name in ("notebooks", "docs")]
    roots += [(PACKAGE / name, Path("helpers", name)) for name in PAGES]
    for root, place in roots:
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(filter(_is_guide, folders))
            for name in sorted(filter(_is_guide, names)):
                source = Path(folder, name)
                if place.parts[0] != "helpers" or source.suffix == ".md":
                    yield source, place / source.relative_to(root)


def _is_guide(name: str) -> bool:
    return not any(fnmatch(name, pattern) for pattern in MADE_BY_RUNS)
