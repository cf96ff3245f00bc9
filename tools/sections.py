"""A page of measurements, of which each section can be written by itself."""

from __future__ import annotations

import re
from pathlib import Path


def put(page: Path, title: str, section: str) -> None:
    """Add a section to a page, or put it in the place of the one with the same heading.

    Args:
        title: of the page.
        section: Markdown; its first line is its heading, of the second level.
    """
    text = page.read_text() if page.exists() else f"# {title}\n\n"
    head, *known = re.split(r"^(?=## )", text, flags=re.MULTILINE)
    sections = {one.partition("\n")[0]: one.strip() for one in [*known, section]}
    page.write_text(head + "\n\n".join(sections.values()) + "\n")
