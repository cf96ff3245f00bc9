"""From the stacks of all ranks to the statement at which they parted. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from ...model.clauses import grouped
from ...model.parting import Parting
from ...program.blocks import function_of, path
from .choice import Place
from .choice import parting as statement_of
from .counted import Made
from .statement import AFTER, Parted, Stack, label
from .told import told


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
    together = grouped({rank: _known(stack) for rank, stack in stacks.items()})
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
    return told(statement, stacks, here[0], branches)


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


def exited(stacks: Mapping[int, Stack], gone: Sequence[int]) -> Parting | None:
    """The line at which ranks have ended by themselves, and what it stands under.

    Args:
        stacks: as for `parted`; gone: the ranks that have ended.
    """
    together = grouped({rank: users_of(stacks[rank]) for rank in gone})
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
    return told(way, stacks, ranks[0], {"exited": ranks, **({"went on": others} if others else {})})


def _known(stack: Stack) -> Stack:
    """The user's frames, and those of libraries whose source is known."""
    return tuple(frame for frame in stack if frame.user or frame.text)


def users_of(stack: Stack) -> Stack:
    """The frames of the user's own code."""
    return tuple(frame for frame in stack if frame.user)
