"""The statements at which two ranks may have parted, by all that explains where both are. No I/O."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...program.condition import Values, made_of, names
from ...program.flow import AFTER, RAISED, Choice, asked_by
from ...program.syntax import holds
from .contexts import Context, Place
from .explained import Explained, Known, State, TooManyError

MOST_PAIRS = 40_000
"""Pairs of states that are looked at."""


MOST_GUARDS = 3
"""Statements that are told where no single one is known to have decided."""


@dataclass(frozen=True)
class Divergence:
    """A statement at which two ranks may have parted.

    Attributes:
        step: of the context, at which it is decided.
        labels: the way of each of both.
        decided: True where the values that are known say so, whatever the ranks have done since.
        values: of the names that it asks for, on each of both.
    """

    context: Context
    step: int
    choice: Choice
    labels: tuple[str, str]
    decided: bool
    values: tuple[Values, Values]


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

        A rank may be through with a loop of which nothing tells the length; but if others are where it
        cannot follow, whatever that length is, it is not the loop that has led them there.
        """
        decided = [one for one in self.statements if one.decided]
        if len(decided) == 1 and all(one.decided or one.choice.kind == "for" for one in self.statements):
            return decided[0]
        alone = len(self.statements) == 1 and not self.elsewhere and not self.together
        return self.statements[0] if alone else None

    @property
    def guards(self) -> tuple[Divergence, ...]:
        """Those of which one has decided, the likeliest first: what is known, then the nearest."""
        if self.decision is not None or self.together:
            return ()
        nearest = sorted(self.statements, key=lambda one: (not one.decided, -len(one.context.lineage)))
        return tuple(nearest[:MOST_GUARDS])


class Together:
    """Two ranks, followed side by side for as long as they go the same way."""

    def __init__(self, one: Explained, other: Explained) -> None:
        self.one, self.other = one, other
        self.statements: dict[tuple[int, int], Divergence] = {}
        self.elsewhere = self.together = False
        self._left = [
            (mine, its)
            for mine in one.starts
            for its in other.starts
            if mine.position == its.position and _fit(one.told[mine], other.told[its])
        ]
        self._seen: set[tuple[State, State]] = set()

    def divergences(self) -> Divergences:
        """Follow both; raises TooManyError."""
        while self._left:
            pair = self._left.pop()
            if pair in self._seen:
                continue
            self._seen.add(pair)
            if len(self._seen) > MOST_PAIRS:
                raise TooManyError
            self._follow(*pair)
        elsewhere = self.elsewhere and not self.statements
        return Divergences(tuple(self.statements.values()), elsewhere, self.together)

    def _follow(self, mine: State, its: State) -> None:
        agree = self._agree(mine, its)
        for label, to in self.one.leads[mine]:
            for other_label, other_to in self.other.leads[its]:
                if not _fit(self.one.told[to], self.other.told[other_to]):
                    continue
                if label == other_label:
                    if to.position == other_to.position:
                        self._left.append((to, other_to))
                elif self.one.is_at_rest(to) or self.other.is_at_rest(other_to):
                    self.together = True
                elif not agree or RAISED in (label, other_label):
                    self._apart((mine, its), (label, other_label), (to, other_to))

    def _agree(self, mine: State, its: State) -> bool:
        """True for a condition of which is known that it is the same on both, though not what."""
        choice = mine.context.flow.steps[mine.step].choice
        if choice is None or choice.test is None:
            return False
        same = dict(mine.values).items() & dict(its.values).items()
        names = {name for (context, name), _ in same if context == mine.context.number}
        return made_of(choice.test, names)

    def _apart(self, at: tuple[State, State], labels: tuple[str, str], to: tuple[State, State]) -> None:
        context, step = at[0].context, at[0].step
        merge = self.one.next(context, context.flow.merge(step, RAISED in labels))
        mine, gone = _until(self.one, to[0], context, merge)
        its, other_gone = _until(self.other, to[1], context, merge)
        together = [
            (one, other)
            for one in mine
            for other in its
            if self._alike(at[0].made, one, other) and _fit(self.one.told[one], self.other.told[other])
        ]
        self._left += together
        part = bool(gone or other_gone) and (
            _fit(gone, other_gone)
            or any(_fit(gone, self.other.told[other]) for other in its)
            or any(_fit(self.one.told[one], other_gone) for one in mine)
        )
        part = part or any(
            not self._alike(at[0].made, one, other) and _fit(self.one.told[one], self.other.told[other])
            for one in mine
            for other in its
        )
        if part and not self._are_roles(at):
            self._note(at, labels, to)

    def _are_roles(self, at: tuple[State, State]) -> bool:
        """True where ranks go different ways by their numbers, and make one call together there.

        That is how a program gives roles: each rank is in a part of the statement that is its own.
        """
        if not self._decide(at):
            return False
        context, step = at[0].context, at[0].context.flow.steps[at[0].step]
        ops = []
        for rank, state in zip((self.one, self.other), at, strict=True):
            place = rank.seen.calls[state.made] if state.made < len(rank.seen.calls) else None
            if place is None or step.choice is None or not _is_in(place, context, step.choice.statement):
                return False
            ops.append(place.op)
        return bool(ops[0]) and ops[0] == ops[1]

    def _decide(self, at: tuple[State, State]) -> bool:
        """True where the values that are known lead both different ways."""
        ways = [rank.ways(state) for rank, state in zip((self.one, self.other), at, strict=True)]
        return all(len(way) == 1 for way in ways) and ways[0] != ways[1]

    def _alike(self, made: int, one: State, other: State) -> bool:
        """True where both have made the same calls on their ways."""
        calls = [
            [place.op if place is not None else None for place in rank.seen.calls[made : state.made]]
            for rank, state in ((self.one, one), (self.other, other))
        ]
        return calls[0] == calls[1]

    def _note(self, at: tuple[State, State], labels: tuple[str, str], to: tuple[State, State]) -> None:
        mine, its = at
        context, number = mine.context, mine.step
        choice = mine.context.flow.steps[number].choice
        if RAISED in labels and choice is None:
            caught = _catcher(context, number)
            if caught is None:
                self.elsewhere = True
                return
            context, number, choice = caught
        if choice is None:
            self.elsewhere = True
            return
        values = [
            {
                name: value
                for asked in asked_by(choice)
                for name, value in rank.values_of(state, asked, to.step).items()
                if name in names(asked)
            }
            for rank, state, to in ((self.one, mine, to[0]), (self.other, its, to[1]))
        ]
        found = Divergence(context, number, choice, labels, self._decide(at), (values[0], values[1]))
        key = (context.number, id(choice.statement))
        before = self.statements.get(key)
        self.statements[key] = found if before is None else _both(before, found)


def _both(one: Divergence, other: Divergence) -> Divergence:
    """A statement with what is true each time at which the ranks may have parted there."""
    values = tuple(
        {name: value for name, value in mine.items() if name in its and its[name] == value}
        for mine, its in zip(one.values, other.values, strict=True)
    )
    return replace(one, decided=one.decided and other.decided, values=(values[0], values[1]))


def _is_in(place: Place, context: Context, statement: ast.stmt | ast.expr) -> bool:
    """True for a place that a statement of a context has led to, in one of its parts."""
    lineage = place.context.lineage
    if context not in lineage:
        return False
    inner = lineage[lineage.index(context) + 1 :]
    steps = inner[0].steps if inner else place.steps
    return all(holds(statement, context.flow.steps[step].first) for step in steps)


def _until(
    rank: Explained, start: State, context: Context, merge: int
) -> tuple[set[State], frozenset[Known]]:
    """The states in which a rank comes to a step, and what is told on the ways that never do."""
    arrived: set[State] = set()
    gone: set[Known] = set()
    left, seen = [start], set[State]()
    while left:
        state = left.pop()
        if state in seen:
            continue
        seen.add(state)
        if state.context is context and state.step == merge and not state.back:
            arrived.add(state)
        elif context not in state.context.lineage or not rank.leads[state]:
            gone |= rank.told[state]
        else:
            left += [to for _, to in rank.leads[state]]
    return arrived, frozenset(gone)


def _catcher(context: Context, number: int) -> tuple[Context, int, Choice] | None:
    """The `try` or `with` that takes an exception of a step."""
    handlers = context.flow.steps[number].handlers
    if handlers is not None:
        if isinstance(handlers, ast.Try | ast.TryStar):
            at = next(
                n
                for n, step in enumerate(context.flow.steps)
                if step.choice is not None and step.choice.statement is handlers
            )
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


def _same(one: dict[tuple[int, str], object], other: dict[tuple[int, str], object]) -> bool:
    return all(other.get(name, value) == value for name, value in one.items())
