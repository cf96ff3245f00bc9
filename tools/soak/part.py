"""What one measurement of `make soak` hands on to its page."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """One section of the page.

    Attributes:
        title: of the section.
        lines: its Markdown.
        faults: what went wrong, one sentence each; empty where all is well.
    """

    title: str
    lines: tuple[str, ...]
    faults: tuple[str, ...]
