"""What a rank has issued in its groups, call after call."""

from __future__ import annotations

from dataclasses import dataclass

from .frames import Frame


@dataclass(frozen=True, eq=False)
class IssuedCall:
    """An operation and the lines that issued it; one and the same object wherever both are equal.

    Attributes:
        stack: innermost frame first; a stretch of a library's frames between two of the user's is one.
    """

    op: str
    stack: tuple[Frame, ...]


@dataclass(frozen=True)
class Issued:
    """The newest calls of one group, oldest first.

    Attributes:
        group: its name; first: sequence number of the first of `calls`.
    """

    group: str
    first: int
    calls: tuple[IssuedCall, ...]
