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
        key=lambda same: (len(_all_ranks(same)), max(part.begun for part in same)),
        default=list[Part](),
    )
    reasons = {
        part: f"{part.name} is left out: {_why_not(part, most[0])}"
        for same in jobs.values()
        if same is not most
        for part in same
    }
    reasons |= _of_earlier_runs(most)
    by_place = {place: part for part in most if part not in reasons for place in _places(part)}
    reasons |= _replaced([part for part in parts if part.name and not _ranks(part)], by_place)
    return [part for part in parts if part not in reasons], [*reasons.values()]


def _of_earlier_runs(parts: Sequence[Part]) -> dict[Part, str]:
    """Of recordings of one job, those whose ranks are in a later one, and those begun with these."""
    reasons = {}
    earlier: list[Part] = []
    newest: dict[int, Part] = {}
    for part in sorted(parts, key=lambda part: part.begun, reverse=True):
        common = sorted(_ranks(part) & newest.keys())
        if not common:
            newest.update(dict.fromkeys(_ranks(part), part))
            continue
        earlier.append(part)
        reasons[part] = (
            f"{part.name} is left out: {newest[common[0]].name}, begun later, tells of "
            f"{spoken(common)}, too"
        )
    repeated = _all_ranks(earlier)
    for part in dict.fromkeys(newest.values()) if earlier else ():
        rest = (candidate for candidate in parts if candidate is not part)
        with_it = min(rest, key=lambda candidate: _seconds_between(candidate, part))
        if with_it in earlier and not repeated & _ranks(part):
            reasons[part] = f"{part.name} is left out: it was begun with {with_it.name}"
    return reasons


def _why_not(part: Part, recording: Part) -> str:
    """Why a recording does not belong to the job of another one."""
    (world, programs), (_, programs_there) = _job(part), _job(recording)
    if world in (None, 1) and programs == programs_there:
        return "it shows a process that has not joined the job, and not which rank that is"
    return f"it is of another job ({' '.join(part.last.job.command)})"


def _replaced(parts: Sequence[Part], by_place: dict[tuple[str, int | None], Part]) -> dict[Part, str]:
    """Of recordings without a rank, those of a node that a later one tells of, too."""
    reasons = {}
    for part in sorted(parts, key=lambda part: part.begun, reverse=True):
        later = next((by_place[place] for place in _places(part) if place in by_place), None)
        by_place.update({place: part for place in _places(part) if place not in by_place})
        if later is not None:
            reasons[part] = f"{part.name} is left out: {later.name} tells of the same node"
    return reasons


def _places(part: Part) -> list[tuple[str, int | None]]:
    """Host and number of the nodes of which a recording shows a rank or a launcher."""
    ranks = ((view.host, view.node) for view in part.last.ranks if view.process is not None)
    meets = (launcher.rendezvous for launcher in part.last.launchers if launcher.rendezvous is not None)
    return list(dict.fromkeys([*ranks, *((meeting.host, meeting.node) for meeting in meets)]))


def _ranks(part: Part) -> frozenset[int]:
    views = part.last.ranks
    return frozenset(v.rank for v in views if v.rank is not None and v.process is not None)


def _all_ranks(parts: Sequence[Part]) -> frozenset[int]:
    return frozenset[int]().union(*map(_ranks, parts))


def _job(part: Part) -> tuple[int | None, tuple[str, ...]]:
    """What is the same on all nodes of a job: not its addresses, of which one may be wrong."""
    programs = tuple(word for word in part.last.job.command if word.endswith(".py"))
    return part.last.job.world_size, programs


def _seconds_between(first: Part, second: Part) -> float:
    """Seconds between the begins of two recordings."""
    if not (first.begun and second.begun):
        return 0.0
    begun = (datetime.fromisoformat(part.begun) for part in (first, second))
    return abs((next(begun) - next(begun)).total_seconds())
