"""The statements at which two ranks may have parted, by all that explains where both are. No I/O."""

from __future__ import annotations

import ast
import itertools
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from ...program.condition import Values, made_of
from ...program.flow import AFTER, RAISED, Choice, asked_by
from ...program.hooks import Telling, exits
from ...program.syntax import holds
from .contexts import Context, Place, Stack
from .explanation import Explanation, TooManyError
from .state import Known, Name, Point, State

MOST_PAIRS, MOST_STEPS = 10_000, 50_000
"""Pairs of states that are looked at, and steps between the places where ways part and come together."""


class Divergence(msgspec.Struct, frozen=True):
    """A statement at which two ranks may have parted.

    Attributes:
        step: of the context, at which it is decided.
        labels: the way of each of both; reverse: True where the other way round explains as much.
        decided: True where the values that are known say so, whatever the ranks have done since.
        values: of the names that it asks for, on each of both.
        kept: those of these names that are as they were then, on each of both.
        fewer: the ways on which fewer calls are made than on the other.
    """

    context: Context
    step: int
    choice: Choice
    labels: tuple[str, str]
    decided: bool
    values: tuple[Values, Values]
    kept: tuple[frozenset[str], frozenset[str]]
    reverse: bool = False
    fewer: frozenset[str] = frozenset()

    @property
    def exits(self) -> tuple[Telling, ...]:
        """What may have ended the generators of the user's that a loop goes through."""
        through = self.choice.statement.iter if isinstance(self.choice.statement, ast.For) else None
        return () if through is None else exits(self.context.frame.text, through)


class Divergences(NamedTuple):
    """All statements at which two ranks may have parted.

    Attributes:
        statements: in the order in which the ranks come to them.
        elsewhere: True where code that cannot be followed may have decided.
        together: True where they need not have parted: one may only be further than the other.
    """

    statements: tuple[Divergence, ...]
    elsewhere: bool
    together: bool

    @property
    def decision(self) -> Divergence | None:
        """The only one that there is, or that the values show.

        A rank may be through with a loop of which nothing tells the length, or have met a condition of
        which nothing is known; but if others are where it cannot follow, whatever these are, they have
        not led them there: ranks could only meet there if the decided one were another.
        """
        decided = [one for one in self.statements if one.decided]
        if any(one.exits for one in self.statements):
            return None
        if len(decided) == 1 and all(
            one.decided or one.choice.kind in ("for", "if") for one in self.statements
        ):
            return decided[0]
        alone = len(self.statements) == 1 and not self.elsewhere and not self.together
        return self.statements[0] if alone else None

    @property
    def guards(self) -> tuple[Divergence, ...]:
        """Those of which one has decided, the likeliest first: what is known, then the nearest."""
        if self.decision is not None or self.together:
            return ()
        nearest = sorted(self.statements, key=lambda one: (not one.decided, -len(one.context.lineage)))
        return tuple(nearest)


Pair = tuple[Point, Point]


class Together:
    """Two ranks, followed side by side for as long as they go the same way."""

    def __init__(self, one: Explanation, other: Explanation) -> None:
        self.ranks = (one, other)
        self.statements: dict[tuple[int, int], Divergence] = {}
        self.elsewhere = self.together = False
        self._left: list[Pair] = [
            (mine, its)
            for mine in one.starts
            for its in other.starts
            if mine.state.position == its.state.position and _fit(mine.told, its.told)
        ]
        self._steps = 0
        self._run_through: set[tuple[int, int]] = set()
        self._regions: dict[tuple[Point, Context, int], _Region] = {}
        self._as_long: dict[int, tuple[Context, ast.stmt | ast.expr]] = {}

    def divergences(self) -> Divergences:
        """Follow both; raises TooManyError."""
        seen = set[Pair]()
        while self._left:
            pair = self._left.pop()
            if pair not in seen:
                seen.add(pair)
                self._follow(pair)
            if len(seen) > MOST_PAIRS:
                raise TooManyError
        left = [one for one in self.statements.values() if not self._is_as_long(one)]
        statements = [self._directed(one) for one in left or self.statements.values()]
        return Divergences(tuple(statements), self.elsewhere and not statements, self.together)

    def _is_as_long(self, one: Divergence) -> bool:
        """True for a loop that both have run through before: it had as many turns on both then."""
        place = (one.context.number, one.step)
        return one.choice.kind == "for" and not one.decided and place in self._run_through

    def _follow(self, pair: Pair) -> None:
        agree = _agree(*(point.state for point in pair)) or self._is_as_long_on_both(pair)
        for (label, mine), (other_label, its) in itertools.product(*(point.leads for point in pair)):
            if not _fit(mine.told, its.told):
                continue
            labels = (label, other_label)
            if label == other_label == "no":
                self._run_through.add((mine.state.context.number, pair[0].state.step))
            if label == other_label:
                self._left += [(mine, its)] if mine.state.position == its.state.position else []
            elif any(
                rank.is_at_rest(to.state) for rank, to in zip(self.ranks, (mine, its), strict=True)
            ):
                self.together = True
            elif not agree or RAISED in labels:
                self._apart(pair, labels, (mine, its))

    def _is_as_long_on_both(self, pair: Pair) -> bool:
        """True for a loop through something that has as many items on both."""
        context, step = pair[0].state.context, pair[0].state.step
        choice = context.flow.steps[step].choice
        if choice is None or not isinstance(choice.statement, ast.For):
            return False
        through, both = choice.statement.iter, zip(self.ranks, pair, strict=True)
        lengths = [rank.environment.length(point.state, through) for rank, point in both]
        if lengths[0] is None or lengths[0] != lengths[1]:
            return False
        self._as_long[id(choice.statement)] = (context, choice.statement)
        return True

    def _directed(self, one: Divergence) -> Divergence:
        """The statement with who went which way, also where the other way round explains as much.

        Who is through with a loop that is as long on both has left out more calls there than who is
        still in it: the latter has made more, and has not run more of its iterations.
        """
        loops = [
            loop
            for context, loop in self._as_long.values()
            if context is one.context and holds(loop, one.choice.statement.lineno)
        ]
        last = [rank.seen.calls[-1] for rank in self.ranks]
        inside = [
            any(place is not None and _is_in(place, one.context, loop) for loop in loops)
            for place in last
        ]
        if not one.reverse or len(one.fewer) != 1 or inside[0] == inside[1]:
            return one
        through = inside.index(False)
        leaves_out = one.labels[through] in one.fewer
        return replace(one, labels=one.labels if leaves_out else one.labels[::-1], reverse=False)

    def _apart(self, at: Pair, labels: tuple[str, str], to: Pair) -> None:
        """Follow two ranks that go different ways, up to where these come together again."""
        context, step = at[0].state.context, at[0].state.step
        merge = self.ranks[0].next(context, context.flow.merge(step, RAISED in labels))
        mine, its = (self._region(point, context, merge) for point in to)
        parts = _fit(mine.gone, its.gone)
        parts = parts or any(_fit(mine.gone, other.told) for other in its.arrived)
        parts = parts or any(_fit(one.told, its.gone) for one in mine.arrived)
        fewer = set[str]()
        for one, other in itertools.product(mine.arrived, its.arrived):
            if _fit(one.told, other.told):
                calls = self._calls(at[0], one, 0), self._calls(at[1], other, 1)
                self._left += [(one, other)] if calls[0] == calls[1] else []
                parts = parts or calls[0] != calls[1]
                fewer |= {labels[0]} if len(calls[0]) < len(calls[1]) else set()
                fewer |= {labels[1]} if len(calls[1]) < len(calls[0]) else set()
        if parts and not self._are_roles(at):
            self._note(at, labels, to, frozenset(fewer))

    def _region(self, start: Point, context: Context, merge: int) -> _Region:
        """Where the ways of a rank come to a step, and what is told on those that never do."""
        key = (start, context, merge)
        if key not in self._regions:
            self._regions[key] = _Region.between(start, context, merge)
            self._steps += self._regions[key].size
            if self._steps > MOST_STEPS:
                raise TooManyError
        return self._regions[key]

    def _calls(self, start: Point, end: Point, rank: int) -> list[str | None]:
        """The operations that a rank calls on a way."""
        places = self.ranks[rank].seen.calls[start.state.made : end.state.made]
        return [place.op if place is not None else None for place in places]

    def _are_roles(self, at: Pair) -> bool:
        """True where ranks go different ways by their numbers, and make one call together there.

        That is how a program gives roles: each rank is in a part of the statement that is its own.
        """
        if not self._is_decided(at):
            return False
        context, step = at[0].state.context, at[0].state.context.flow.steps[at[0].state.step]
        ops = []
        for rank, point in zip(self.ranks, at, strict=True):
            place = next(iter(rank.seen.calls[point.state.made :]), None)
            if place is None or step.choice is None or not _is_in(place, context, step.choice.statement):
                return False
            ops.append(place.op)
        return bool(ops[0]) and ops[0] == ops[1]

    def _is_decided(self, at: Pair) -> bool:
        """True where the values that are known lead both different ways."""
        both = zip(self.ranks, at, strict=True)
        ways = [rank.environment.ways(point.state) for rank, point in both]
        return all(len(way) == 1 for way in ways) and ways[0] != ways[1]

    def _note(self, at: Pair, labels: tuple[str, str], to: Pair, fewer: frozenset[str]) -> None:
        """Note the statement at which ranks may have parted, or that it is not known."""
        context, number = at[0].state.context, at[0].state.step
        choice = context.flow.steps[number].choice
        caught = _catcher(context, number) if choice is None and RAISED in labels else None
        if caught is not None:
            context, number, choice = caught
        if choice is None:
            self.elsewhere = True
            return
        one, other = (
            rank.known_at(point, after, asked_by(choice))
            for rank, point, after in zip(self.ranks, at, to, strict=True)
        )
        found = Divergence(
            context,
            number,
            choice,
            labels,
            decided=self._is_decided(at),
            values=(one[0], other[0]),
            kept=(one[1], other[1]),
            fewer=fewer,
        )
        key = (context.number, id(choice.statement))
        before = self.statements.get(key)
        self.statements[key] = found if before is None else _both(before, found)


def _agree(mine: State, its: State) -> bool:
    """True for a condition of which is known that it is the same on both, though not what."""
    choice = mine.context.flow.steps[mine.step].choice
    if choice is None:
        return False
    same = {name for (context, name), _ in mine.values & its.values if context == mine.context.number}
    through = getattr(choice.statement, "iter", None) or next(
        (part.iter for part in getattr(choice.statement, "generators", ())), None
    )
    if choice.test is None and isinstance(through, ast.Tuple | ast.List):
        return not any(isinstance(one, ast.Starred) for one in through.elts)
    return choice.test is not None and made_of(choice.test, same)


def gives_roles(one: Divergence, *stacks: Stack) -> bool:
    """True where the numbers of ranks have led each of them into a part of a statement of its own."""
    frames = [one.context.frame_in(stack) for stack in stacks]
    lines = [frame.line for frame in frames if frame is not None]
    inside = len(lines) == len(stacks) and all(holds(one.choice.statement, line) for line in lines)
    return one.decided and inside


def _both(one: Divergence, other: Divergence) -> Divergence:
    """A statement with what is true each time at which the ranks may have parted there."""
    values = tuple(
        {name: value for name, value in mine.items() if name in its and its[name] == value}
        for mine, its in zip(one.values, other.values, strict=True)
    )
    kept = tuple(mine & its for mine, its in zip(one.kept, other.kept, strict=True))
    return replace(
        one,
        decided=one.decided and other.decided,
        values=(values[0], values[1]),
        kept=(kept[0], kept[1]),
        reverse=one.reverse or other.reverse or one.labels == other.labels[::-1],
        fewer=one.fewer | other.fewer,
    )


def _is_in(place: Place, context: Context, statement: ast.stmt | ast.expr) -> bool:
    """True for a place that a statement of a context has led to, in one of its parts."""
    steps = dict(place.levels).get(context)
    return steps is not None and all(holds(statement, context.flow.steps[n].first) for n in steps)


class _Region(NamedTuple):
    """The ways of a rank between two steps.

    Attributes:
        arrived: where they come to the second step; gone: what is told on those that never do.
        size: how many points they have.
    """

    arrived: tuple[Point, ...]
    gone: frozenset[Known]
    size: int

    @classmethod
    def between(cls, start: Point, context: Context, merge: int) -> _Region:
        """The ways from a point on, as long as they stay inside of a context."""
        arrived, gone = [], frozenset[Known]()
        left, seen = [start], set[Point]()
        while left:
            point = left.pop()
            if point in seen:
                continue
            seen.add(point)
            state = point.state
            if state.context is context and state.step == merge and not state.back:
                arrived.append(point)
            elif context not in state.context.lineage or not point.leads:
                gone |= point.told
            else:
                left += [to for _, to in point.leads]
        return cls(tuple(arrived), gone, len(seen))


def _catcher(context: Context, number: int) -> tuple[Context, int, Choice] | None:
    """The `try` or `with` that takes an exception of a step."""
    handlers = context.flow.steps[number].handlers
    if handlers is not None:
        if isinstance(handlers, ast.Try | ast.TryStar):
            at = min(context.flow.deciding(handlers))
            choice = context.flow.steps[at].choice
            assert choice is not None
            return context, at, choice
        return context, number, Choice("with", handlers, None, {"": "in its body", RAISED: AFTER})
    if context.parent is None:
        return None
    found = (_catcher(context.parent, step) for step in sorted(context.steps))
    return next((one for one in found if one is not None), None)


def _fit(mine: frozenset[Known], its: frozenset[Known]) -> bool:
    """True where some way of each of both began with the same numbers."""
    return any(_same(dict(one), dict(other)) for one in mine for other in its)


def _same(one: dict[Name, object], other: dict[Name, object]) -> bool:
    return all(other.get(name, value) == value for name, value in one.items())
