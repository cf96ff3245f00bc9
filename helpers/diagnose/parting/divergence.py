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
        unchanged: those of these names that are as they were then, on each of both.
        fewer: the ways on which fewer calls are made than on the other.
    """

    context: Context
    step: int
    choice: Choice
    labels: tuple[str, str]
    decided: bool
    values: tuple[Values, Values]
    unchanged: tuple[frozenset[str], frozenset[str]]
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
        decided = [divergence for divergence in self.statements if divergence.decided]
        if any(divergence.exits for divergence in self.statements):
            return None
        if len(decided) == 1 and all(
            divergence.decided or divergence.choice.kind in ("for", "if")
            for divergence in self.statements
        ):
            return decided[0]
        alone = len(self.statements) == 1 and not self.elsewhere and not self.together
        return self.statements[0] if alone else None

    @property
    def guards(self) -> tuple[Divergence, ...]:
        """Those of which one has decided, the likeliest first: what is known, then the nearest."""
        if self.decision is not None or self.together:
            return ()
        nearest = sorted(
            self.statements,
            key=lambda divergence: (not divergence.decided, -len(divergence.context.lineage)),
        )
        return tuple(nearest)


Pair = tuple[Point, Point]


class Together:
    """Two ranks, followed side by side for as long as they go the same way."""

    def __init__(self, first_rank: Explanation, second_rank: Explanation) -> None:
        self.ranks = (first_rank, second_rank)
        self.statements: dict[tuple[int, int], Divergence] = {}
        self.elsewhere = self.together = False
        self._pending: list[Pair] = [
            (point, peer_point)
            for point in first_rank.starts
            for peer_point in second_rank.starts
            if point.state.position == peer_point.state.position
            and _fit(point.start_values, peer_point.start_values)
        ]
        self._steps = 0
        self._run_through: set[tuple[int, int]] = set()
        self._regions: dict[tuple[Point, Context, int], _Region] = {}
        self._as_long: dict[int, tuple[Context, ast.stmt | ast.expr]] = {}

    def divergences(self) -> Divergences:
        """Follow both; raises TooManyError."""
        followed = set[Pair]()
        while self._pending:
            pair = self._pending.pop()
            if pair not in followed:
                followed.add(pair)
                self._follow(pair)
            if len(followed) > MOST_PAIRS:
                raise TooManyError
        candidates = [
            divergence for divergence in self.statements.values() if not self._is_as_long(divergence)
        ]
        statements = [
            self._directed(divergence) for divergence in candidates or self.statements.values()
        ]
        return Divergences(tuple(statements), self.elsewhere and not statements, self.together)

    def _is_as_long(self, divergence: Divergence) -> bool:
        """True for a loop that both have run through before: it had as many turns on both then."""
        place = (divergence.context.number, divergence.step)
        return divergence.choice.kind == "for" and not divergence.decided and place in self._run_through

    def _follow(self, pair: Pair) -> None:
        agree = _agree(*(point.state for point in pair)) or self._is_as_long_on_both(pair)
        for (label, point), (peer_label, peer_point) in itertools.product(
            *(point.leads for point in pair)
        ):
            if not _fit(point.start_values, peer_point.start_values):
                continue
            labels = (label, peer_label)
            if label == peer_label == "no":
                self._run_through.add((point.state.context.number, pair[0].state.step))
            if label == peer_label:
                self._pending += (
                    [(point, peer_point)] if point.state.position == peer_point.state.position else []
                )
            elif any(
                rank.is_at_rest(to.state)
                for rank, to in zip(self.ranks, (point, peer_point), strict=True)
            ):
                self.together = True
            elif not agree or RAISED in labels:
                self._diverge(pair, labels, (point, peer_point))

    def _is_as_long_on_both(self, pair: Pair) -> bool:
        """True for a loop through something that has as many items on both."""
        context, step = pair[0].state.context, pair[0].state.step
        choice = context.flow.steps[step].choice
        if choice is None or not isinstance(choice.statement, ast.For):
            return False
        through, sides = choice.statement.iter, zip(self.ranks, pair, strict=True)
        lengths = [rank.environment.length(point.state, through) for rank, point in sides]
        if lengths[0] is None or lengths[0] != lengths[1]:
            return False
        self._as_long[id(choice.statement)] = (context, choice.statement)
        return True

    def _directed(self, divergence: Divergence) -> Divergence:
        """The statement with who went which way, also where the other way round explains as much.

        Who is through with a loop that is as long on both has left out more calls there than who is
        still in it: the latter has made more, and has not run more of its iterations.
        """
        loops = [
            loop
            for context, loop in self._as_long.values()
            if context is divergence.context and holds(loop, divergence.choice.statement.lineno)
        ]
        last = [rank.calls[-1] for rank in self.ranks]
        inside = [
            any(place is not None and _is_in(place, divergence.context, loop) for loop in loops)
            for place in last
        ]
        if not divergence.reverse or len(divergence.fewer) != 1 or inside[0] == inside[1]:
            return divergence
        through = inside.index(False)
        leaves_out = divergence.labels[through] in divergence.fewer
        return replace(
            divergence,
            labels=divergence.labels if leaves_out else divergence.labels[::-1],
            reverse=False,
        )

    def _diverge(self, at: Pair, labels: tuple[str, str], to: Pair) -> None:
        """Follow two ranks that go different ways, up to where these come together again."""
        context, step = at[0].state.context, at[0].state.step
        merge = self.ranks[0].next(context, context.flow.merge(step, RAISED in labels))
        region, peer_region = (self._region(point, context, merge) for point in to)
        parts = _fit(region.exit_values, peer_region.exit_values)
        parts = parts or any(
            _fit(region.exit_values, peer_point.start_values) for peer_point in peer_region.arrived
        )
        parts = parts or any(
            _fit(point.start_values, peer_region.exit_values) for point in region.arrived
        )
        fewer = set[str]()
        for point, peer_point in itertools.product(region.arrived, peer_region.arrived):
            if _fit(point.start_values, peer_point.start_values):
                calls = self._calls(at[0], point, 0), self._calls(at[1], peer_point, 1)
                self._pending += [(point, peer_point)] if calls[0] == calls[1] else []
                parts = parts or calls[0] != calls[1]
                fewer |= {labels[0]} if len(calls[0]) < len(calls[1]) else set()
                fewer |= {labels[1]} if len(calls[1]) < len(calls[0]) else set()
        if parts and not self._are_roles(at):
            self._note(at, labels, to, frozenset(fewer))

    def _region(self, start: Point, context: Context, merge: int) -> _Region:
        """Where the ways of a rank come to a step, and how those began that never do."""
        key = (start, context, merge)
        if key not in self._regions:
            self._regions[key] = _Region.between(start, context, merge)
            self._steps += self._regions[key].size
            if self._steps > MOST_STEPS:
                raise TooManyError
        return self._regions[key]

    def _calls(self, start: Point, end: Point, rank: int) -> list[str | None]:
        """The operations that a rank calls on a way."""
        places = self.ranks[rank].calls[start.state.call_count : end.state.call_count]
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
            place = next(iter(rank.calls[point.state.call_count :]), None)
            if place is None or step.choice is None or not _is_in(place, context, step.choice.statement):
                return False
            ops.append(place.op)
        return bool(ops[0]) and ops[0] == ops[1]

    def _is_decided(self, at: Pair) -> bool:
        """True where the values that are known lead both different ways."""
        sides = zip(self.ranks, at, strict=True)
        ways = [rank.environment.ways(point.state) for rank, point in sides]
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
        (values, unchanged), (peer_values, peer_unchanged) = (
            rank.values_at(point, after, asked_by(choice))
            for rank, point, after in zip(self.ranks, at, to, strict=True)
        )
        divergence = Divergence(
            context,
            number,
            choice,
            labels,
            decided=self._is_decided(at),
            values=(values, peer_values),
            unchanged=(unchanged, peer_unchanged),
            fewer=fewer,
        )
        key = (context.number, id(choice.statement))
        before = self.statements.get(key)
        self.statements[key] = divergence if before is None else _intersection(before, divergence)


def _agree(state: State, peer_state: State) -> bool:
    """True for a condition of which is known that it is the same on both, though not what."""
    choice = state.context.flow.steps[state.step].choice
    if choice is None:
        return False
    same = {
        name
        for (context, name), _ in state.values & peer_state.values
        if context == state.context.number
    }
    through = getattr(choice.statement, "iter", None) or next(
        (part.iter for part in getattr(choice.statement, "generators", ())), None
    )
    if choice.test is None and isinstance(through, ast.Tuple | ast.List):
        return not any(isinstance(element, ast.Starred) for element in through.elts)
    return choice.test is not None and made_of(choice.test, same)


def gives_roles(divergence: Divergence, *stacks: Stack) -> bool:
    """True where the numbers of ranks have led each of them into a part of a statement of its own."""
    frames = [divergence.context.frame_in(stack) for stack in stacks]
    lines = [frame.line for frame in frames if frame is not None]
    inside = len(lines) == len(stacks) and all(
        holds(divergence.choice.statement, line) for line in lines
    )
    return divergence.decided and inside


def _intersection(first: Divergence, second: Divergence) -> Divergence:
    """A statement with what is true each time at which the ranks may have parted there."""
    values = tuple(
        {
            name: value
            for name, value in first_values.items()
            if name in second_values and second_values[name] == value
        }
        for first_values, second_values in zip(first.values, second.values, strict=True)
    )
    unchanged = tuple(a & b for a, b in zip(first.unchanged, second.unchanged, strict=True))
    return replace(
        first,
        decided=first.decided and second.decided,
        values=(values[0], values[1]),
        unchanged=(unchanged[0], unchanged[1]),
        reverse=first.reverse or second.reverse or first.labels == second.labels[::-1],
        fewer=first.fewer | second.fewer,
    )


def _is_in(place: Place, context: Context, statement: ast.stmt | ast.expr) -> bool:
    """True for a place that a statement of a context has led to, in one of its parts."""
    steps = dict(place.levels).get(context)
    return steps is not None and all(holds(statement, context.flow.steps[n].first) for n in steps)


class _Region(NamedTuple):
    """The ways of a rank between two steps.

    Attributes:
        arrived: where they come to the second step.
        exit_values: what numbers were at the start of the ways that never do.
        size: how many points they have.
    """

    arrived: tuple[Point, ...]
    exit_values: frozenset[Known]
    size: int

    @classmethod
    def between(cls, start: Point, context: Context, merge: int) -> _Region:
        """The ways from a point on, as long as they stay inside of a context."""
        arrived, exit_values = [], frozenset[Known]()
        pending, visited = [start], set[Point]()
        while pending:
            point = pending.pop()
            if point in visited:
                continue
            visited.add(point)
            state = point.state
            if state.context is context and state.step == merge and not state.back:
                arrived.append(point)
            elif context not in state.context.lineage or not point.leads:
                exit_values |= point.start_values
            else:
                pending += [to for _, to in point.leads]
        return cls(tuple(arrived), exit_values, len(visited))


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
    catchers = (_catcher(context.parent, step) for step in sorted(context.steps))
    return next((catcher for catcher in catchers if catcher is not None), None)


def _fit(starts: frozenset[Known], peer_starts: frozenset[Known]) -> bool:
    """True where some way of each of both began with the same numbers."""
    return any(_same(dict(start), dict(peer_start)) for start in starts for peer_start in peer_starts)


def _same(values: dict[Name, object], peer_values: dict[Name, object]) -> bool:
    return all(peer_values.get(name, value) == value for name, value in values.items())
