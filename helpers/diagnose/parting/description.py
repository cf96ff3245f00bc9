"""How a statement at which ranks parted is told: its source, its ways, the values. No I/O."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ...model.frames import Frame, Scalar, innermost_user
from ...model.parting import Branch, Guard, Kind, Parting
from ...model.redaction import Source
from ...model.wording import one_line
from ...program.blocks import path
from ...program.condition import names
from ...program.identity import of_rank
from ...program.syntax import Loop, Plain
from ...program.turns import counters
from .contexts import Stack
from .decision import Decision
from .environment import unchanged

_COMMENT = re.compile(r":\s*#[^'\"]*$")
"""What follows the colon of a head."""

EXCEPTION = "sys.exception()"

KINDS: dict[type, Kind] = {ast.If: "if", ast.Match: "match"}

LONGEST = 200
"""Characters of a statement that are quoted."""


def describe(
    decision: Decision, stacks: Mapping[int, Stack], branches: Mapping[str, Sequence[int]]
) -> Parting:
    """The statement, who went which way, and the values that can be read.

    Args:
        stacks: of all ranks, outermost frame first.
        branches: label -> the ranks that have gone that way; none where that is not known.
    """
    frame = decision.context.frame
    values: dict[str, dict[int, str]] = {}
    for rank in sorted({*decision.unchanged, *(rank for ranks in branches.values() for rank in ranks)}):
        for name, value in _values(decision, rank, stacks[rank]).items():
            values.setdefault(name, {})[rank] = repr(value)
    return Parting(
        kind=decision.kind,
        where=replace(frame, line=decision.node.lineno),
        source=_source(decision, frame),
        branches=tuple(
            Branch(label, tuple(sorted(ranks)), _led_to(decision, stacks[min(ranks)]))
            for label, ranks in branches.items()
        ),
        names=tuple(
            dict.fromkeys(name for expression in decision.expressions for name in names(expression))
        ),
        values=values,
        differ=tuple(name for name, by_rank in values.items() if len({*by_rank.values()}) > 1),
    )


def guard(decision: Decision, ranks: Sequence[int]) -> Guard:
    """A statement of which it is not known that it has decided."""
    frame = decision.context.frame
    where = replace(frame, line=decision.node.lineno)
    source = _source(decision, frame)
    for handler in getattr(decision.node, "handlers", ()):
        source += f" ... {source_of(handler, frame.text).rstrip(':')}"
    return Guard(decision.kind, tuple(sorted(ranks)), where, Source(source[:LONGEST]))


def guard_at(frame: Frame, function: str, statement: ast.stmt | ast.expr, ranks: Sequence[int]) -> Guard:
    """A statement of a function, in the file of a frame, of which it is not known that it has decided.

    An argument that a condition decides counts as a conditional expression.
    """
    where = replace(frame, line=statement.lineno, function=function, values={})
    kind = KINDS.get(type(statement), "ifexp")
    return Guard(kind, tuple(sorted(ranks)), where, source_of(statement, frame.text))


def _values(decision: Decision, rank: int, stack: Stack) -> dict[str, Plain]:
    """What can be read on a rank of what a statement asks, counts or handles."""
    frame = decision.context.frame_in(stack)
    values = _read(decision, rank, frame) | dict(decision.values.get(rank, {}))
    if frame is None:
        return values
    counted = counters(decision.node) if isinstance(decision.node, Loop) else ()
    shown = (
        counter.name for counter in counted if counter.name in frame.values and counter.name.strip("_")
    )
    values |= {name: frame.values[name] for name in shown}
    handled = _handled(decision, frame, stack) if decision.kind == "try" else None
    return values if handled is None else {**values, EXCEPTION: handled}


def _read(decision: Decision, rank: int, frame: Frame | None) -> dict[str, Plain]:
    """The values of now that were the same at the statement."""
    values: dict[str, Plain] = {}
    if frame is not None:
        flow = decision.context.flow
        bound = flow.bound_between(decision.step, flow.at(frame.line))
        values |= unchanged(decision.context, frame.values, bound)
        values |= {
            name: frame.values[name] for name in decision.unchanged.get(rank, ()) if name in frame.values
        }
    for expression in decision.expressions:
        values = {**of_rank(expression, rank, decision.context.frame.text), **values}
    shown = [name for expression in decision.expressions for name in names(expression)]
    return {name: values[name] for name in shown if name in values}


def _led_to(decision: Decision, stack: Stack) -> Frame | None:
    """The line of a rank in the function of a statement, else its innermost."""
    return decision.context.frame_in(stack) or innermost_user(stack[::-1])


def _handled(decision: Decision, frame: Frame, stack: Stack) -> Scalar:
    """The exception that a rank handles, where it is in a handler of the statement."""
    steps = path(decision.context.flow.function, frame.line)
    inside = any(step.node is decision.node and step.part.startswith("handler") for step in steps)
    innermost = innermost_user(stack[::-1])
    return innermost.values.get(EXCEPTION) if inside and innermost is not None else None


def _source(decision: Decision, frame: Frame) -> str:
    """The statement in one line; before a `return` or an exit the head of what is around it."""
    node = decision.node
    if decision.kind in ("return", "exit"):
        lines = frame.text.splitlines()
        guards = path(decision.context.flow.function, node.lineno)[:-1]
        heads = [_head(guards[-1].node, lines)] if guards else []
        return Source(one_line(Source(" ".join([*heads, _head(node, lines)])))[:LONGEST])
    return source_of(node, frame.text)


def source_of(node: ast.stmt | ast.expr, text: str) -> str:
    """A statement in one line, as far as it is quoted."""
    return Source(one_line(Source(_head(node, text.splitlines())))[:LONGEST])


def _head(node: ast.stmt | ast.expr, lines: Sequence[str]) -> str:
    """The text of a statement up to its first part, without what is said in a comment."""
    body = getattr(node, "body", None)
    cases = getattr(node, "cases", None)
    last, column = node.end_lineno or node.lineno, node.end_col_offset
    if isinstance(body, list) and body:
        last, column = max(node.lineno, body[0].lineno - 1), None
    elif cases:
        last, column = max(node.lineno, cases[0].pattern.lineno - 1), None
    text = [line.strip() for line in lines[node.lineno - 1 : last]]
    if column is not None and last == node.lineno:
        text = [lines[last - 1].encode()[node.col_offset : column].decode(errors="replace")]
    return _COMMENT.sub(":", " ".join(text))
