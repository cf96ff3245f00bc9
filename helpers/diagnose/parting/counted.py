"""Whether two ranks are in the same turn of a loop, by the calls that each turn makes. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...model.frames import Frame
from ...model.issued import IssuedCall
from .blocks import Function, function_of, own_nodes, path
from .turns import Turns

Stack = Sequence[Frame]

Made = Mapping[IssuedCall, int]
"""How often a rank has made each call, from the first of a group on."""


def in_step(turns: Turns, one: Stack, other: Stack, mine: Made, its: Made) -> bool:
    """True when some call that every turn makes, whatever it decides, has been made equally often.

    Args:
        one, other: where both ranks are, outermost frame first: inside of these turns.
        mine, its: what both have made, with the call in which they are.
    """
    lines = sorted((one[turns.frame].line, other[turns.frame].line))
    return any(
        mine[call] == its[call] and not lines[0] < line <= lines[1]
        for call, line in _of_every_turn(turns, one, mine.keys() & its.keys())
    )


def turns_made(turns: Turns, here: Stack, mine: Made, its: Made) -> Iterator[tuple[int, int]]:
    """The turns before that of `here`, and all of a rank that has left them, by each call of every turn.

    Args:
        here: where a rank is, inside of these turns.
        mine, its: what it and the one that has left have made.
    """
    if not its:
        return
    line = here[turns.frame].line
    for call, made_at in _of_every_turn(turns, here, mine.keys()):
        yield mine[call] - (made_at <= line), its.get(call, 0)


def _of_every_turn(
    turns: Turns, stack: Stack, calls: Iterable[IssuedCall]
) -> Iterator[tuple[IssuedCall, int]]:
    """The calls that each of these turns makes, whatever it decides, and their lines in its function."""
    inside = stack[turns.frame]
    function = function_of(inside) if inside.user else None
    outer = [frame for frame in stack[: turns.frame] if frame.user]
    for call in calls if function is not None else ():
        made = [frame for frame in reversed(call.stack) if frame.user]
        if function is None or made[: len(outer)] != outer or len(made) <= len(outer):
            continue
        at, *below = made[len(outer) :]
        same = (at.file, at.function, at.text) == (inside.file, inside.function, inside.text)
        if same and _in_every_turn(function, at.line, turns.loop) and all(map(_always_reached, below)):
            yield call, at.line


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
