"""Who is waited for while a job runs, as it is told."""

from __future__ import annotations

from typing import Literal

import msgspec

from .frames import Frame

SlowKind = Literal[
    "compute", "input", "io", "gil", "quota", "stopped", "gc", "compile", "data", "unknown"
]
"""What takes the time of who is waited for: it computes; it waits for what loads its data; it reads or
writes; another of its threads has the interpreter lock; it gets no processor; a signal stops it; it
searches for garbage; it compiles; it does more than the others at the same line; none of these."""


class Share(msgspec.Struct, frozen=True):
    """How the time since all ranks had joined went on a rank, or on the group that was waited for.

    Attributes:
        waited_for: the share of it for which all others waited for these; waits: for which they waited
            for others.
        where, kind, asleep: as for `Slow`, of those who were waited for long enough to tell.
        waits_at: the line at which they waited the longest; None where none is known.
    """

    ranks: tuple[int, ...]
    waited_for: float
    waits: float
    where: Frame | None = None
    kind: SlowKind = "unknown"
    asleep: bool = False
    waits_at: Frame | None = None


class Slow(msgspec.Struct, frozen=True):
    """The rank, or the group of ranks, for which all others have waited.

    Attributes:
        ranks: it or them; where: the line at which most of the time went, perhaps of a child that loads
            data; None where none is known.
        share: of the time since all ranks had joined; seconds: the same.
        asleep: True where most of the time went in a sleep.
        shares: of all ranks, those who were waited for the longest first.
    """

    ranks: tuple[int, ...]
    share: float
    kind: SlowKind
    seconds: float
    where: Frame | None = None
    asleep: bool = False
    shares: tuple[Share, ...] = ()

    @property
    def rank(self) -> int | None:
        """The rank, None for several."""
        return self.ranks[0] if len(self.ranks) == 1 else None


class Alike(msgspec.Struct, frozen=True):
    """The line at which all ranks spend much of their time, none more than the others.

    Attributes:
        share: the least that any rank spends there.
    """

    where: Frame
    share: float
    kind: SlowKind
    asleep: bool = False
