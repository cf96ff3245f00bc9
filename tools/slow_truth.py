"""For which rank the others waited, by what the ranks of a job noted of their calls themselves.

    python tools/slow_truth.py FOLDER

FOLDER has one file for each rank, written by tests/slow/ledger.py. A rank waits while it is in a call
for which another has not arrived. Of the time since all ranks had joined, the share of some ranks is
that in which all others waited and they did not.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STANDS_OUT = 0.10
"""The share that slow ranks have at least, and have more than any others."""


@dataclass(frozen=True)
class Call:
    """One call of one rank, in seconds of the clock that all processes share.

    Attributes:
        meeting: what is the same on all ranks of the call: its channel and its number there.
        ranks: those that it needs.
        there: when the rank had arrived for it; before, after: when it waited for its end.
    """

    rank: int
    meeting: tuple[str, int]
    ranks: tuple[int, ...]
    there: float
    before: float
    after: float


@dataclass(frozen=True)
class Truth:
    """Who was waited for.

    Attributes:
        seconds: the time since all ranks had joined.
        shares: for each set of ranks the share of that time in which all other ranks waited, and these
            did not; only sets for which that ever was so.
    """

    seconds: float
    shares: Mapping[tuple[int, ...], float]

    def share(self, ranks: Iterable[int]) -> float:
        """The share of these ranks."""
        return self.shares.get(tuple(sorted(ranks)), 0.0)

    def slow(self) -> tuple[int, ...]:
        """The ranks that stand out; empty where none do."""
        ordered = sorted(self.shares.items(), key=lambda item: -item[1])
        first, second = (*ordered, ((), 0.0), ((), 0.0))[:2]
        return first[0] if first[1] >= STANDS_OUT and first[1] - second[1] >= STANDS_OUT else ()


@dataclass(frozen=True)
class Ledger:
    """All that the ranks of a job noted.

    Attributes:
        size: how many ranks the job has; 0 where none has joined.
        joined: when each rank had joined.
    """

    size: int
    joined: Mapping[int, float]
    calls: Sequence[Call]

    @property
    def complete(self) -> bool:
        """True once all ranks have joined."""
        return 0 < self.size == len(self.joined)


def read(folder: Path) -> Ledger:
    """Read what the ranks wrote; the last line of a rank that was killed may be cut short."""
    size = 0
    joined: dict[int, float] = {}
    calls: list[Call] = []
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text().splitlines():
            try:
                noted: dict[str, Any] = json.loads(line)
            except ValueError:
                continue
            if "joined" in noted:
                size, joined[noted["rank"]] = noted["size"], noted["joined"]
            else:
                meeting = (noted["channel"], noted["number"])
                times = (noted["there"], noted["before"], noted["after"])
                calls.append(Call(noted["rank"], meeting, tuple(noted["ranks"]), *times))
    return Ledger(size, joined, calls)


def truth(ledger: Ledger, since: float = -math.inf, until: float = math.inf) -> Truth:
    """Who was waited for, from the time at which all had joined to the end of the last call.

    Args:
        since, until: look at no other time than this.
    """
    if not ledger.complete or not ledger.calls:
        return Truth(0.0, {})
    start = max(*ledger.joined.values(), since)
    end = min(max(call.after for call in ledger.calls), until)
    if end <= start:
        return Truth(0.0, {})
    seconds: dict[tuple[int, ...], float] = defaultdict(float)
    waiting: Counter[int] = Counter()  # in how many calls each rank waits
    at = start
    for time, rank, change in sorted(_changes(ledger.calls)):
        now = min(max(time, start), end)
        missed = tuple(rank for rank in sorted(ledger.joined) if not waiting[rank])
        if len(missed) < len(ledger.joined):
            seconds[missed] += now - at
        at = now
        waiting[rank] += change
    whole = end - start
    return Truth(whole, {ranks: spent / whole for ranks, spent in seconds.items() if ranks and spent})


def _changes(calls: Sequence[Call]) -> Iterable[tuple[float, int, int]]:
    """Each time at which a rank begins or ceases to wait for another: time, rank, 1 or -1."""
    arrivals: dict[tuple[str, int], dict[int, float]] = defaultdict(dict)
    for call in calls:
        arrivals[call.meeting][call.rank] = call.there
    for call in calls:
        complete = max(arrivals[call.meeting].get(rank, math.inf) for rank in call.ranks)
        if complete > call.before:
            yield call.before, call.rank, 1
            yield min(complete, call.after), call.rank, -1


def main(words: Sequence[str] | None = None) -> int:
    """Print the share of each set of ranks, the greatest first."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    measured = truth(read(parser.parse_args(words).folder))
    print(f"{measured.seconds:.1f} s since all had joined")
    for ranks, share in sorted(measured.shares.items(), key=lambda item: -item[1]):
        print(f"{share:6.1%}  {', '.join(map(str, ranks))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
