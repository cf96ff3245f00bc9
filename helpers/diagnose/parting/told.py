"""How a statement at which ranks parted is told: its source, its ways, the values. No I/O."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...model.frames import Frame, Scalar, innermost_user
from ...model.parting import Branch, Parting
from ...model.redaction import Source
from ...model.wording import one_line
from ...program.blocks import function_of, path
from ...program.condition import names
from ...program.syntax import Loop
from ...program.turns import counters
from .choice import Place
from .statement import Parted, Stack

_COMMENT = re.compile(r":\s*#[^'\"]*$")
"""What follows the colon of a head."""

EXCEPTION = "sys.exception()"

LONGEST = 200
"""Characters of a statement that are quoted."""


def told(
    statement: Parted,
    stacks: Mapping[int, Stack],
    here: int,
    branches: Mapping[str, Sequence[int]],
) -> Parting:
    """The statement, who went which way, and the values that can be read.

    Args:
        stacks: of all ranks, outermost frame first.
        here: a rank that has the frame of the statement.
        branches: label -> the ranks that have gone that way.
    """
    frame = stacks[here][statement.frame]
    values: dict[str, dict[int, str]] = {}
    for rank, stack in sorted((rank, stacks[rank]) for ranks in branches.values() for rank in ranks):
        for name, value in _values(statement, rank, stack).items():
            values.setdefault(name, {})[rank] = repr(value)
    return Parting(
        kind=statement.kind,
        where=replace(frame, line=statement.node.lineno),
        source=_source(statement, frame),
        branches=tuple(
            Branch(label, tuple(sorted(ranks)), _led_to(statement, stacks[min(ranks)]))
            for label, ranks in branches.items()
        ),
        asked=tuple(dict.fromkeys(name for asked in statement.asked for name in names(asked))),
        values=values,
        differ=tuple(name for name, told in values.items() if len({*told.values()}) > 1),
    )


def _values(statement: Parted, rank: int, stack: Stack) -> dict[str, Scalar]:
    """What can be read on a rank of what the statement asks, counts or handles."""
    found: dict[str, Scalar] = {}
    for asked in statement.asked:
        known = Place(rank, stack).then(statement, asked)
        found |= {name: known[name] for name in names(asked) if name in known}
    inside = statement.frame_in(stack)
    if inside is None:
        return found
    counted = counters(statement.node) if isinstance(statement.node, Loop) else ()
    found |= {one.name: inside.values[one.name] for one in counted if one.name in inside.values}
    handled = _handled(statement, inside, stack) if statement.kind == "try" else None
    return found if handled is None else {**found, EXCEPTION: handled}


def _led_to(statement: Parted, stack: Stack) -> Frame | None:
    """The line of a rank in the function of a statement, else its innermost."""
    return statement.frame_in(stack) or innermost_user(stack[::-1])


def _handled(statement: Parted, frame: Frame, stack: Stack) -> Scalar:
    """The exception that a rank handles, where it is in a handler of the statement."""
    steps = path(statement.function, frame.line)
    inside = any(step.node is statement.node and step.part.startswith("handler") for step in steps)
    innermost = innermost_user(stack[::-1])
    return innermost.values.get(EXCEPTION) if inside and innermost is not None else None


def _source(statement: Parted, frame: Frame) -> str:
    """The statement in one line; before a `return` or an exit the head of what is around it."""
    lines = frame.text.splitlines()
    node = statement.node
    if statement.kind in ("return", "exit"):
        function = function_of(frame)
        guards = path(function, node.lineno)[:-1] if function is not None else ()
        heads = [_head(guards[-1].node, lines)] if guards else []
        return Source(one_line(Source(" ".join([*heads, _head(node, lines)])))[:LONGEST])
    return Source(one_line(Source(_head(node, lines)))[:LONGEST])


def _head(node: ast.stmt | ast.expr, lines: Sequence[str]) -> str:
    """The text of a statement up to its first part, without what is said in a comment."""
    body = getattr(node, "body", None)
    cases = getattr(node, "cases", None)
    last, column = node.end_lineno or node.lineno, node.end_col_offset
    if isinstance(body, list) and body:
        last, column = max(node.lineno, body[0].lineno - 1), None
    elif cases:
        last, column = max(node.lineno, cases[0].pattern.lineno - 1), None
    told = [line.strip() for line in lines[node.lineno - 1 : last]]
    if column is not None and last == node.lineno:
        told = [lines[last - 1].encode()[node.col_offset : column].decode(errors="replace")]
    return _COMMENT.sub(":", " ".join(told))
