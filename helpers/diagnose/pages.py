"""The page of each cause: what it means, how it is recognised, why it happens, what to do.

A page is a Markdown file in `causes/`, named as its cause with `_` for `-`. It uses a small part of
Markdown: headings, paragraphs, lists and `code`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .diagnose import CAUSES

HEADINGS = ("How it is recognised", "Why it happens", "The fix", "How to confirm", "References")
_URL = re.compile(r"https?://[^\s<>()]+")


class UnknownCauseError(KeyError):
    """There is no page for this cause; the message lists the causes that have one."""

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        meaning: one sentence.
        why, fix, confirm: Markdown, the headings left out.
        references: the addresses, in the order of the page.
        file: the page's own, in Markdown.
        markdown: all that is in it.
    """

    cause: str
    meaning: str
    why: str
    fix: str
    confirm: str
    references: tuple[str, ...]
    file: Path
    markdown: str


def names() -> list[str]:
    """The causes that have a page, in the order in which they are tried."""
    return list(CAUSES)


@cache
def page(cause: str) -> Page:
    """Reads the page of a cause.

    Args:
        cause: `file-lock`, for example.

    Raises:
        UnknownCauseError: there is no such page.
    """
    if cause not in names():
        raise UnknownCauseError(f"There is no cause {cause!r}; the causes are {', '.join(names())}.")
    file = Path(__file__).with_name("causes") / f"{cause.replace('-', '_')}.md"
    markdown = file.read_text(encoding="utf-8")
    head, *sections = re.split(r"^## +", markdown, flags=re.MULTILINE)
    by_title = {}
    for section in sections:
        title, _, body = section.partition("\n")
        by_title[title.strip()] = body.strip()
    _recognised, why, fix, confirm, references = (by_title[title] for title in HEADINGS)
    return Page(
        cause=cause,
        meaning=" ".join(head.partition("\n")[2].split()),
        why=why,
        fix=fix,
        confirm=confirm,
        references=tuple(_URL.findall(references)),
        file=file,
        markdown=markdown,
    )
