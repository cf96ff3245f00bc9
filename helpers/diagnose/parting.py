"""Where the stacks of two ranks part. No I/O."""

from __future__ import annotations

from ..model.facts import ProcessView
from ..model.frames import Frame


def went_aside(one: ProcessView | None, other: ProcessView | None) -> bool:
    """True when `one` is inside a statement, in a function that `other` runs outside of it."""
    here, there = _first_difference(one, other)
    if here is None or there is None:
        return False
    return (
        len(here.branches) > len(there.branches)
        and here.branches[: len(there.branches)] == there.branches
    )


def _first_difference(
    one: ProcessView | None, other: ProcessView | None
) -> tuple[Frame | None, Frame | None]:
    """The outermost frames of the user's that run the same function at different lines."""
    stacks = ([f for f in reversed(p.stack) if f.user] if p is not None else [] for p in (one, other))
    for here, there in zip(*stacks, strict=False):
        if here != there:
            same = (here.file, here.function) == (there.file, there.function)
            return (here, there) if same else (None, None)
    return None, None
