"""What keeps a rank from a place by nothing but its number, wherever else it may have been. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from ...program.condition import truth
from ...program.flow import ENTRY, Choice
from ...program.identity import of_rank
from .contexts import Context, Contexts, Stack
from .divergence import Divergence


def exclusion(stack: Stack, peer: int, rank: int) -> Divergence | None:
    """The condition that keeps a rank from where another one is; None where it may come there.

    Args:
        stack: of the rank `peer`, outermost frame first.
    """
    place = Contexts().place(stack)
    if place is None:
        return None
    for context, at in place.levels:
        closed = _closed(context, rank)
        if context.flow.leads(ENTRY, at, closed=closed):
            continue
        for step in reversed([*closed]):
            without = {n: shut for n, shut in closed.items() if n != step}
            closed = closed if context.flow.leads(ENTRY, at, closed=without) else without
        if len(closed) == 1:
            ((step, label),) = closed.items()
            return _divergence(context, step, label, (peer, rank))
    return None


def _closed(context: Context, rank: int) -> Mapping[int, str]:
    """The steps of a function at which the number of a rank decides: the way that it does not go.

    In the order of the lines.
    """
    closed: dict[int, tuple[int, str]] = {}
    for number, step in enumerate(context.flow.steps):
        test = step.choice.test if step.choice is not None else None
        holds = None if test is None else truth(test, of_rank(test, rank, context.frame.text))
        if test is not None and holds is not None:
            closed[number] = test.lineno, "no" if holds else "yes"
    return {number: label for number, (_, label) in sorted(closed.items(), key=lambda entry: entry[1])}


def _divergence(context: Context, step: int, closed: str, ranks: tuple[int, int]) -> Divergence:
    choice = context.flow.steps[step].choice
    assert isinstance(choice, Choice) and choice.test is not None
    values = [of_rank(choice.test, rank, context.frame.text) for rank in ranks]
    unchanged = [frozenset(names) for names in values]
    return Divergence(
        context,
        step,
        choice,
        labels=(closed, "no" if closed == "yes" else "yes"),
        decided=True,
        values=(values[0], values[1]),
        unchanged=(unchanged[0], unchanged[1]),
    )
