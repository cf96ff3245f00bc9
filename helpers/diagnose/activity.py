"""What a rank did while others waited for it: at which line the time went, and of which kind it is."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence

from ..model.frames import Frame
from ..model.samples import Line, Sample
from ..model.slow import SlowKind

KEPT = 64
"""Newest samples of which it is still to come what they were a part of."""

MOST_LINES = 64
"""Lines that are counted; the rarest are forgotten."""

HALF = 0.5
"""Share of the time from which on a kind is that of all of it."""

STARVED = 0.7
"""Share of its time on a processor for which a process that gets too little of one waits besides."""

MUCH = 0.3
"""Share of the time from which on it matters that a process did not run, or another thread did."""

HOLDS = 0.2
"""Share of a wait for which a thread that has the interpreter lock meanwhile runs, on a busy machine."""

SAME_LINE = 0.15
"""Share of its time at a line that others must spend there who do the same, and less of it."""


class Activity:
    """What a rank has done, tick by tick.

    Attributes:
        stops: seconds at which a signal stopped it, the newest ones.
        waited_for: at how many ticks all others waited for it; waits: at how many it waited for others.
    """

    def __init__(self) -> None:
        self.stops: deque[float] = deque(maxlen=KEPT)
        self.waited_for = self.waits = 0
        self.ticks = 0
        self.at_lines: Counter[Frame] = Counter()
        self._all_lines: Counter[Line] = Counter()
        self._waited_lines: Counter[Line] = Counter()
        self._waits_lines: Counter[Frame] = Counter()
        self._samples: deque[Sample] = deque(maxlen=KEPT)
        self._first: Sample | None = None
        self._traits: Counter[str] = Counter()
        self._seconds = self._ran = self._wanted = self._besides = 0.0

    def take(self, sample: Sample) -> None:
        """Take in what it did at a tick of which the other ranks may not be known."""
        self._first = self._first or sample
        self._samples.append(sample)

    def count(self, tick: int, done: str, *, waited_for: bool) -> None:
        """Count a tick.

        Args:
            done: what it did then; waited_for: whether all others waited for it.
        """
        self.ticks += 1
        before, after = self._around(tick)
        shown = after if after is not None and after.doing != "waits" else before
        if done == "waits" or shown is None:
            return
        line = shown.line
        if line is not None:
            self.at_lines[line[0]] += 1
            self._all_lines[line] += 1
        if waited_for:
            self.waited_for += 1
            if line is not None:
                self._waited_lines[line] += 1
            self._see(shown, before, after, unable=done == "unable")
        for counted in (self._all_lines, self._waited_lines, self.at_lines):
            _bound(counted)

    def wait(self, tick: int) -> None:
        """Note that it waited for others at a tick."""
        self.waits += 1
        before, after = self._around(tick)
        lines = (sample.where for sample in (after, before) if sample is not None)
        where = next(filter(None, lines), None)
        if where is not None:
            self._waits_lines[where] += 1
        _bound(self._waits_lines)

    def _around(self, tick: int) -> tuple[Sample | None, Sample | None]:
        """The samples before a tick, and at it or after it."""
        after = next((sample for sample in self._samples if sample.tick >= tick), None)
        before = next((sample for sample in reversed(self._samples) if sample.tick < tick), None)
        return before, after

    def _see(self, shown: Sample, before: Sample | None, after: Sample | None, *, unable: bool) -> None:
        """Note what tells of which kind the time is."""
        self._traits[shown.kind] += 1
        since = before.at if before is not None else 0.0
        until = after.at if after is not None else math.inf
        self._traits["stopped"] += unable and any(since <= at <= until for at in self.stops)
        if before is None or after is None or after.at <= before.at:
            return
        collected = after.collections > before.collections
        self._traits["gc"] += unable and collected
        share = 1.0 / max(1, after.tick - before.tick)  # of what lies between, each tick has its part
        ran = after.ran - before.ran
        self._seconds += share * (after.at - before.at)
        self._ran += share * ran
        self._wanted += share * (after.wanted - before.wanted)
        self._besides += share * (after.used - before.used - ran)

    def place(self) -> tuple[Frame | None, bool]:
        """The line at which most of the time went that others waited; whether it slept there."""
        if not self._waited_lines:
            return None, False
        frames: Counter[Frame] = Counter()
        for (frame, _, _), times in self._waited_lines.items():
            frames[frame] += times
        where = frames.most_common(1)[0][0]
        asleep = sum(
            n for (frame, _, sleeps), n in self._waited_lines.items() if frame == where and sleeps
        )
        return where, asleep > HALF * frames[where]

    def waits_at(self) -> Frame | None:
        """The line at which it waited for others the longest; None where none is known."""
        return next((frame for frame, _ in self._waits_lines.most_common(1)), None)

    def lines(self, least: float) -> list[Line]:
        """Those at which it did not compute, for this share of all its time at least."""
        return [
            line
            for line in self._all_lines
            if (line[1] != "compute" or line[2]) and self.share(line) >= least
        ]

    def share(self, line: Line) -> float:
        """The share of all its time that it spent at a line."""
        return self._all_lines[line] / max(1, self.ticks)

    def kind(self, peers: Iterable[Activity]) -> SlowKind:
        """What takes the time for which it was waited for.

        Args:
            peers: what the ranks did that have waited.
        """
        where, asleep = self.place()
        peers = list(peers)
        for kind, holds in self._tests(peers):
            if holds():
                return kind
        if asleep or self._ran + self._wanted < HALF * self._seconds:
            return "unknown"
        seconds = self.at_lines[where] if where is not None else 0
        alike = [peer.at_lines[where] > SAME_LINE * seconds for peer in peers if where is not None]
        return "data" if seconds and alike and all(alike) else "compute"

    def _tests(self, peers: Sequence[Activity]) -> tuple[tuple[SlowKind, Callable[[], bool]], ...]:
        """The kinds that something tells, the surest first."""
        return (
            ("stopped", lambda: self._is("stopped")),
            ("input", lambda: self._is("input")),
            ("compile", lambda: self._is("compile")),
            ("io", lambda: self._is("io")),
            ("gc", lambda: self._is("gc")),
            ("gil", self._is_behind_thread),
            ("quota", lambda: self._is_starved(peers)),
        )

    def _is(self, trait: str) -> bool:
        return self._traits[trait] >= HALF * max(1, self.waited_for)

    def _is_starved(self, peers: Sequence[Activity]) -> bool:
        """True where it was ready to run, and got no processor, for longer than the others, and than
        whoever has a fair share of the machine."""
        wanted = self._wanted > max(STARVED * self._ran, MUCH * self._seconds)
        fair = max(0.0, self._samples[-1].load - 1.0) if self._samples else 0.0
        return wanted and all(
            wait < HALF * self.starved for wait in (fair, *(peer.starved for peer in peers))
        )

    @property
    def starved(self) -> float:
        """Seconds for which it has waited for a processor, for each second on one."""
        first, last = self._first, self._samples[-1] if self._samples else None
        if first is None or last is None or last.ran <= first.ran:
            return 0.0
        return (last.wanted - first.wanted) / (last.ran - first.ran)

    def _is_behind_thread(self) -> bool:
        """True where it had a processor, and did not run, while another thread of the process did."""
        free = self._traits["compute"] >= HALF * max(1, self.waited_for)
        could = self._seconds - self._wanted
        rest = could - self._ran
        return free and rest > MUCH * could and self._besides > max(HALF * self._ran, HOLDS * rest)


def _bound(counted: Counter[Line] | Counter[Frame]) -> None:
    if len(counted) > 2 * MOST_LINES:
        for item, _ in counted.most_common()[MOST_LINES:]:
            del counted[item]
