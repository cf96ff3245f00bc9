"""How long each set of ranks was waited for, window by window: what stands out, and what is noise."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from ..model.pace import Ranks

SHORTEST = 0.8
"""Seconds of a window at first: longer than most steps, so that one says little of the next."""

BLOCKS = 8
"""Windows by which the spread is judged. There are up to twice as many, then each two become one: a job
of weeks takes no more room than one of a minute."""

QUANTILE = 2.365
"""Of Student's distribution with seven degrees of freedom, 97.5 %."""

LEAST = 0.10
"""Share below which nobody is said to be waited for."""

STANDS_OUT = 3.0
"""How many times as long as any other one somebody must have been waited for."""

MOST_SETS = 32
"""Sets of ranks that are counted in a window; the rarest are forgotten."""


class Window(msgspec.Struct):
    """Some ticks that follow each other.

    Attributes:
        begun: seconds at which the first of them was.
        ticks: how many; waited_for: a set of ranks -> at how many of them all other ranks waited.
    """

    begun: float = 0.0
    ticks: int = 0
    waited_for: Counter[Ranks] = msgspec.field(default_factory=Counter)

    def add(self, window: Window) -> None:
        """Take in another one."""
        self.ticks += window.ticks
        self.waited_for.update(window.waited_for)
        _bound(self.waited_for)


class Windows:
    """All ticks since the ranks had joined."""

    def __init__(self) -> None:
        self._windows: list[Window] = []
        self._length = SHORTEST
        self._current: tuple[Ranks, int] = (Ranks(), 0)
        self._longest: Counter[Ranks] = Counter()

    @property
    def ticks(self) -> int:
        """How many ticks there are."""
        return sum(window.ticks for window in self._windows)

    def note(self, ranks: Ranks, at: float, *, same_wait: bool = False, ticks: int = 1) -> None:
        """Take in a tick, or some that follow each other in one wait.

        Args:
            at: seconds at which it was.
            ranks: for which all others waited; empty where that was nobody.
            same_wait: whether the others have waited ever since the tick before.
            ticks: how many.
        """
        before, earlier = self._current
        self._current = ranks, ticks + (earlier if same_wait and ranks == before else 0)
        if ranks:
            self._longest[ranks] = max(self._longest[ranks], self._current[1])
        _bound(self._longest)
        if not self._windows or at - self._windows[-1].begun >= self._length:
            self._begin(at)
        self._windows[-1].add(Window(at, ticks, Counter({ranks: ticks} if ranks else {})))

    def _begin(self, at: float) -> None:
        if len(self._windows) >= 2 * BLOCKS:
            pairs = zip(self._windows[::2], self._windows[1::2], strict=True)
            self._windows = [_joined(pair) for pair in pairs]
            self._length *= 2
        self._windows.append(Window(at))

    def outstanding(self, number: int, quantile: float = QUANTILE) -> tuple[Ranks, float] | None:
        """Those who were waited for far more than any others, and for which share; None for nobody.

        Args:
            number: of all ranks, of which they are half at most: where it is more, a few are fast.
            quantile: of Student's distribution, how far the lead has to be above nothing.

        What was so once may be chance: the longest single wait has to leave enough. So may what comes
        and goes: the 95 % confidence interval of the lead over whoever comes next is above nothing.
        """
        total = _joined(self._windows)
        first = _most(total, [ranks for ranks in total.waited_for if 2 * len(ranks) <= number])
        blocks = self._blocks(first)
        if len(blocks) < BLOCKS:
            return None
        second = _most(total, [ranks for ranks in total.waited_for if not ranks & first])
        share = _share(total, first)
        together = total.waited_for[first] / max(1, total.ticks)
        repeated = together - self._longest[first] / max(1, total.ticks)
        if repeated < LEAST or share < STANDS_OUT * _share(total, second):
            return None
        lead = [_share(block, first) - _share(block, second) for block in blocks]
        return (first, share) if _lower_bound(lead, quantile) > 0 else None

    def share(self, ranks: Ranks) -> float:
        """The share of all ticks at which these, or some of these, were waited for by all others."""
        return _share(_joined(self._windows), ranks)

    def _blocks(self, ranks: Ranks) -> list[Window]:
        """The windows that are full, two by two where there are more than `BLOCKS`, the oldest first.

        What was before these ranks were waited for at all, such as the set-up of all, does not count.
        """
        full = self._windows[:-1]
        begins = next((at for at, window in enumerate(full) if _share(window, ranks)), len(full))
        full = full[begins:]
        size = max(1, len(full) // BLOCKS)
        return [_joined(full[at : at + size]) for at in range(0, size * BLOCKS, size) if full[at:]]


def _bound(counted: Counter[Ranks]) -> None:
    if len(counted) > 2 * MOST_SETS:
        for ranks, _ in counted.most_common()[MOST_SETS:]:
            del counted[ranks]


def _most(window: Window, candidates: Iterable[Ranks]) -> Ranks:
    """The set that was waited for the longest; the empty one without any."""
    return max(candidates, key=lambda ranks: window.waited_for[ranks], default=Ranks())


def _joined(windows: Sequence[Window]) -> Window:
    whole = Window(windows[0].begun if windows else 0.0)
    for window in windows:
        whole.add(window)
    return whole


def _share(window: Window, ranks: Ranks) -> float:
    """The share of the ticks at which these, or some of these, were waited for."""
    counted = sum(times for subset, times in window.waited_for.items() if subset <= ranks)
    return counted / window.ticks if window.ticks else 0.0


def _lower_bound(values: Sequence[float], quantile: float) -> float:
    """The lower end of the confidence interval of the mean."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return mean - quantile * spread / math.sqrt(len(values))
