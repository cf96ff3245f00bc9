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
    jobs: dict[tuple[int | None, tuple[str, ...]], list[Part]] = {}
    for part in parts:
        if part.name and _ranks(part):
            jobs.setdefault(_job(part), []).append(part)
    most = max(
        jobs.values(),
        key=lambda same: (len(_all_ranks(same)), max(one.begun for one in same)),
        default=list[Part](),
    )
    left = {
        part: f"{part.name} is left out: {_why_not(part, most[0])}"
        for same in jobs.values()
        if same is not most
        for part in same
    }
    earlier: list[Part] = []
    newest: dict[int, Part] = {}
    for part in sorted(most, key=lambda one: one.begun, reverse=True):
        both = sorted(_ranks(part) & newest.keys())
        if not both:
            newest.update(dict.fromkeys(_ranks(part), part))
            continue
        earlier.append(part)
        left[part] = (
            f"{part.name} is left out: {newest[both[0]].name}, begun later, tells of {spoken(both)}, too"
        )
    repeated = _all_ranks(earlier)
    for part in dict.fromkeys(newest.values()) if earlier else ():
        others = (one for one in most if one is not part)
        with_it = min(others, key=lambda one: _apart(one, part))
        if with_it in earlier and not repeated & _ranks(part):
            left[part] = f"{part.name} is left out: it was begun with {with_it.name}"
    kept = {place: part for part in most if part not in left for place in _places(part)}
    left.update(_replaced([part for part in parts if part.name and not _ranks(part)], kept))
    return [part for part in parts if part not in left], [*left.values()]


def _why_not(part: Part, other: Part) -> str:
    """Why a recording does not belong to the job of another one."""
    (world, programs), (_, others) = _job(part), _job(other)
    if world in (None, 1) and programs == others:
        return "it shows a process that has not joined the job, and not which rank that is"
    return f"it is of another job ({' '.join(part.last.job.command)})"


def _replaced(parts: Sequence[Part], kept: dict[tuple[str, int | None], Part]) -> dict[Part, str]:
    """Of recordings without a rank, those of a node that a later one tells of, too."""
    found = {}
    for part in sorted(parts, key=lambda one: one.begun, reverse=True):
        later = next((kept[place] for place in _places(part) if place in kept), None)
        kept.update({place: part for place in _places(part) if place not in kept})
        if later is not None:
            found[part] = f"{part.name} is left out: {later.name} tells of the same node"
    return found


def _places(part: Part) -> list[tuple[str, int | None]]:
    """Host and number of the nodes of which a recording shows a rank or a launcher."""
    ranks = ((view.host, view.node) for view in part.last.ranks if view.process is not None)
    meets = (one.rendezvous for one in part.last.launchers if one.rendezvous is not None)
    return list(dict.fromkeys([*ranks, *((one.host, one.node) for one in meets)]))


def _ranks(part: Part) -> frozenset[int]:
    views = part.last.ranks
    return frozenset(v.rank for v in views if v.rank is not None and v.process is not None)


def _all_ranks(parts: Sequence[Part]) -> frozenset[int]:
    return frozenset[int]().union(*map(_ranks, parts))


def _job(part: Part) -> tuple[int | None, tuple[str, ...]]:
    """What is the same on all nodes of a job: not its addresses, of which one may be wrong."""
    programs = tuple(word for word in part.last.job.command if word.endswith(".py"))
    return part.last.job.world_size, programs


def _apart(one: Part, other: Part) -> float:
    """Seconds between the begins of two recordings."""
    if not (one.begun and other.begun):
        return 0.0
    begun = (datetime.fromisoformat(part.begun) for part in (one, other))
    return abs((next(begun) - next(begun)).total_seconds())
