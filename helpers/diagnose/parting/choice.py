"""Which statement has parted two ranks: named only if it alone explains where they are. No I/O."""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...model.issued import IssuedCall
from ...program.blocks import function_of, path
from ...program.condition import Values, known, made_of, names, truth
from ...program.syntax import Function, Loop, own_nodes, parsed
from ...program.turns import Turns, bound, counters
from . import counted
from .counted import Made
from .statement import Parted, Stack, Ways, around, ways


@dataclass(frozen=True)
class Place:
    """Where a rank is.

    Attributes:
        stack: its frames, the outermost first.
        made: how often it has made each call up to this one; empty when that is not known.
    """

    rank: int | None
    stack: Stack
    made: Made = field(default_factory=dict)

    def then(self, way: Parted, test: ast.expr) -> Values:
        """What is known of the names of a condition, as it was when the condition was asked.

        Left out is what has been bound or stored since, or may have been changed by a call.
        """
        own = _of_rank(test, self)
        place = way.frame_in(self.stack)
        if place is None:
            return own
        since = _bound_since(way.function, test.lineno, place.line)
        stored = _Stored.of(place.text)
        kept = {}
        for name, value in place.values.items():
            base, *attributes = name.split(".")
            own_ones = base != "self" or attributes[:1] == [] or attributes[0] in stored.at_first
            if base not in since | stored.names and stored.later.isdisjoint(attributes) and own_ones:
                kept[name] = value
        return {**own, **kept}


def parting(one: Place, other: Place) -> tuple[Parted, bool] | None:
    """The statement that alone explains where two ranks are; None where none or several can.

    Returns:
        The statement, and True when it is `other` that is in it, and `one` that is past it.
    """
    found = ways(one.stack, other.stack)
    if found is not None:
        here, there = (other, one) if found.turned else (one, other)
        named = _named(found, here, there)
        if named is not None:
            return named, found.turned
    for turned, here, there in ((False, one, other), (True, other, one)):
        found = around(here.stack, there.stack)
        if found.found and all(_is_ahead(way, here, there) for way in found.found):
            named = _named(found, here, there)
            if named is not None:
                return named, turned
        for way in _in_order(found.found):
            if _never(way, there) and not _is_late(way, here, there):
                return way, turned
            if not _always(way, here, there):
                break
    return None


def _in_order(found: Sequence[Parted]) -> list[Parted]:
    """Statements in the order in which a rank comes to them."""
    return sorted(found, key=lambda way: (way.frame, way.node.lineno))


def _named(found: Ways, here: Place, there: Place) -> Parted | None:
    """The first that is known to have parted them, else the only one that may have."""
    left: list[Parted] = []
    for way in _in_order(found.found):
        if _agreed(way, here, there):
            continue
        if not left and not way.nested and not _is_late(way, here, there) and _decided(way, here, there):
            return way
        left.append(way)
    if len(left) != 1 or not found.whole or left[0].nested:
        return None
    (way,) = left
    # A rank that has not made the call inside of a `try` or a `with` has left that by an exception.
    if isinstance(way.node, Loop) or (way.may_be_passed and not here.made):
        return None
    alone = not way.own or (len(way.own) == 1 and _broke_off(way, here, there))
    if not alone:
        return None
    passed = _is_ahead(way, here, there) and _made_more(way, here, there)
    return way if passed or _in_step(way, here, there) else None


def _made_more(way: Parted, here: Place, there: Place) -> bool:
    """True when `there` has not been in it in the turn of `here`: it lacks all that is called there."""
    inside = [*_made_inside(way, here, here)]
    lacks = bool(inside) and all(here.made[call] > there.made.get(call, 0) for call in inside)
    return lacks and not _may_be_cut_short(way.shared[-1], here)


def _may_be_cut_short(turns: Turns, here: Place) -> bool:
    """True when a turn may have ended before the line of `here`."""
    frame = here.stack[turns.frame]
    around, ends = (turns.loop, ast.Continue) if turns.loop else (function_of(frame), ast.Return)
    nodes = own_nodes(around) if around is not None else ()
    return any(isinstance(node, ends) and node.lineno < frame.line for node in nodes)


def _made_inside(way: Parted, here: Place, rank: Place) -> Iterator[IssuedCall]:
    """The calls that a rank has made in the part of a statement in which `here` is."""
    return counted.made_inside(way.node, way.frame, here.stack, rank.made)


def _broke_off(way: Parted, here: Place, there: Place) -> bool:
    """True for the `break` of a loop in whose turn, by its counters, `here` has come past it."""
    loop = way.own[0]
    if way.leaves is None or way.leaves is not loop.loop or len(there.stack) <= way.frame:
        return False
    inside, outside = here.stack[way.frame], there.stack[way.frame]
    told = [
        (mine, left - (counter.raised is not None and counter.raised < way.node.lineno))
        for counter in loop.counters
        for mine, left in [(counter.at_start(inside), outside.values.get(counter.name))]
        if mine is not None and type(left) is int
    ]
    passed = way.node.lineno < inside.line
    return bool(told) and all(mine > left or (mine == left and passed) for mine, left in told)


def _decided(way: Parted, here: Place, there: Place) -> bool:
    """True when the values show that it has led both ranks different ways."""
    if isinstance(way.node, Loop):
        return any(mine >= its for mine, its in _turns_made(way, here, there))
    came = not any(
        truth(test, _settled(way, test, here, there, here)) is (not held) for test, held in way.tests
    )
    return came and _missed(way, here, there)


def _missed(way: Parted, here: Place, there: Place) -> bool:
    """True when a condition on the way to `here` is known to be otherwise for `there`."""
    return any(
        truth(test, _settled(way, test, here, there, there)) is (not held) for test, held in way.tests
    )


def _never(way: Parted, there: Place) -> bool:
    """True for a way that `there` cannot take in any turn, whatever it does: it has another rank.

    What stands in the `else` may be its counterpart.
    """
    others = getattr(way.node, "orelse", ())
    calls = (node for part in others for node in ast.walk(part) if isinstance(node, ast.Call))
    if isinstance(way.node, Loop) or way.nested or any(True for _ in calls):
        return False
    return any(truth(test, _of_rank(test, there)) is (not held) for test, held in way.tests)


def _always(way: Parted, here: Place, there: Place) -> bool:
    """True for a way that `there` takes as well: by its rank, or by what counts the turns."""
    if isinstance(way.node, Loop):
        return not any(mine >= its for mine, its in _turns_made(way, here, there))
    if way.kind in ("with", "try") and way.may_be_passed:
        return not way.swallows
    counts = {counter.name for turns in way.shared for counter in turns.counters}
    return bool(way.tests) and all(
        truth(test, _of_rank(test, there)) is held or made_of(test, counts) for test, held in way.tests
    )


def _of_rank(test: ast.expr, place: Place) -> Values:
    return {} if place.rank is None else known(test, place.rank)


def _agreed(way: Parted, here: Place, there: Place) -> bool:
    """True when it has led both ranks the same way, so that it cannot have parted them."""
    if isinstance(way.node, Loop):
        made = _turns_made(way, here, there)
        return _as_long(way, here, there) or any(mine < its for mine, its in made)
    if way.kind in ("with", "try") and way.may_be_passed and not way.swallows:
        return True
    if not way.shared and not way.own and any(_made_inside(way, here, there)):
        return True
    if not way.tests or way.own:
        return False
    if all(truth(test, there.then(way, test)) is held for test, held in way.tests):
        return True
    counts = {counter.name for turns in way.shared for counter in turns.counters}
    return all(made_of(test, counts) for test, _ in way.tests) and (_asked_in_one_turn(way, here, there))


def _as_long(way: Parted, here: Place, there: Place) -> bool:
    """True for a loop that would make the same turns on both ranks, if nothing ended it."""
    if isinstance(way.node, ast.While):
        return isinstance(way.node.test, ast.Constant)
    through = way.node.iter if isinstance(way.node, ast.For) else None
    if not (isinstance(through, ast.Call) and ast.unparse(through.func) == "range"):
        return False
    mine, its = here.then(way, through), there.then(way, through)
    return all(name in mine and mine[name] == its.get(name) for name in names(through))


def _settled(way: Parted, test: ast.expr, here: Place, there: Place, place: Place) -> Values:
    """What is known of a condition on one of two ranks, without what may change from turn to turn."""
    told = place.then(way, test)
    if not way.own and _asked_in_one_turn(way, here, there):
        return told
    changing = {name for turns in (*way.shared, *way.own) for name in turns.changing}
    return {name: value for name, value in told.items() if name.split(".")[0] not in changing}


def _turns_made(way: Parted, here: Place, there: Place) -> Iterator[tuple[int, int]]:
    """The turns of a loop before that of `here`, and all of `there`, by each thing that tells.

    A loop that can be left by `break` or `return` does not tell how many turns it would have made, nor
    does a `while` with a `continue`, which may leave out what ends it.
    """
    aside = ast.Break | ast.Return
    if isinstance(way.node, ast.While):
        aside |= ast.Continue
    if any(isinstance(node, aside) for node in own_nodes(way.node)):
        return
    if len(here.stack) <= way.frame or len(there.stack) <= way.frame:
        return
    inside, outside = here.stack[way.frame], there.stack[way.frame]
    for counter in counters(way.node) if isinstance(way.node, Loop) else ():
        mine, left = counter.at_start(inside), outside.values.get(counter.name)
        if counter.from_start and mine is not None and type(left) is int:
            yield mine, left + 1
    if isinstance(way.node, Loop) and _in_step(way, here, there):
        turns = Turns.of_loop(way.frame, way.node)
        yield from counted.turns_made(turns, here.stack, here.made, there.made)


def _asked_in_one_turn(way: Parted, here: Place, there: Place) -> bool:
    """True when both ranks are known to have come to it in the same turn of each loop around it."""
    return _in_step(way, here, there) or _is_ahead(way, here, there)


def _in_step(way: Parted, here: Place, there: Place) -> bool:
    """True when both ranks are known to be in the same turn of each loop around it."""
    return all(0 in _lead(turns, here, there) for turns in way.shared)


def _is_ahead(way: Parted, here: Place, there: Place) -> bool:
    """True when `there` has come past it in the turn of `here`, and is before it in the next one."""
    *outer, inner = way.shared or (None,)
    return (
        inner is not None
        and all(0 in _lead(turns, here, there) for turns in outer)
        and _lead(inner, here, there) == {1}
        and _is_before(inner, way, here, there)
    )


def _is_late(way: Parted, here: Place, there: Place) -> bool:
    """True when `there` has not come to it yet: it is in an earlier turn of a loop around it."""
    leads = (_lead(turns, here, there) for turns in way.shared)
    first = next((lead for lead in leads if 0 not in lead), set[int]())
    return bool(first) and max(first) < 0


def _lead(turns: Turns, here: Place, there: Place) -> set[int]:
    """How many turns `there` is ahead of `here`, by each thing that tells; empty when none does."""
    told = {its - mine for mine, its in turns.both(here.stack[turns.frame], there.stack[turns.frame])}
    if len(told) == 1:
        return told
    made = counted.turns_of_both(turns, here.stack, there.stack, here.made, there.made)
    return {its - mine for mine, its in made}


def _is_before(turns: Turns, way: Parted, here: Place, there: Place) -> bool:
    """True when `there` is before the statement in its turn."""
    for at in range(turns.frame, min(way.frame, len(there.stack))):
        mine, its = here.stack[at], there.stack[at]
        if mine != its:
            return (mine.file, mine.function) == (its.file, its.function) and its.line < mine.line
    place = way.frame_in(there.stack)
    return place is not None and place.line < way.node.lineno


@functools.lru_cache(maxsize=1024)
def _bound_since(function: Function, asked: int, line: int) -> frozenset[str]:
    """The names that are bound between a condition and a line, perhaps one of a loop's next turn."""
    if line >= asked:
        return bound(function, asked, line)
    around = [step.node for step in path(function, asked) if isinstance(step.node, Loop)]
    loop = next((one for one in around if one.lineno <= line), None)
    begins, ends = (loop.lineno, loop.end_lineno or math.inf) if loop is not None else (0, math.inf)
    return bound(function, asked, ends) | bound(function, begins, line)


@dataclass(frozen=True)
class _Stored:
    """What a source stores: a call may change it.

    Attributes:
        names: declared global or nonlocal.
        at_first: attributes stored in an `__init__`; later: elsewhere.
    """

    names: frozenset[str]
    at_first: frozenset[str]
    later: frozenset[str]

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(text: str) -> _Stored:
        """That of a source."""
        found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
        tree = parsed(text)
        every = () if tree is None else ast.walk(tree)
        for function in (node for node in every if isinstance(node, ast.FunctionDef)):
            for node in own_nodes(function):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    found[0].update(node.names)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                    found[1 if function.name == "__init__" else 2].add(node.attr)
        return _Stored(*map(frozenset, found))
