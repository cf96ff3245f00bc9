"""The statement at which ranks parted, in the fields that a fix may ask for and name. No I/O."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from ..model.clauses import values_of
from ..model.facts import Verdict
from ..model.frames import Frame
from ..model.parting import Branch, Guard, Parting
from ..model.redaction import Source
from ..model.wording import one_line, place
from ..program.blocks import function_of, statements_around
from ..program.identity import says_rank
from ..program.syntax import dotted, parsed
from .scene import Facts

_EXITS = ("exit", "quit", "sys.exit", "os._exit")


LONGEST_CALL = 60
"""Characters of a call that are quoted."""

_WRAPPED = ("parallel/distributed.py", "fsdp/")
"""Files of torch whose `forward` communicates."""


class Statement(msgspec.Struct, frozen=True):
    """What decided which way each rank went; all is empty or false where no statement is known.

    Attributes:
        statement: as it is written; parted: its place; values: those that differ, in words.
        loop: what tells the iterations of a loop: `items`, `numbers` or a `condition`; `order` where
            both ranks are in it, and go through other things.
        chooses_group: True for one that decides in which group ranks make a call.
        condition: True for any other statement; handler: for a `try` or a `with` that lets an exception
            pass; leaves: for a `return` or an exit.
        by_rank: True where it asks which rank it is.
        stops: True where it leads some ranks out of the loop or the function around it, deeper within.
        near: True where a rank was still in its function at the call at which they came apart; inside:
            where that call was made in it; both: where all have, each in its own part.
        call, call_at: that call, as it is written, and its place.
        forward: True where that is the forward pass of a wrapped model.
        guards: the statements of which one has decided, where no single one is known; guards_by_rank:
            True where each asks which rank it is; guards_loop: where each is a loop; guards_handler:
            where each lets an exception pass.
    """

    statement: str = ""
    parted: str = ""
    values: str = ""
    loop: Literal["", "items", "numbers", "condition", "order"] = ""
    handler: bool = False
    leaves: bool = False
    chooses_group: bool = False
    condition: bool = False
    by_rank: bool = False
    stops: bool = False
    near: bool = False
    inside: bool = False
    both: bool = False
    call: str = ""
    call_at: str = ""
    forward: bool = False
    guards: str = ""
    guards_by_rank: bool = False
    guards_loop: bool = False
    guards_handler: bool = False


def statement(facts: Facts, verdict: Verdict) -> Statement:
    """What is known of the statement of a verdict."""
    parting = verdict.parting
    if parting is None or parting.where is None:
        return _unnamed(verdict.where, parting.guards if parting is not None else ())
    below, frame = _split(facts, parting, parting.where)
    loop = _loop(parting)
    names = parting.differ or parting.names or _condition_names(parting.source)
    within = [_is_within(facts, parting.where, way) for way in parting.branches]
    forward = {frame.file for frame in below if "forward" in frame.function}
    return Statement(
        statement=Source(parting.source.rstrip(":")),
        parted=place(parting.where),
        values=_values(parting),
        loop=loop,
        handler=parting.kind in ("try", "with"),
        leaves=parting.kind in ("return", "exit"),
        chooses_group=parting.chooses_group,
        condition=not loop and not parting.chooses_group,
        by_rank=any(_of_rank(name, parting.values.get(name, {}), parting.where) for name in names),
        stops=parting.kind == "if" and _stops(parting.where),
        near=_is_near(facts, parting, parting.where),
        inside=within[:1] == [True],
        both=len(within) > 1 and all(within),
        call="" if frame is None else _callee(frame, [inner.function for inner in below]),
        call_at="" if frame is None else place(frame),
        forward=any(part in file for file in forward for part in _WRAPPED),
    )


def _unnamed(at: Frame | None, guards: Sequence[Guard]) -> Statement:
    """Where no single statement is known: those of which one has decided, and the call at the line."""
    kinds = {guard.kind for guard in guards}
    return Statement(
        call="" if at is None else _callee(at, ()),
        call_at="" if at is None else place(at),
        guards=_in_markdown(guards),
        guards_by_rank=bool(guards) and all(map(_asks_rank, guards)),
        guards_loop=kinds in ({"for"}, {"while"}, {"for", "while"}),
        guards_handler=kinds == {"try"},
    )


def _loop(parting: Parting) -> Literal["", "items", "numbers", "condition", "order"]:
    """What tells how often a loop runs, or in which order."""
    if parting.kind in ("for", "while") and not parting.branches:
        return "order"
    if parting.kind == "while":
        return "condition"
    if parting.kind == "for":
        return "numbers" if re.search(r"\bin range\(", parting.source) else "items"
    return ""


def _in_markdown(guards: Sequence[Guard]) -> str:
    """``if a` (train.py:3) or `if b` (train.py:9)``."""
    return " or ".join(f"`{_quotable(g.source.rstrip(':'))}` ({place(g.where)})" for g in guards)


def _asks_rank(guard: Guard) -> bool:
    """True for an `if` that asks which rank it is."""
    return any(_of_rank(name, {}, guard.where) for name in _condition_names(guard.source))


def _condition_names(source: str) -> list[str]:
    """The names in the condition of a statement in one line."""
    line = source.removeprefix("el").rstrip(":")
    tree = parsed(line) or parsed(f"{line}: pass")
    nodes = ast.walk(tree) if tree is not None else ()
    tests = [node.test for node in nodes if isinstance(node, ast.If | ast.While | ast.IfExp)][:1]
    inner = [node for test in tests for node in ast.walk(test)]
    names = [dotted(node) for node in inner if isinstance(node, ast.Name | ast.Attribute)]
    return [name for name in names if name]


def _quotable(source: str) -> str:
    return one_line(Source(source)).replace("`", "'")


def _split(facts: Facts, parting: Parting, where: Frame) -> tuple[Sequence[Frame], Frame | None]:
    """The frame in the function of the statement, of a rank that took its first way, and those below."""
    if not parting.branches:
        return (), None
    stack = _stack(facts, parting.branches[0].ranks[0])
    for inner, frame in enumerate(stack):
        if (frame.file, frame.function) == (where.file, where.function):
            return stack[:inner], frame
    return (), None


def _stack(facts: Facts, rank: int) -> Sequence[Frame]:
    """The stack of a rank, innermost first, at the call at which its group's calls have come apart."""
    for desync in facts.desyncs:
        if rank in desync.calls:
            return desync.calls[rank].stack
    view = facts.graph.ranks.get(rank)
    return view.process.stack if view is not None and view.process is not None else ()


def _is_near(facts: Facts, parting: Parting, where: Frame) -> bool:
    """True where a rank is in the function of the statement still."""
    stacks = [_stack(facts, rank) for way in parting.branches for rank in way.ranks]
    return any((f.file, f.function) == (where.file, where.function) for s in stacks for f in s)


def _is_within(facts: Facts, where: Frame, way: Branch) -> bool:
    """True where a rank that took this way has made its call within the statement at `where`."""
    frames = (frame for rank in way.ranks for frame in _stack(facts, rank))
    return any(
        getattr(step.node, "lineno", None) == where.line
        for frame in frames
        if (frame.file, frame.function) == (where.file, where.function)
        for step in statements_around(frame)
    )


def _stops(where: Frame) -> bool:
    """True for an `if` that holds a `break` or a `return`, or ends the program."""
    tree = parsed(where.text)
    nodes = ast.walk(tree) if tree is not None else ()
    at_line = (node for node in nodes if getattr(node, "lineno", 0) == where.line)
    return any(_leaves(node) for node in at_line if isinstance(node, ast.If))


def _leaves(node: ast.AST) -> bool:
    match node:
        case ast.Break() | ast.Return():
            return True
        case ast.Call():
            return dotted(node.func) in _EXITS
        case ast.For() | ast.While() | ast.FunctionDef() | ast.Lambda():
            return False
    return any(map(_leaves, ast.iter_child_nodes(node)))


def _values(parting: Parting) -> str:
    """`loss is 2.0 on rank 0, 1.0 on rank 1`, of what differs."""
    return "; ".join(values_of(name, parting.values[name]) for name in parting.differ if name != "_")


def _of_rank(name: str, values: Mapping[int, str], where: Frame) -> bool:
    """True for a name that says which rank it is.

    That its value is the rank's number on each rank counts for three ranks or more, and for two where it
    is a parameter: a counter may be 0 on rank 0 and 1 on rank 1.
    """
    counts = len(values) > 2 or (len(values) > 1 and name in _parameters(where))
    return says_rank(name, where.text) or (counts and all(v == str(r) for r, v in values.items()))


def _parameters(where: Frame) -> set[str]:
    """The parameters of the function around a line which it does not bind anew."""
    function = function_of(where)
    if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        return set()
    bound = {
        n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return {arg.arg for arg in (*function.args.posonlyargs, *function.args.args)} - bound


def _callee(frame: Frame, below: Sequence[str]) -> str:
    """What a line calls, as it is written: the call or the property that has led to the frames below it.

    Args:
        below: their functions, innermost first.
    """
    steps = statements_around(frame)
    nodes = [*ast.walk(steps[-1].node)] if steps else []
    calls = [ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)]
    properties = [ast.unparse(node) for node in nodes if isinstance(node, ast.Attribute)]
    names = [name for name in dict.fromkeys(calls) if name not in vars(builtins)]
    leading = [name for name in (*properties, *names) if name.rpartition(".")[2] in below] or names
    return leading[0] if leading and len(leading[0]) <= LONGEST_CALL else ""
