"""Where ranks have parted: the statement that led them different ways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .frames import Frame

Kind = Literal["if", "match", "ifexp", "while", "for", "try", "with", "return", "exit"]


class Branch(msgspec.Struct, frozen=True):
    """A way that ranks have taken.

    Attributes:
        label: `in its body`, `after it`.
        at: the line to which it has led the first of them: in the function of the statement if they are
            in it still, else their innermost.
    """

    label: str
    ranks: tuple[int, ...]
    at: Frame | None = None


class Guard(msgspec.Struct, frozen=True):
    """A statement that may have decided.

    Attributes:
        ranks: the odd ones, which would not be where they are, had it been otherwise.
        source: its text, in one line.
    """

    kind: Kind
    ranks: tuple[int, ...]
    where: Frame
    source: str


class Call(msgspec.Struct, frozen=True):
    """A call of some ranks, and the line that made it."""

    ranks: tuple[int, ...]
    op: str
    where: Frame | None


class Met(msgspec.Struct, frozen=True):
    """One place of a group at which ranks made different calls, or one call from different lines."""

    group: str
    seq: int
    calls: tuple[Call, ...]


class Parting(msgspec.Struct, frozen=True):
    """Where ranks parted: the statement that alone explains their lines, or the calls from which on.

    Attributes:
        kind: None where no statement can be named; then `where` is None, too.
        source: the text of the statement, in one line.
        branches: who took which way.
        names: the names in its condition.
        values: name of its condition -> rank -> value, as text, where it can be read and has not changed
            since; differ: the names whose values differ.
        guards: where no statement is named, at most three of which one has decided, the likeliest first.
        history: the calls from which on the ranks no longer make the same, oldest first.
        chooses_group: True where it decides in which group ranks make a call.
    """

    kind: Kind | None = None
    where: Frame | None = None
    source: str = ""
    branches: tuple[Branch, ...] = ()
    names: tuple[str, ...] = ()
    values: Mapping[str, Mapping[int, str]] = msgspec.field(default_factory=dict)
    differ: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    history: tuple[Met, ...] = ()
    chooses_group: bool = False
