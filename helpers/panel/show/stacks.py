"""The stack of one process: the user's own lines first, with their source. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.facts import Frame, ProcessView
from ...model.wording import activities, place_in, stack_of
from ...report.markup import code, text
from ...report.source_lines import Sources
from .ranks import state_mark


def stack(name: str, process: ProcessView | None, sources: Sources) -> str:
    """Where a process stands; where it failed, when an error has ended it.

    Args:
        name: what the panel calls it.
        process: None for one that is not there.
        sources: gives the text of the user's lines.
    """
    if process is None:
        return f"<p>{text(name)} is not there.</p>"
    frames = stack_of(process)
    said = "; ".join(activities(process))
    head = f"<p><strong>{text(name)}</strong> {state_mark(process.state, process)} {text(said)}</p>"
    if not frames:
        why = "it has no beacon" if not process.beacon else "it has told of none yet"
        return f"{head}<p>No stack: {why}.</p>"
    own = [frame for frame in frames if frame.user]
    parts = [head]
    if own:
        parts.append(f"<p>Your own lines, the innermost first</p>{_frames(own, sources)}")
    if len(own) < len(frames):
        parts.append(f"<p>The whole stack, the innermost first</p>{_frames(frames, None)}")
    return "".join(parts)


def _frames(frames: Sequence[Frame], sources: Sources | None) -> str:
    rows = []
    for frame in frames:
        line = sources.line(frame) if sources else ""
        shown = f'<br><span class="sr-source">{text(line)}</span>' if line else ""
        look = "" if frame.user else ' class="sr-library"'
        rows.append(f"<li{look}>{code(place_in(frame))}{shown}</li>")
    return f'<ol class="sr-stack">{"".join(rows)}</ol>'
