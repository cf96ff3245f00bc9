"""The functions that are known to have been called, each with the calls that led to it. No I/O."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from ...model.frames import Frame
from ...program.blocks import function_of
from ...program.condition import Values
from ...program.flow import Flow, flow_of

Stack = Sequence[Frame]
"""Frames, outermost first."""

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")

IS_MAIN = {"__name__": "__main__"}
"""What is known of the names of the program that was started."""


@dataclass(eq=False)
class Context:
    """A function, called by a way that is known.

    Attributes:
        number: tells it from others; frame: one that ran it.
        parent: what called it; steps: of the parent, at which it did.
        through_library: True where code in between decides whether and how often it is called.
    """

    number: int
    frame: Frame
    flow: Flow
    parent: Context | None = None
    steps: frozenset[int] = frozenset()
    through_library: bool = False
    children: list[Context] = field(default_factory=list, repr=False)

    @property
    def lineage(self) -> tuple[Context, ...]:
        """The contexts that lead to it, the outermost first, and itself."""
        return (*self.parent.lineage, self) if self.parent is not None else (self,)

    @functools.cached_property
    def is_called_once(self) -> bool:
        """True where nothing can lead to it a second time."""
        if self.parent is None:
            return True
        again = any(self.parent.flow.leads(step, self.steps) for step in self.steps)
        return not again and not self.through_library and self.parent.is_called_once

    def frame_in(self, stack: Stack) -> Frame | None:
        """The frame of a stack that runs it; None where the rank has left it."""
        frames = followed(stack)
        depth = len(self.lineage) - 1
        if len(frames) <= depth or function_of(frames[depth]) is not self.flow.function:
            return None
        return frames[depth]


@dataclass(frozen=True)
class Place:
    """Where a rank is, or was when it made a call.

    Attributes:
        steps: of the context, at which it is; below: what is further in, and cannot be followed.
        op: the collective.
        frames: those that are followed, outermost first, with what was known then of their names.
    """

    context: Context
    steps: frozenset[int]
    below: Stack = ()
    op: str = ""
    frames: Stack = field(default=(), compare=False)

    @property
    def spots(self) -> Iterator[tuple[Context, int]]:
        """The steps at which it may be, each with its context."""
        yield from ((self.context, step) for step in self.steps)

    def shared(self, peer_place: Place) -> list[Context]:
        """The contexts that lead to both of two places, the outermost first."""
        levels = zip(self.context.lineage, peer_place.context.lineage, strict=False)
        return [context for context, peer_context in levels if context is peer_context]

    @property
    def levels(self) -> Iterator[tuple[Context, frozenset[int]]]:
        """Each context, the outermost first, with the steps at which it was."""
        lineage = self.context.lineage
        return zip(lineage, [*(inner.steps for inner in lineage[1:]), self.steps], strict=True)

    @property
    def values(self) -> Iterator[tuple[Context, frozenset[int], Values]]:
        """Of each context, the outermost first, where it was, and what was known of its names."""
        for (context, at), frame in zip(self.levels, self.frames, strict=False):
            main = IS_MAIN if context.parent is None else {}
            yield context, at, {**main, **frame.values}


def followed(stack: Stack) -> Stack:
    """The frames that may be followed: the user's, and those of libraries whose source is known."""
    return tuple(frame for frame, _ in _followed(stack))


def _followed(stack: Stack) -> list[tuple[Frame, list[str]]]:
    """Each frame that may be followed, and the functions it has called, down to the next one.

    A comprehension that has a frame of its own, before Python 3.12, is a part of the one around it.
    """
    frames: list[tuple[Frame, list[str]]] = []
    for frame in stack:
        if frames and frame.function in COMPREHENSIONS and frame.file == frames[-1][0].file:
            frames[-1] = replace(frames[-1][0], line=frame.line), []
            continue
        if frames:
            frames[-1][1].append(frame.function)
        if frame.user or frame.text:
            frames.append((frame, []))
    return frames


def users_of(stack: Stack) -> Stack:
    """The frames of the user's own code."""
    return tuple(frame for frame in stack if frame.user)


class Contexts:
    """All contexts of some stacks."""

    def __init__(self) -> None:
        self.roots: list[Context] = []
        self._number = itertools.count()

    def place(self, stack: Stack, op: str = "") -> Place | None:
        """Where the innermost frame is whose function can be read; None where none can.

        Frames of libraries are followed where their source is known.
        """
        context: Context | None = None
        steps: frozenset[int] = frozenset()
        levels = _followed(stack)
        frames = tuple(frame for frame, _ in levels)
        for depth, (frame, names) in enumerate(levels):
            function = function_of(frame)
            if function is None:
                return None if context is None else Place(context, steps, frames[depth:], op, frames)
            context = self._context(context, steps, frame, flow_of(function))
            steps = context.flow.at(frame.line, [*names, op] if depth + 1 == len(levels) else names)
            if not steps:
                return None
        return None if context is None else Place(context, steps, (), op, frames)

    def _context(
        self, parent: Context | None, steps: frozenset[int], frame: Frame, flow: Flow
    ) -> Context:
        among = parent.children if parent is not None else self.roots
        for context in among:
            if context.flow is flow and context.steps == steps:
                return context
        direct = parent is not None and any(parent.flow.steps[n].calls(frame.function) for n in steps)
        context = Context(
            next(self._number), frame, flow, parent, steps, parent is not None and not direct
        )
        among.append(context)
        return context
