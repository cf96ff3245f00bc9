"""One line of a stack, and what a stack tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Branch:
    """A statement around a line, and the part of it that the line is in.

    Attributes:
        kind: `if`, `for`, `while`, `try`, `with` or `match`.
        line: of the statement; label: `in its body`, `in its else`, ...
    """

    kind: str
    line: int
    label: str


@dataclass(frozen=True)
class Frame:
    """One Python frame.

    Attributes:
        branches: the statements around its line, outermost first, of the user's own code; empty where
            they are not known. Two frames at one line are equal without them.
        file: relative to the job's working directory where it lies inside it, else absolute.
        line: line number, from 1.
        function: name of the function, `<module>` at top level.
        user: True when it is the user's own code, not a library's and not the instrument's.
    """

    file: str
    line: int
    function: str
    user: bool = True
    branches: tuple[Branch, ...] = field(default=(), compare=False, repr=False)


def innermost_user(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's own code, of a stack with its innermost frame first."""
    return next((frame for frame in stack if frame.user), None)


def is_in(stack: Sequence[Frame], function: str) -> bool:
    """True when one of the frames is of a function with this name."""
    return any(frame.function == function for frame in stack)
