"""What was seen of a job from one place, where several have seen some of its ranks."""

from __future__ import annotations

import msgspec

from .facts import Snapshot
from .pace import Pace


class Part(msgspec.Struct, frozen=True, eq=False):
    """What was seen of a job from one place.

    Attributes:
        last: how it was at last; before: the last moment at which no rank had failed.
        over: False where what was seen breaks off, or goes on.
        patience: seconds after which whoever looked takes a rank that does not move for a suspicion.
        attached: True for a job that was running before anybody looked.
        name: of the file that tells it; begun: when that was begun, by the clock of its machine, as
            ISO 8601 in UTC. Empty for what several files tell.
        pace: what the ranks did on their way to each collective; None where nothing tells it.
    """

    last: Snapshot
    before: Snapshot
    over: bool = True
    patience: float = 30.0
    attached: bool = False
    name: str = ""
    begun: str = ""
    pace: Pace | None = None
