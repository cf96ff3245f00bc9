"""The page of each cause: what it means, how it is recognised, why it happens, what to do.

A page is a Markdown file in `causes/`, named as its cause with `_` for `-`. It uses a small part of
Markdown: headings, paragraphs, lists and `code`. `topics/` has pages of what people ask about that is no
cause of its own.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec

from ..model.terms import TERMS
from .diagnose import CAUSES

HEADINGS = ("How it is recognised", "Why it happens", "The fix", "How to confirm", "References")
TOPICS = ("gpu-memory", "hardware", "ended-from-outside", "short-timeout")

WORDS = {
    "oom": "out-of-memory",
    "killed": "out-of-memory",
    "exitcode -9": "out-of-memory",
    "shm": "out-of-memory",
    "bus error": "out-of-memory",
    "cuda out of memory": "gpu-memory",
    "sigkill": "rank-crashed",
    "sigsegv": "rank-crashed",
    "segfault": "rank-crashed",
    "segmentation fault": "rank-crashed",
    "sigabrt": "rank-crashed",
    "sigterm": "ended-from-outside",
    "time limit": "ended-from-outside",
    "preempted": "ended-from-outside",
    "evicted": "ended-from-outside",
    "ctrl c": "ended-from-outside",
    "keyboardinterrupt": "ended-from-outside",
    "timeout": "short-timeout",
    "nccl timeout": "short-timeout",
    "watchdog": "short-timeout",
    "ecc": "hardware",
    "xid": "hardware",
    "nvlink": "hardware",
    "eaddrinuse": "address-in-use",
    "port": "address-in-use",
    "dataloader": "worker-stall",
    "master addr": "rendezvous-incomplete",
    "deadlock": "collective-mismatch",
    "desync": "collective-mismatch",
}
"""Words that people use -> the page that tells of it."""

OTHER_WORDS = {
    "culprit": "odd one out",
    "culprits": "odd one out",
    "parting": "parted",
    "guards": "guard",
}
"""Words of the JSON report -> the term that explains them."""

_URL = re.compile(r"https?://[^\s<>()]+")


_FIX = re.compile(r"^\d+\. ", re.MULTILINE)
_COMMENT = re.compile(r"\s*<!--\s*([^:>]+):\s*(.*?)\s*-->", re.DOTALL)


class UnknownCauseError(KeyError):
    """There is no page for this cause or word; the message lists those that have one."""

    def __str__(self) -> str:
        return str(self.args[0])


class Fix(msgspec.Struct, frozen=True):
    """One of the fixes of a page.

    Attributes:
        text: in Markdown, in one line.
        fits: when it fits, and how it is said then, in the user's own lines (see `fixes`).
    """

    text: str
    fits: tuple[tuple[str, str], ...]


class Page(msgspec.Struct, frozen=True):
    """One page.

    Attributes:
        meaning: one sentence.
        why, fix, confirm: Markdown, the headings left out.
        fixes: each of those in `fix`, by itself.
        references: the addresses, in the order of the page.
        file: the page's own, in Markdown.
        markdown: all that is in it, but for its comments.
    """

    cause: str
    meaning: str
    why: str
    fix: str
    fixes: tuple[Fix, ...]
    confirm: str
    references: tuple[str, ...]
    file: Path
    markdown: str


def names() -> list[str]:
    """The causes that have a page, in the order in which they are tried."""
    return list(CAUSES)


def explained(word: str) -> str:
    """The page of a cause, or of what people call it, or what a word of the report means, in Markdown.

    Raises:
        UnknownCauseError: there is none.
    """
    plain = re.sub(r"[-_\s]+", " ", word.strip().casefold())
    name = WORDS.get(plain, plain.replace(" ", "-"))
    if name in TOPICS:
        file = Path(__file__).with_name("topics") / f"{name.replace('-', '_')}.md"
        return file.read_text(encoding="utf-8")
    term = OTHER_WORDS.get(plain, plain)
    return f"# {term}\n\n{TERMS[term]}" if term in TERMS else page(name).markdown


def overview() -> str:
    """Every page in one line: its name and what it means."""
    meanings = {name: page(name).meaning for name in names()}
    for name in TOPICS:
        lines = explained(name).splitlines()
        meanings[name] = " ".join(lines[2 : lines.index("", 2)]).partition(". ")[0].rstrip(".") + "."
    wide = max(map(len, meanings))
    return "\n".join(f"{name:<{wide}}  {meaning}" for name, meaning in meanings.items())


@cache
def page(cause: str) -> Page:
    """Reads the page of a cause.

    Args:
        cause: `file-lock`, for example.

    Raises:
        UnknownCauseError: there is no such page.
    """
    if cause not in names():
        listed = ", ".join((*names(), *TOPICS))
        raise UnknownCauseError(f"There is no cause {cause!r}; there are {listed}.")
    file = Path(__file__).with_name("causes") / f"{cause.replace('-', '_')}.md"
    source = file.read_text(encoding="utf-8")
    markdown = _COMMENT.sub("", source)
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
        fixes=_fixes(source),
        confirm=confirm,
        references=tuple(_URL.findall(references)),
        file=file,
        markdown=markdown,
    )


def _fixes(source: str) -> tuple[Fix, ...]:
    """The numbered fixes of a page, with what stands in comments after each."""
    listed = source.partition("## The fix")[2].partition("\n## ")[0]
    fixes = []
    for item in _FIX.split(listed)[1:]:
        text = _COMMENT.sub("", item).strip().partition("\n\n")[0]
        fits = (
            (" ".join(when.split()), " ".join(text.split())) for when, text in _COMMENT.findall(item)
        )
        fixes.append(Fix(" ".join(text.split()), tuple(fits)))
    return tuple(fixes)
