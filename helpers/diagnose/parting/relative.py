"""Which of two ranks is further in the program, and which has gone aside. No I/O."""

from __future__ import annotations

from ...program.blocks import function_of, path
from ...program.flow import ENTRY, flow_of
from .contexts import Stack


def has_passed(one: Stack, other: Stack) -> bool:
    """True where `one` has run the line at which `other` is: nothing can have led it past, or back.

    The source of what `one` runs has to be known.
    """
    at = _first_difference(one, other)
    function = function_of(one[at]) if at is not None else None
    if at is None or function is None:
        return False
    flow = flow_of(function)
    here, there = flow.at(one[at].line), flow.at(other[at].line)
    return (
        bool(here and there)
        and not flow.leads(ENTRY, here, without=there)
        and not any(flow.leads(step, there) for step in here)
    )


def went_aside(one: Stack, other: Stack) -> bool:
    """True when `one` is inside a statement, in a function that `other` runs outside of it."""
    at = _first_difference(one, other)
    function = function_of(one[at]) if at is not None else None
    if at is None or function is None:
        return False
    here, there = (
        [step for step in path(function, stack[at].line) if step.part] for stack in (one, other)
    )
    inside = len(here) > len(there)
    return inside and all(mine.within(its) for mine, its in zip(here, there, strict=False))


def _first_difference(one: Stack, other: Stack) -> int | None:
    """The outermost frames that run one function at different lines."""
    for at, (here, there) in enumerate(zip(one, other, strict=False)):
        if here != there:
            same = (here.file, here.function) == (there.file, there.function)
            edited = here.text and there.text and here.text != there.text
            return at if same and not edited else None
    return None
