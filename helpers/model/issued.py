"""What a rank has issued in its groups, call after call."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from .frames import Frame, Scalar


class IssuedCall(msgspec.Struct, frozen=True, eq=False):
    """An operation and the lines that issued it; one and the same object wherever both are equal.

    Attributes:
        stack: innermost frame first; a stretch of a library's frames between two of the user's is one.
    """

    op: str
    stack: tuple[Frame, ...]


NEW_GROUP = "new_group"
"""The call that creates a group, which all ranks make in the same order."""

CallValues = tuple[Mapping[str, Scalar], ...]
"""Of each of the user's frames, the names and values that were kept of a call."""


class Issued(msgspec.Struct, frozen=True):
    """The newest calls of one group, oldest first.

    Attributes:
        group: its name; first: sequence number of the first of `calls`.
        values: of each call, what the user's frames held then, innermost first; empty where nothing is
            known of any.
    """

    group: str
    first: int
    calls: tuple[IssuedCall, ...]
    values: tuple[CallValues, ...] = ()
