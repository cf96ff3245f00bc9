"""The stack of one process: the user's own lines first, with their source."""

from __future__ import annotations

from ...model.facts import ProcessView
from ...model.wording import activities, stack_of
from ...report.source_lines import Sources
from .templates import html


def stack(name: str, process: ProcessView, sources: Sources) -> str:
    """Where a process is; where it failed, when an error has ended it.

    Args:
        name: what the panel calls it.
        sources: gives the text of the user's lines.
    """
    frames = stack_of(process)
    own = [(frame, sources.line(frame)) for frame in frames if frame.user]
    whole = [(frame, "") for frame in frames]
    return html("stack", name, process, "; ".join(activities(process)), own, whole)
