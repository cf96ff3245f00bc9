"""From the stacks of all ranks to the statement at which they parted. No I/O."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from ...model.facts import RankView, Verdict
from ...model.frames import Frame, Scalar
from ...model.parting import Branch, Parting
from ...model.waits import InCollective, InP2P, InStore
from ...model.wording import one_line
from ..matching import divergence
from ..scene import Facts
from .blocks import Loop, after_all, function_of, path
from .choice import Place
from .choice import parting as statement_of
from .condition import names
from .counted import Made
from .history import Apart
from .statement import AFTER, Parted, Stack, label
from .turns import counters

OF_WAYS = frozenset(
    (
        *("collective-mismatch", "shape-mismatch", "missing-rank"),
        *("rank-exited", "rendezvous-incomplete", "unknown"),
    )
)
"""The causes that come from ranks that go different ways."""

_COMMENT = re.compile(r":\s*#[^'\"]*$")
"""What follows the colon of a head."""

EXCEPTION = "sys.exception()"

LONGEST = 200
"""Characters of a statement that are quoted."""


def parting(facts: Facts, verdict: Verdict) -> Parting | None:
    """Where ranks went different ways: the statement, and the calls from which on they differ."""
    if verdict.cause not in OF_WAYS:
        return None
    now = {rank: _stack(view) for rank, view in facts.graph.ranks.items()}
    stacks: Mapping[int, Stack] = now
    apart = facts.apart
    told = tuple(met for one in apart for met in one.told)
    made: Mapping[int, Made] = {}
    if len(apart) == 1:
        (first,) = apart
        then = {rank: tuple(reversed(call.stack)) for rank, call in first.calls.items()}
        if any(_users(now[rank]) != _users(stack) for rank, stack in then.items() if stack):
            stacks = then
        made = first.made if first.whole else {}
    statement = None
    if verdict.cause == "rank-exited":
        statement = exited(now, _left(facts))
        stacks = _to_the_end(stacks)
    sure = len(apart) <= 1 and all(one.sure for one in apart)
    if statement is None and sure and not _shifted(facts):
        known = {rank: stack for rank, stack in stacks.items() if stack}
        statement = parted(known, verdict.culprits, made, facts.graph.waited_for)
        if statement is not None and (_are_roles(facts, statement) or _are_alike(apart, statement)):
            statement = None
    if statement is None:
        return Parting(history=told) if told else None
    return replace(statement, history=told)


def _stack(view: RankView) -> Stack:
    """Where a rank is, or was when it ended, outermost frame first."""
    process = view.process
    if process is None:
        return ()
    return tuple(reversed(process.error.stack if process.error is not None else process.stack))


def _to_the_end(stacks: Mapping[int, Stack]) -> dict[int, Stack]:
    """The stacks, with those of ranks that are through with the program: behind its last line."""
    main = next((stack for stack in stacks.values() if stack), ())
    at = next((n for n, frame in enumerate(main) if frame.user), None)
    if at is None or main[at].function != "<module>":
        return dict(stacks)
    frame = main[at]
    end = replace(frame, line=after_all(frame.text), values={"__name__": "__main__"})
    return {rank: stack or (*main[:at], end) for rank, stack in stacks.items()}


def _left(facts: Facts) -> list[int]:
    """The ranks that have ended without an exception."""
    return [rank for rank, view in facts.gone.items() if view.process and view.process.error is None]


def _are_roles(facts: Facts, statement: Parting) -> bool:
    """True where ranks are to go different ways: one waits for a message or a key of the other.

    That one is in the same statement, in such a wait as well, or has come out of it.
    """
    pair = statement.branches[:2]
    waits = [facts.waits(way.ranks[0])[:1] for way in pair]
    of_roles = [any(isinstance(wait, InP2P | InStore) for wait in found) for found in waits]
    through = any(not way.label.startswith("in its") for way in pair)
    return any(of_roles) and (through or all(of_roles))


def _are_alike(apart: Sequence[Apart], statement: Parting) -> bool:
    """True where the ranks have made the same call in two branches of one statement: no harm in that."""
    calls = [call.op for one in apart for call in one.calls.values()]
    inside = all(way.label.startswith("in its") for way in statement.branches[:2])
    return inside and len(set(calls)) == 1


def _shifted(facts: Facts) -> bool:
    """True when the calls are known to differ from earlier on, and not from which lines."""
    early = None if facts.apart else divergence(facts.graph.ranks, facts.graph.core)
    return early is not None and any(
        (wait.group, wait.seq) != early[:2]
        for rank in early[2]
        for wait in facts.waits(rank)
        if isinstance(wait, InCollective)
    )


def parted(
    stacks: Mapping[int, Stack],
    odd: Sequence[int],
    made: Mapping[int, Made] | None = None,
    waited_for: Mapping[int, Collection[int]] | None = None,
) -> Parting | None:
    """The statement at which ranks have parted; None where it cannot be told.

    Args:
        stacks: rank -> frames, outermost first.
        odd: the ranks that are not where they should be, if it is known which these are.
        made: rank -> how often it has made each call up to this one, where that is known.
        waited_for: rank -> the ranks for which it waits, where that is known.
    """
    made, waited_for, stacks = made or {}, waited_for or {}, _aligned(stacks)
    together: dict[Stack, list[int]] = {}
    for rank in sorted(stacks):
        together.setdefault(_known(stacks[rank]), []).append(rank)
    if len(together) < 2:
        return None
    classes = sorted(together.values(), key=lambda ranks: (-len(ranks), ranks))
    apart = [ranks for ranks in classes if set(odd) & set(ranks)] or classes[-1:]
    first = apart[0]
    others = [*apart[1:], *(ranks for ranks in classes if ranks not in apart)]
    most = max(others, key=lambda ranks: _nearness(first, ranks, waited_for))
    found = statement_of(*(Place(r[0], stacks[r[0]], made.get(r[0], {})) for r in (first, most)))
    if found is None:
        return None
    statement, turned = found
    here, there = (most, first) if turned else (first, most)
    branches = {statement.here: list(here), statement.there: list(there)}
    for ranks in classes:
        if ranks in (here, there):
            continue
        way = _way(statement, stacks[here[0]], stacks[ranks[0]])
        if way is None and set(odd) & set(ranks):
            return None
        if way is not None:
            branches.setdefault(way, []).extend(ranks)
    return _told(statement, stacks, here[0], branches)


def exited(stacks: Mapping[int, Stack], gone: Sequence[int]) -> Parting | None:
    """The line at which ranks have ended by themselves, and what it stands under.

    Args:
        stacks: as for `parted`; gone: the ranks that have ended.
    """
    together: dict[Stack, list[int]] = {}
    for rank in gone:
        together.setdefault(_users(stacks[rank]), []).append(rank)
    at_lines = {stack: ranks for stack, ranks in together.items() if stack}
    if len(at_lines) != 1:
        return None
    (ranks,) = at_lines.values()
    stack = stacks[ranks[0]]
    at = max(n for n, frame in enumerate(stack) if frame.user)
    function = function_of(stack[at])
    steps = path(function, stack[at].line) if function is not None else ()
    if function is None or not steps:
        return None
    tests = next((step.tests for step in reversed(steps) if step.tests), ())
    way = Parted("exit", at, function, steps[-1].node, "exited", "went on", tests)
    others = [rank for rank in sorted(stacks) if rank not in ranks]
    return _told(way, stacks, ranks[0], {"exited": ranks, **({"went on": others} if others else {})})


def _aligned(stacks: Mapping[int, Stack]) -> Mapping[int, Stack]:
    """The stacks, from the first line that all ranks have on where they were started in other ways."""
    outermost = {(stack[0].file, stack[0].function) for stack in stacks.values()}
    if len(outermost) < 2:
        return stacks
    first, *others = stacks.values()
    common = next((frame for frame in first if all(frame in stack for stack in others)), None)
    if common is None:
        return stacks
    return {rank: stack[list(stack).index(common) :] for rank, stack in stacks.items()}


def _nearness(
    ranks: Sequence[int], others: Sequence[int], waited_for: Mapping[int, Collection[int]]
) -> int:
    """2 where some of these ranks wait for some of the others, 1 where others wait for them, else 0."""
    if any(peer in others for rank in ranks for peer in waited_for.get(rank, ())):
        return 2
    return int(any(peer in ranks for rank in others for peer in waited_for.get(rank, ())))


def _way(statement: Parted, function: Stack, third: Stack) -> str | None:
    """Which way another rank has taken at a statement; None where that cannot be told."""
    at = statement.frame
    if len(third) <= at or third[:at] != function[:at] or third[at].function != function[at].function:
        return None
    body, line = function_of(third[at]), third[at].line
    for step in path(body, line) if body is not None else ():
        if step.node is statement.node:
            return label(step.node, step.part) if step.part else None
    node = statement.node
    past = isinstance(node, ast.stmt) and line > (node.end_lineno or node.lineno)
    return {"return": "went on"}.get(statement.kind, AFTER) if past else None


def _told(
    statement: Parted,
    stacks: Mapping[int, Stack],
    here: int,
    branches: Mapping[str, Sequence[int]],
) -> Parting:
    frame = stacks[here][statement.frame]
    values: dict[str, dict[int, str]] = {}
    told_of = {rank: stacks[rank] for ranks in branches.values() for rank in ranks}
    for asked in statement.asked:
        for rank, stack in sorted(told_of.items()):
            told = Place(rank, stack).then(statement, asked)
            for name in names(asked):
                if name in told:
                    values.setdefault(name, {})[rank] = repr(told[name])
    for counter in counters(statement.node) if isinstance(statement.node, Loop) else ():
        for rank, stack in sorted(stacks.items()):
            inside = stack[statement.frame] if len(stack) > statement.frame else None
            if inside is not None and counter.name in inside.values:
                values.setdefault(counter.name, {})[rank] = repr(inside.values[counter.name])
    if statement.kind == "try":
        for rank, stack in sorted(stacks.items()):
            handled = _handled(statement, stack)
            if handled is not None:
                values.setdefault(EXCEPTION, {})[rank] = repr(handled)
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


def _led_to(statement: Parted, stack: Stack) -> Frame | None:
    """The line of a rank in the function of a statement, else its innermost."""
    inside = stack[statement.frame] if len(stack) > statement.frame else None
    if inside is not None and function_of(inside) is statement.function:
        return inside
    return next((frame for frame in reversed(stack) if frame.user), None)


def _handled(statement: Parted, stack: Stack) -> Scalar:
    """The exception that a rank handles, where it is in a handler of the statement."""
    frame = stack[statement.frame] if len(stack) > statement.frame else None
    steps = path(statement.function, frame.line) if frame is not None else ()
    inside = any(step.node is statement.node and step.part.startswith("handler") for step in steps)
    innermost = next((one for one in reversed(stack) if one.user), None)
    return innermost.values.get(EXCEPTION) if inside and innermost is not None else None


def _source(statement: Parted, frame: Frame) -> str:
    """The statement in one line; before a `return` or an exit the head of what is around it."""
    lines = frame.text.splitlines()
    node = statement.node
    if statement.kind in ("return", "exit"):
        function = function_of(frame)
        guards = path(function, node.lineno)[:-1] if function is not None else ()
        heads = [_head(guards[-1].node, lines)] if guards else []
        return one_line(" ".join([*heads, _head(node, lines)]))[:LONGEST]
    return one_line(_head(node, lines))[:LONGEST]


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


def _known(stack: Stack) -> Stack:
    """The user's frames, and those of libraries whose source is known."""
    return tuple(frame for frame in stack if frame.user or frame.text)


def _users(stack: Stack) -> Stack:
    return tuple(frame for frame in stack if frame.user)
