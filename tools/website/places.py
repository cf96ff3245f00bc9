"""Where a file of this repository is in the site."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]

FRONT = "front"
"""Stands for the first page, which is no file of the repository."""

GUIDE = "notebooks/index.ipynb"
CAUSES = "helpers/diagnose/causes"
HANGS = "notebooks/practice/hangs"

COPIED = (".svg", ".png")
"""Suffixes of files that are no pages: they are taken over as they are."""

_RULES = (
    (rf"{FRONT}", "index.html"),
    (rf"{GUIDE}", "guide.html"),
    (rf"{CAUSES}", "causes/index.html"),
    (r"helpers/diagnose/(?:causes|topics)/(\w+)\.md", r"causes/\1.html"),
    (rf"{HANGS}/(\d+)", r"practice/\1.html"),
    (r"(?:notebooks/)?(.+)\.(?:ipynb|md)", r"\1.html"),
    (r"(?:notebooks/)?(.+\.(?:svg|png))", r"\1"),
    (r"(?:notebooks/)?(.+\.\w+)", r"\1.html"),
)
"""Patterns of sources -> their places. The first that matches counts; other folders have none."""


def place_of(source: str) -> str | None:
    """The place of a source, as a path from the root of the site; None for one that is not in it.

    Args:
        source: a path from the root of the repository, or one of the names above.
    """
    for pattern, place in _RULES:
        found = re.fullmatch(pattern, source)
        if found:
            return found.expand(place)
    return None


def relative(place: str, page: str) -> str:
    """The address of a place in a link of a page."""
    return str(PurePosixPath(*[".."] * page.count("/"), place))
