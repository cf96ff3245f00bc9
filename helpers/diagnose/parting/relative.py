"""Which of two ranks is further in the program, and which has gone aside. No I/O."""

from __future__ import annotations

from ...program.blocks import function_of, path
from ...program.flow import ENTRY, flow_of
from .contexts import Stack


def has_passed(stack: Stack, peer_stack: Stack) -> bool:
    """True where a rank has run the line at which its peer is: nothing can have led it past, or back.

    The source of what the rank runs has to be known.
    """
    at = _first_difference(stack, peer_stack)
    function = function_of(stack[at]) if at is not None else None
    if at is None or function is None:
        return False
    flow = flow_of(function)
    steps, peer_steps = flow.at(stack[at].line), flow.at(peer_stack[at].line)
    return (
        bool(steps and peer_steps)
        and not flow.leads(ENTRY, steps, without=peer_steps)
        and not any(flow.leads(step, peer_steps) for step in steps)
    )


def went_aside(stack: Stack, peer_stack: Stack) -> bool:
    """True when a rank is inside a statement, in a function that its peer runs outside of it."""
    at = _first_difference(stack, peer_stack)
    function = function_of(stack[at]) if at is not None else None
    if at is None or function is None:
        return False
    parts, peer_parts = (
        [step for step in path(function, frames[at].line) if step.part] for frames in (stack, peer_stack)
    )
    inside = len(parts) > len(peer_parts)
    return inside and all(
        part.within(peer_part) for part, peer_part in zip(parts, peer_parts, strict=False)
    )


def _first_difference(stack: Stack, peer_stack: Stack) -> int | None:
    """The outermost frames that run one function at different lines."""
    for at, (frame, peer_frame) in enumerate(zip(stack, peer_stack, strict=False)):
        if frame != peer_frame:
            same = (frame.file, frame.function) == (peer_frame.file, peer_frame.function)
            edited = frame.text and peer_frame.text and frame.text != peer_frame.text
            return at if same and not edited else None
    return None
