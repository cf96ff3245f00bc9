"""What several ranks of a machine did at the same ticks, by the samples that each has taken. No I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .samples import Sample

KEPT = 64
"""Samples of a rank that are kept until those of the others are known."""

LATE = 3.0
"""Seconds after which a sample does not come any more."""

UNABLE = "unable"
"""What a rank did that could not run at a tick."""


class Alignment:
    """The newest samples of some ranks."""

    def __init__(self) -> None:
        self._samples: dict[int, deque[Sample]] = {}
        self._newest = -1

    @property
    def ranks(self) -> frozenset[int]:
        """Those of which there are samples."""
        return frozenset(self._samples)

    def take(self, rank: int, samples: Iterable[Sample]) -> list[Sample]:
        """Take in the samples of a rank; return those that are new."""
        queue = self._samples.setdefault(rank, deque(maxlen=KEPT))
        newest = queue[-1].tick if queue else -1
        new = [sample for sample in samples if sample.tick > newest]
        queue.extend(new)
        return new

    def due(self, now: float) -> Iterator[int]:
        """The ticks, each once, of which everything is known by now that will be.

        Args:
            now: seconds since the command was started.
        """
        while (tick := self._next(now)) is not None:
            yield tick
            self._newest = tick

    def _next(self, now: float) -> int | None:
        newer = [
            next((sample for sample in samples if sample.tick > self._newest), None)
            for samples in self._samples.values()
        ]
        new = [sample for sample in newer if sample is not None]
        if not new or (len(new) < len(newer) and now - min(sample.at for sample in new) < LATE):
            return None
        return max(self._newest + 1, min(sample.due for sample in new))

    def time_of(self, tick: int, default: float) -> float:
        """Seconds at which a tick was, by a sample that was taken at it."""
        times = (s.at for samples in self._samples.values() for s in samples if s.tick >= tick)
        return min(times, default=default)

    def at(self, tick: int) -> dict[int, str] | None:
        """What each rank did at a tick, `UNABLE` for one that could not run.

        None where nothing tells that of one of them, or one may have waited for its device.
        """
        done = {rank: _at(tick, samples) for rank, samples in self._samples.items()}
        activities = {rank: what for rank, what in done.items() if what is not None and what != "device"}
        return activities if len(activities) == len(done) else None

    def issued(self, tick: int) -> dict[int, Mapping[str, int]]:
        """The newest collective of each group that each rank had issued by a tick; of one that could not
        run, as far as it had come before."""
        return {rank: _issued(tick, samples) for rank, samples in self._samples.items()}

    def ran(self, tick: int) -> dict[int, float]:
        """For how many seconds the thread of each rank had had a processor by a tick: one that waits on
        has had no more."""
        return {
            rank: next((sample.ran for sample in samples if sample.tick >= tick), 0.0)
            for rank, samples in self._samples.items()
        }


def _at(tick: int, samples: Sequence[Sample]) -> str | None:
    after = next((sample for sample in samples if sample.tick >= tick), None)
    if after is None:
        return UNABLE if samples else None
    if after.tick == tick:
        return after.doing
    before = next((sample for sample in reversed(samples) if sample.tick < tick), None)
    if before is None or after.due > tick:
        return None  # it was not to be looked at then
    if before.doing == after.doing == "waits" and after.ran == before.ran:
        return "waits"
    return UNABLE


def _issued(tick: int, samples: Sequence[Sample]) -> Mapping[str, int]:
    earlier = [sample for sample in samples if sample.tick <= tick]
    return earlier[-1].issued if earlier else {}
