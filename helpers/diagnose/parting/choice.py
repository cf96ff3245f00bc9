"""Which statement has parted two ranks: named only if it alone explains where they are. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field

from . import counted
from .blocks import Loop, function_of, own_nodes, parsed
from .condition import Values, known, names, truth
from .counted import Made
from .statement import Parted, Stack, Ways, around, ways
from .turns import Turns, bound, counters


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
        own = {} if self.rank is None else known(test, self.rank)
        place = self.stack[way.frame] if way.frame < len(self.stack) else None
        if place is None or function_of(place) is not way.function:
            return own
        since = bound(way.function, test.lineno, place.line)
        changed, stored = _changed_by_calls(place.text)
        kept = {}
        for name, value in place.values.items():
            base, *attributes = name.split(".")
            if base not in since | changed and stored.isdisjoint(attributes):
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
        for way in around(here.stack, there.stack):
            if _never(way, there):
                return way, turned
    return None


def _named(found: Ways, here: Place, there: Place) -> Parted | None:
    for way in found.found:
        if _decided(way, here, there):
            return way
    left = [way for way in found.found if not _agreed(way, here, there)]
    if len(left) != 1 or not found.whole:
        return None
    (way,) = left
    # A rank that has not made the call inside of a `try` or a `with` has left that by an exception.
    if isinstance(way.node, Loop) or (way.may_be_passed and not here.made):
        return None
    alone = not way.own or (len(way.own) == 1 and _broke_off(way, here, there))
    return way if alone and _in_step(way, here, there) else None


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
    if isinstance(way.node, Loop) or not way.tests:
        return False
    others = getattr(way.node, "orelse", ())
    calls = (node for part in others for node in ast.walk(part) if isinstance(node, ast.Call))
    if any(True for _ in calls):
        return False
    known_of = (known(test, there.rank) if there.rank is not None else {} for test, _ in way.tests)
    return any(
        truth(test, values) is (not held)
        for (test, held), values in zip(way.tests, known_of, strict=True)
    )


def _agreed(way: Parted, here: Place, there: Place) -> bool:
    """True when it has led both ranks the same way, so that it cannot have parted them."""
    if isinstance(way.node, Loop):
        made = _turns_made(way, here, there)
        return _as_long(way, here, there) or any(mine < its for mine, its in made)
    if not way.tests or way.own:
        return False
    if all(truth(test, there.then(way, test)) is held for test, held in way.tests):
        return True
    counted = {counter.name for turns in way.shared for counter in turns.counters}
    asked = {name for test, _ in way.tests for name in names(test)}
    return asked <= counted and _in_step(way, here, there)


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
    if not way.own and _in_step(way, here, there):
        return told
    changing = {name for turns in (*way.shared, *way.own) for name in turns.changing}
    return {name: value for name, value in told.items() if name.split(".")[0] not in changing}


def _turns_made(way: Parted, here: Place, there: Place) -> Iterator[tuple[int, int]]:
    """The turns of a loop before that of `here`, and all of `there`, by each thing that tells.

    A loop that can be left by `break` does not tell how many turns it would have made.
    """
    if any(isinstance(node, ast.Break) for node in own_nodes(way.node)):
        return
    if len(here.stack) <= way.frame or len(there.stack) <= way.frame:
        return
    inside, outside = here.stack[way.frame], there.stack[way.frame]
    for counter in counters(way.node) if isinstance(way.node, Loop) else ():
        mine, left = counter.at_start(inside), outside.values.get(counter.name)
        if mine is not None and type(left) is int:
            yield mine, left + (counter.raised is None)
    if isinstance(way.node, Loop) and _in_step(way, here, there):
        turns = Turns.of_loop(way.frame, way.node)
        yield from counted.turns_made(turns, here.stack, here.made, there.made)


def _in_step(way: Parted, here: Place, there: Place) -> bool:
    """True when both ranks are known to be in the same turn of each loop around it."""
    return all(
        turns.same(here.stack[turns.frame], there.stack[turns.frame])
        or counted.in_step(turns, here.stack, there.stack, here.made, there.made)
        for turns in way.shared
    )


@functools.lru_cache(maxsize=256)
def _changed_by_calls(text: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a call may change: names declared global, and attributes stored outside of `__init__`."""
    names_found: set[str] = set()
    attributes: set[str] = set()
    tree = parsed(text)
    functions = [] if tree is None else [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    for function in functions:
        for node in own_nodes(function):
            if isinstance(node, ast.Global | ast.Nonlocal):
                names_found |= {*node.names}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                attributes |= {node.attr} if function.name != "__init__" else set()
    return frozenset(names_found), frozenset(attributes)
