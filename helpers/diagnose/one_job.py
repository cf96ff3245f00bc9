"""Which of several recordings are of one and the same run of one job. No I/O.

Those of another job, and of an earlier run, may lie in the same folder: what does not belong together is
told apart and left out, never mixed. Clocks only tell runs of one machine apart, and which of these runs
another machine's recording was begun with.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ..model.part import Part
from ..model.wording import spoken


def of_one_job(parts: Sequence[Part]) -> tuple[list[Part], list[str]]:
    """The parts that belong together, in the order given, and why each other one is left out.

    The job is the one of which most ranks were seen, and the run the newest of it.
    """
    jobs: dict[object, list[Part]] = {}
    for part in parts:
        if part.name and _ranks(part):
            jobs.setdefault(_job(part), []).append(part)
    if not jobs:
        return [*parts], []
    most = max(jobs.values(), key=lambda same: (len(_all_ranks(same)), max(one.begun for one in same)))
    left = {
        part: f"{part.name} is left out: it is of another job ({' '.join(part.last.job.command)})"
        for same in jobs.values()
        if same is not most
        for part in same
    }
    earlier: list[Part] = []
    newest: list[Part] = []
    for part in sorted(most, key=lambda one: one.begun, reverse=True):
        twin = next((one for one in newest if _ranks(one) & _ranks(part)), None)
        if twin is None:
            newest.append(part)
            continue
        earlier.append(part)
        both = spoken(sorted(_ranks(twin) & _ranks(part)))
        left[part] = f"{part.name} is left out: {twin.name}, begun later, tells of {both}, too"
    for part in newest if earlier else ():
        others = [one for one in (*newest, *earlier) if one is not part]
        with_it = min(others, key=lambda one: _apart(one, part), default=part)
        if with_it in earlier and not any(_ranks(one) & _ranks(part) for one in earlier):
            left[part] = f"{part.name} is left out: it was begun with {with_it.name}"
    return [part for part in parts if part not in left], [*left.values()]


def _ranks(part: Part) -> frozenset[int]:
    views = part.last.ranks
    return frozenset(v.rank for v in views if v.rank is not None and v.process is not None)


def _all_ranks(parts: Sequence[Part]) -> frozenset[int]:
    return frozenset[int]().union(*map(_ranks, parts))


def _job(part: Part) -> object:
    """What is the same on all nodes of a job: not its addresses, of which one may be wrong."""
    programs = tuple(word for word in part.last.job.command if word.endswith(".py"))
    return part.last.job.world_size, programs


def _apart(one: Part, other: Part) -> float:
    """Seconds between the begins of two recordings."""
    if not (one.begun and other.begun):
        return 0.0
    begun = (datetime.fromisoformat(part.begun) for part in (one, other))
    return abs((next(begun) - next(begun)).total_seconds())
