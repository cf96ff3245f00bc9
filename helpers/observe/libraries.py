"""The source of a library's function in which ranks have gone different ways. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..model.facts import ProcessView, RankView
from ..model.frames import Frame
from .source import Sources

RESTS_AFTER = 0.5
"""Seconds after which a rank is at a line long enough for a library's source to be read."""


def readable(views: Sequence[RankView], sources: Sources) -> list[RankView]:
    """The ranks, with the source of the outermost function in which they are at different lines."""
    resting = [
        view.process
        for view in views
        if view.process is not None and view.process.alive and view.process.still >= RESTS_AFTER
    ]
    at = _divergence(resting)
    if at is None:
        return list(views)
    return [
        replace(view, process=_with_source(view.process, at, sources))
        if view.process in resting
        else view
        for view in views
    ]


def _divergence(processes: Sequence[ProcessView]) -> int | None:
    """How far out, counted from the end of a stack, the frames differ in nothing but their lines."""
    stacks = [reversed(process.stack) for process in processes]
    for at, frames in enumerate(zip(*stacks, strict=False), start=1):
        if len({*frames}) > 1:
            functions = {(frame.file, frame.function, frame.user) for frame in frames}
            return at if len(functions) == 1 and not frames[0].user else None
    return None


def _with_source(process: ProcessView | None, at: int, sources: Sources) -> ProcessView | None:
    if process is None:
        return None
    stack: list[Frame] = list(process.stack)
    stack[-at] = replace(stack[-at], text=sources.text(stack[-at].file))
    return replace(process, stack=tuple(stack))
