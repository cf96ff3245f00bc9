"""Ranks that make one call in different groups: what decides in which. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...model.frames import Frame
from ...model.issued import IssuedCall
from ...model.parting import Guard, Parting
from ...program.blocks import function_of
from ...program.chosen import chosen_by
from ...program.syntax import Function, called_name, holds, own_nodes, positional_of
from ..scene import Facts
from .contexts import users_of
from .description import guard_at


def other_group(facts: Facts) -> Parting | None:
    """What decides in which group ranks make a call that has parted them; None where that is not it.

    A rank has made it in a group of which another one is a member that has made it, by the same lines,
    in another group: so it is its argument that leads them apart. Nothing is told where several
    statements decide that, or none.
    """
    guards = {
        (guard.where.file, guard.where.line): guard
        for rank, call in _in_groups_of_others(facts)
        for guard in _guards(rank, call)
    }
    if len(guards) != 1:
        return None
    (guard,) = guards.values()
    return Parting(guard.kind, guard.where, guard.source, chooses_group=True)


def _in_groups_of_others(facts: Facts) -> Iterator[tuple[int, IssuedCall]]:
    """The calls that have parted ranks, and that another member of the group has made in another one."""
    issued = {
        rank: view.process.issued for rank, view in facts.graph.ranks.items() if view.process is not None
    }
    members = {
        group.name: {*group.members}
        for process in facts.processes(tuple(facts.graph.ranks))
        for group in process.groups
    }
    elsewhere: dict[tuple[object, ...], set[tuple[int, str]]] = {}
    for rank, histories in issued.items():
        for history in histories:
            for call in {*history.calls}:
                elsewhere.setdefault(_key(call), set()).add((rank, history.group))
    for desync in facts.desyncs:
        for rank, call in desync.calls.items():
            places = elsewhere.get(_key(call), set())
            peers = {peer for peer, group in places if group != desync.group and peer != rank}
            if peers & members.get(desync.group, set()):
                yield rank, call


def _key(call: IssuedCall) -> tuple[object, ...]:
    return call.op, *users_of(call.stack)


def _guards(rank: int, call: IssuedCall) -> Iterator[Guard]:
    """The statements that decide which group a call is given, followed through those that hand it on."""
    frames = users_of(call.stack)
    wanted, operation, place = "group", call.op, None
    for frame in frames:
        function = function_of(frame)
        value = _argument(frame, function, operation, (wanted, place)) if function is not None else None
        if value is None or function is None:
            return
        for chosen in chosen_by(value, function, frame.text):
            yield guard_at(frame, chosen.function, chosen.statement, (rank,))
        if not isinstance(value, ast.Name) or not isinstance(function, ast.FunctionDef):
            return
        wanted, operation, names = value.id, function.name, positional_of(function)
        place = names.index(wanted) if wanted in names else None


def _argument(
    frame: Frame, function: Function, operation: str, argument: tuple[str, int | None]
) -> ast.expr | None:
    """What the call of an operation at a line is given for an argument, by its name or by its place."""
    name, place = argument
    calls = [
        node
        for node in own_nodes(function)
        if isinstance(node, ast.Call) and holds(node, frame.line) and called_name(node) == operation
    ]
    values = [word.value for call in calls for word in call.keywords if word.arg == name]
    if place is not None and not values:
        values = [call.args[place] for call in calls if len(call.args) > place]
    return values[0] if len(values) == 1 else None
