"""One part of the page that `make soak` writes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Part:
    """What was measured of one promise.

    Attributes:
        title: of its section.
        lines: Markdown.
        faults: what is not as promised, one sentence each.
    """

    title: str
    lines: tuple[str, ...]
    faults: tuple[str, ...]
