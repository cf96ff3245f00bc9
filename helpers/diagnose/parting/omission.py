"""The conditions on which a repeated call depends: where one rank may have left it out. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ...model.issued import IssuedCall
from ...program.blocks import function_of
from ...program.condition import made_of, truth, value_of
from ...program.flow import EXIT, RAISED, Choice, Flow
from ...program.identity import of_rank
from ...program.syntax import dotted, holds, method_of, own_nodes
from .contexts import Context, Contexts, Place, Stack, followed, users_of
from .trace import Trace, loops_around


class Condition(NamedTuple):
    """A choice that decides, in one turn of what is repeated, whether a rank comes to a call."""

    context: Context
    step: int
    choice: Choice


class _Repeated(NamedTuple):
    """What two stacks share, and repeat.

    Attributes:
        depth: of the innermost function that both are in.
        loop: of that function, around both; None where the function as a whole is repeated, or nothing.
        counted: the names that count turns.
    """

    depth: int
    loop: ast.stmt | None
    counted: frozenset[str]


def omissions(trace: Trace, peer_trace: Trace) -> tuple[Condition, ...]:
    """The user's conditions on which the call of one of two ranks depends in each turn, nearest first.

    Of ranks whose calls do not match although they repeat the same lines, one has left a call out in
    some iteration, or made one more, in whichever iterations they are by now. That call may be another
    than those in which they are, so none of these is known to have decided. Who waits for a handle, in
    no function of a library's, has made its call somewhere else, and so tells nothing.
    """
    contexts = Contexts()
    places = [
        place
        for side in (trace, peer_trace)
        if side.stack and not side.stack[-1].user
        for place in [contexts.place(side.stack, side.op)]
        if place is not None
    ]
    if len(places) < 2 or users_of(trace.stack) == users_of(peer_trace.stack):
        return ()
    shared = places[0].shared(places[1])
    repeated = _repeated(places[0], trace.stack, places[1], peer_trace.stack)
    if repeated is None and shared:
        repeated = _Repeated(len(shared) - 1, None, frozenset())
    return () if repeated is None else _nearest_first(_all_of(places, repeated))


def unsent(
    waiting: tuple[int, Stack],
    answering: tuple[int, Stack],
    ops: Collection[str],
    messages: Sequence[IssuedCall],
    peer_messages: Sequence[IssuedCall] = (),
) -> tuple[Condition, ...]:
    """The conditions on which the messages of a rank depend for which another one waits, nearest first.

    Nothing is told where the rank may yet come to them: in this turn, or since the other one may be in a
    later turn already.

    Args:
        waiting, answering: the two ranks, each with its stack, outermost frame first.
        ops: the operations of which one would end the wait.
        messages: the newest sends and receives of the second one; peer_messages: of all other ranks.
    """
    contexts = Contexts()
    (peer, _), (rank, stack) = waiting, answering
    place, peer_place = contexts.place(stack), contexts.place(waiting[1])
    if place is None or peer_place is None:
        return ()
    order = _turn_order(place, stack, peer_place, waiting[1])
    if order is None or order < 0:
        return ()
    conditions: list[Condition] = []
    candidates = [call for call in messages if call.op in ops]
    for message in (*candidates, *_unmade(messages, peer_messages, stack[::-1], ops)):
        path = message.stack[::-1]
        origin = contexts.place(path, message.op)
        if origin is None or not _may_concern(origin, rank, peer):
            continue
        repeated = _repeated(place, stack, origin, path)
        if repeated is not None:
            heads = place.shared(origin)[-1].flow.deciding(repeated.loop)
        else:  # the rank is not in what is repeated around the other one: no more, or not yet
            repeated, heads = _repeated(peer_place, waiting[1], origin, path), frozenset[int]()
        if repeated is None or (not order and _may_come(place, origin, heads)):
            continue
        message_conditions = [*_all_of([origin], repeated)]
        if message in candidates and all(call.stack[::-1] != waiting[1] for call in messages):
            message_conditions = [
                condition
                for condition in message_conditions
                if not _gives_role(condition, origin, peer_place)
            ]
        if all(_leads(condition, origin, repeated, rank) for condition in message_conditions):
            conditions += message_conditions
    return _nearest_first(condition for condition in conditions if _truth(condition, rank) is None)


def _unmade(
    messages: Sequence[IssuedCall],
    peer_messages: Sequence[IssuedCall],
    stack: Stack,
    ops: Collection[str],
) -> Iterator[IssuedCall]:
    """Messages that a rank has never sent, or received, in functions that are known to make some.

    They are told by the name of what makes those: `dist` of `dist.recv(...)`.

    Args:
        stack: of the rank, innermost frame first.
    """
    calls = (*messages, *peer_messages)
    lines = {(call.stack[0].file, call.stack[0].line) for call in messages}
    makers = {maker for call in calls for maker in _makers(call)}
    for frames in (*(call.stack for call in calls), stack):
        for depth, frame in enumerate(frames):
            function = function_of(frame) if frame.user else None
            for node in own_nodes(function) if function is not None else ():
                if not isinstance(node, ast.Call) or (frame.file, node.lineno) in lines:
                    continue
                maker, op = method_of(node)
                if op in ops and maker in makers:
                    lines.add((frame.file, node.lineno))
                    at = replace(frame, line=node.lineno, values={})
                    yield IssuedCall(op, (at, *frames[depth + 1 :]))


def _makers(call: IssuedCall) -> Iterator[str]:
    """What the operation of a call is called on, at its line."""
    frame = call.stack[0]
    function = function_of(frame)
    for node in own_nodes(function) if function is not None else ():
        if isinstance(node, ast.Call) and holds(node, frame.line):
            maker, op = method_of(node)
            if op == call.op:
                yield maker


def _leads(condition: Condition, place: Place, repeated: _Repeated, rank: int) -> bool:
    """False for a condition that the number of a rank decides such that it does not come to a place."""
    answer, flow = _truth(condition, rank), condition.context.flow
    if answer is None:
        return True
    at, heads = dict(place.levels)[condition.context], flow.deciding(repeated.loop)
    label = "yes" if answer else "no"
    ways = (to for name, to in flow.steps[condition.step].edges if name == label)
    return any(to in at or flow.leads(to, at, heads) for to in ways)


def _gives_role(condition: Condition, sends: Place, waits: Place) -> bool:
    """True for a choice whose ways lead one to a message alone, another to who waits for it alone.

    That is how a program gives ranks their parts, where the one that sends has never waited there.
    """
    context, flow = condition.context, condition.context.flow
    to, waits_at = dict(sends.levels).get(context), dict(waits.levels).get(context)
    if to is None or waits_at is None:
        return False
    ends = {condition.step, EXIT}
    leads = {
        tuple(way in at or (way not in ends and flow.leads(way, at, ends)) for at in (to, waits_at))
        for label, way in flow.steps[condition.step].edges
        if label != RAISED
    }
    return leads >= {(True, False), (False, True)}


def _truth(condition: Condition, rank: int) -> bool | None:
    """What the number of a rank makes of a condition: that is the same in every turn."""
    test = condition.choice.test
    return None if test is None else truth(test, of_rank(test, rank, condition.context.frame.text))


def _may_concern(place: Place, rank: int, peer: int) -> bool:
    """False for a message to, or from, another rank than a peer, as far as its arguments tell."""
    text = place.context.frame.text
    for node in (place.context.flow.steps[step].node for step in place.steps):
        if isinstance(node, ast.Call):
            keywords = [keyword.value for keyword in node.keywords if keyword.arg in ("dst", "src")]
            for end in (*node.args[1:2], *keywords):
                number = value_of(end, of_rank(end, rank, text))
                return number is None or number[0] == peer
    return True


def _may_come(start: Place, place: Place, ends: Collection[int]) -> bool:
    """True where a rank that is at one place may come to another.

    Args:
        ends: where the turn is over that is asked about.
    """
    shared = start.shared(place)[-1]
    at, to = (dict(point.levels)[shared] for point in (start, place))
    return not at.isdisjoint(to) or any(shared.flow.leads(step, to, ends) for step in at)


def _turn_order(place: Place, stack: Stack, peer_place: Place, peer_stack: Stack) -> int | None:
    """1 for a rank that is in a later turn of what is around both, -1 in an earlier one, 0 in the same.

    None where that cannot be told.
    """
    for turns, frames in loops_around(place.shared(peer_place), followed(stack), followed(peer_stack)):
        counted = turns.counts(*frames)
        signs = {(count > peer_count) - (count < peer_count) for count, peer_count in counted}
        if len(signs) != 1:
            return None
        if signs != {0}:
            return signs.pop()
    return 0


def _repeated(place: Place, stack: Stack, peer_place: Place, peer_stack: Stack) -> _Repeated | None:
    """What is repeated around two stacks, if anything is."""
    shared = place.shared(peer_place)
    around = [turns for turns, _ in loops_around(shared, followed(stack), followed(peer_stack))]
    if not around:
        return None
    counted = frozenset(counter.name for turns in around for counter in turns.counters)
    return _Repeated(around[-1].frame, around[-1].loop, counted)


def _all_of(places: Sequence[Place], repeated: _Repeated) -> Iterator[Condition]:
    for place in places:
        for depth, (context, at) in enumerate(place.levels):
            if depth >= repeated.depth and context.frame.user:
                loop = repeated.loop if depth == repeated.depth else None
                yield from _in_function(context, at, loop, repeated.counted)


def _in_function(
    context: Context, at: Collection[int], loop: ast.stmt | None, counted: Collection[str]
) -> Iterator[Condition]:
    """The choices of a function, or of a loop of it, that decide whether a rank comes to some steps."""
    heads = context.flow.deciding(loop)
    choices = {number: step.choice for number, step in enumerate(context.flow.steps) if step.choice}
    for number, choice in choices.items():
        inside = loop is None or holds(loop, choice.statement.lineno)
        if not inside or number in heads or choice.kind == "with" or _is_alike(choice, counted):
            continue
        decides = _lets_pass if choice.kind == "try" else _decides
        if decides(context.flow, number, at, heads | {EXIT}):
            yield Condition(context, number, choice)


def _nearest_first(conditions: Iterator[Condition]) -> tuple[Condition, ...]:
    once = {(condition.context.number, condition.step): condition for condition in conditions}.values()
    by_line = sorted(
        once, key=lambda condition: (len(condition.context.lineage), condition.choice.statement.lineno)
    )
    return tuple(reversed(by_line))


def _decides(flow: Flow, choice: int, at: Collection[int], ends: Collection[int]) -> bool:
    """True where the ways of a choice differ in whether they lead to some steps, or past them.

    Args:
        ends: where a turn is over.
    """
    handled = dict.fromkeys(range(len(flow.steps)), RAISED)
    ways = [to for label, to in flow.steps[choice].edges if label != RAISED]
    comes = [to in at or (to not in ends and flow.leads(to, at, ends, handled)) for to in ways]
    passes = [to in ends or (to not in at and flow.leads(to, ends, at, handled)) for to in ways]
    return len({way for way in zip(comes, passes, strict=True) if any(way)}) > 1


def _lets_pass(flow: Flow, handlers: int, at: Collection[int], ends: Collection[int]) -> bool:
    """True where an exception is handled such that some steps are passed once more, or left out.

    Args:
        handlers: the step at which it is decided which of them takes it.
    """
    choice, heads = flow.steps[handlers].choice, {*ends} - {EXIT}
    inside = {n for n, step in enumerate(flow.steps) if choice and step.handlers is choice.statement}
    ways = [to for label, to in flow.steps[handlers].edges if label.startswith("handler")]
    again = inside & {*at} and any(to in at or flow.leads(to, at) for to in ways)
    comes = any(step in at or flow.leads(step, at, heads) for step in inside)
    left_out = any(to in heads or (to not in at and flow.leads(to, heads, at)) for to in ways)
    return bool(again) or (comes and left_out)


def _is_alike(choice: Choice, counted: Collection[str]) -> bool:
    """True for what all ranks answer alike in the same turn: by constants, and by what counts turns."""
    if choice.test is not None:
        return made_of(choice.test, counted)
    match choice.statement:
        case ast.For(iter=ast.Call(func=function, args=parts)) if dotted(function) == "range":
            return all(made_of(part, counted) for part in parts)
    return False
