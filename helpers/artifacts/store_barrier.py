"""The ranks that a log shows at the end of `init_process_group`, where they wait for the others."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .patterns import failure_lines
from .writers import Line

SOON = 12
"""Lines after the last of those by which ranks wait: with more of them, the job has gone on."""


class StoreBarrier(msgspec.Struct):
    """What is told of the newest barrier.

    Attributes:
        key: of it in the store; world, count: the ranks of the job, and those that have come.
        waiting: the ranks that wait, each with the line that says so.
        since: lines of other kinds after the last of these.
    """

    key: str = ""
    world: int = 0
    count: int = 0
    waiting: dict[int, Line] = msgspec.field(default_factory=dict)
    since: int = 0

    def take(self, line: Line) -> None:
        """The next line of the log."""
        match = failure_lines.STORE_BARRIER.search(line.text)
        if match is None or not match["waits"]:
            self.since += bool(line.text.strip())
            return
        if match["key"] != self.key:
            self.key, self.count, self.waiting = match["key"], 0, {}
        self.world, self.count = int(match["world"]), max(self.count, int(match["count"]))
        self.waiting[int(match["rank"])] = line
        self.since = 0

    def stuck(self, failed: Iterable[object]) -> dict[int, Line]:
        """The ranks that still wait, if these are all that have come, and each is needed.

        Args:
            failed: what has failed in the log: then the job waits no more.
        """
        all_told = len(self.waiting) == self.count < self.world
        return self.waiting if all_told and self.since <= SOON and not any(failed) else {}
