"""Whether two ranks are in the same turn of a loop, by the calls that each turn makes. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...model.frames import Frame
from ...model.issued import IssuedCall
from ...program.blocks import function_of, path
from ...program.syntax import Function, own_nodes
from ...program.turns import Turns

Stack = Sequence[Frame]

Made = Mapping[IssuedCall, int]
"""How often a rank has made each call, from the first of a group on."""


def turns_of_both(
    turns: Turns, one: Stack, other: Stack, mine: Made, its: Made
) -> Iterator[tuple[int, int]]:
    """The turns that two ranks have begun, by each call that every turn makes, whatever it decides.

    A call tells when both ranks have come past it in the turn in which they are, or both have not.

    Args:
        one, other: where both ranks are, outermost frame first: inside of these turns.
        mine, its: what both have made, with the call in which they are.
    """
    for call, frames in _of_every_turn(turns, one, mine.keys() & its.keys()):
        passed = [_is_past(stack, turns, frames) for stack in (one, other)]
        if None not in passed and passed[0] == passed[1]:
            yield mine[call], its[call]


def turns_made(turns: Turns, here: Stack, mine: Made, its: Made) -> Iterator[tuple[int, int]]:
    """The turns before that of `here`, and all of a rank that has left them, by each call of every turn.

    Args:
        here: where a rank is, inside of these turns.
        mine, its: what it and the one that has left have made.
    """
    if not its:
        return
    for call, frames in _of_every_turn(turns, here, mine.keys()):
        passed = _is_past(here, turns, frames)
        if passed is not None:
            yield mine[call] - passed, its.get(call, 0)


def made_inside(node: ast.AST, at: int, here: Stack, made: Made) -> Iterator[IssuedCall]:
    """The calls that have been made in the part of a statement in which a rank is.

    Args:
        at: the frame of that rank that runs the statement; made: the calls, perhaps of another rank.
    """
    function = function_of(here[at])
    part = _part(function, node, here[at].line)
    for call, (inside, *_) in _from_there_on(here, at, made if part else ()):
        if function_of(inside) is function and _part(function, node, inside.line) == part:
            yield call


def _from_there_on(
    stack: Stack, at: int, calls: Iterable[IssuedCall]
) -> Iterator[tuple[IssuedCall, Sequence[Frame]]]:
    """Calls that the same lines have led to, out from a frame, each with its frames from there on."""
    lead = [frame for frame in stack[:at] if frame.user]
    for call in calls:
        frames = [frame for frame in reversed(call.stack) if frame.user]
        if frames[: len(lead)] == lead and len(frames) > len(lead):
            yield call, frames[len(lead) :]


def _part(function: Function | None, node: ast.AST, line: int) -> str:
    steps = path(function, line) if function is not None else ()
    return next((step.part for step in steps if step.node is node), "")


def _is_past(stack: Stack, turns: Turns, made: Sequence[Frame]) -> bool | None:
    """True for a rank that has come to a call in its turn; None where two calls of one line led there.

    Args:
        made: the frames of the call, from that with the turns on.
    """
    place = [frame for frame in stack[turns.frame :] if frame.user]
    for at, frame in zip(place, made, strict=False):
        if (at.file, at.function, at.text) != (frame.file, frame.function, frame.text):
            return None
        if at.line != frame.line:
            return frame.line < at.line
    return True if len(place) == len(made) else None


def _of_every_turn(
    turns: Turns, stack: Stack, calls: Iterable[IssuedCall]
) -> Iterator[tuple[IssuedCall, Sequence[Frame]]]:
    """The calls that each of these turns makes, whatever it decides, and their frames from there on."""
    inside = stack[turns.frame]
    function = function_of(inside) if inside.user else None
    if function is None:
        return
    for call, (at, *below) in _from_there_on(stack, turns.frame, calls):
        same = (at.file, at.function, at.text) == (inside.file, inside.function, inside.text)
        if same and _in_every_turn(function, at.line, turns.loop) and all(map(_always_reached, below)):
            yield call, (at, *below)


def _in_every_turn(function: Function, line: int, loop: ast.stmt | None) -> bool:
    """True for a line that each turn of a loop comes to, or each call of the function without one."""
    steps = path(function, line)
    if loop is not None:
        at = next((n for n, step in enumerate(steps) if step.node is loop and step.part == "body"), None)
        if at is None:
            return False
        steps = steps[at + 1 :]
    around: ast.AST = function if loop is None else loop
    unconditional = all(not step.part or isinstance(step.node, ast.With) for step in steps)
    aside = ast.Return | ast.Continue | ast.Break if loop is not None else ast.Return
    return unconditional and not any(
        isinstance(node, aside) and node.lineno < line for node in own_nodes(around)
    )


def _always_reached(frame: Frame) -> bool:
    function = function_of(frame)
    return function is not None and _in_every_turn(function, frame.line, None)
