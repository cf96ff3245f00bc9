"""What is known of a rank, and where it may have been. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from ...program.condition import Values
from ...program.syntax import Plain
from .contexts import Context, Place

Name = tuple[int, str]
"""The number of a context, and the name of a variable there."""


class Offset(msgspec.Struct, frozen=True):
    """A number that is not known, but how much more it is than at the start."""

    name: Name
    by: int


Known = frozenset[tuple[Name, Plain | Offset]]
"""Names, each with its value."""


class State(NamedTuple):
    """Where a rank may be, and what is known of it there.

    Attributes:
        back: True where the call of the step has been made.
        call_count: how many of the calls that are known have been made.
        last: how many of the functions in which the rank is now have been entered for the last time.
        values: of variables, by context.
    """

    context: Context
    step: int
    back: bool
    call_count: int
    last: int
    values: Known

    @property
    def position(self) -> tuple[Context, int, bool, int]:
        """What two ranks have in common that have gone the same way."""
        return (self.context, self.step, self.back, self.call_count)


class Observation(msgspec.Struct, frozen=True):
    """What is known of a rank.

    Attributes:
        calls: where it made each call since the start, and where it is: the last of them; None for the
            end of the program.
        now: the frames in which it is, by context.
        start: the call that it had made at the start, if it had made one.
        counted: what counts the iterations of the loop at whose head it was at the start.
    """

    rank: int | None
    calls: Sequence[Place | None]
    now: Mapping[Context, tuple[frozenset[int], Values]]
    start: Place | None = None
    counted: Mapping[str, int] = msgspec.field(default_factory=dict)

    @property
    def places(self) -> list[Place]:
        """Where it made calls, and where it is."""
        return [place for place in self.calls if place is not None]


@dataclass(eq=False)
class Point:
    """A state to which a way leads that explains what is known, and where it may lead from there.

    Attributes:
        leads: label of the way -> the next one.
        start_values: what numbers were at the start, by each way on from there; empty where none
            leads on.
    """

    state: State
    leads: list[tuple[str, Point]] = field(default_factory=list, repr=False)
    start_values: frozenset[Known] = frozenset()
