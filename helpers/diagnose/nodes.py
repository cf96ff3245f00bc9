"""What was seen of a job from several places -> the verdict on all of it. No I/O, and no clocks.

The clocks of machines differ, so their times tell nothing: ranks are brought together by the groups and
the numbers of their calls, and ends by what the errors themselves say of others.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from ..model.facts import Job, ProcessView, RankView, Snapshot, Verdict
from ..model.part import Part
from ..model.wording import plural, spoken
from .diagnose import diagnose
from .events import events
from .network import SEE_THE_REST
from .settling import patience_at_end


def judge(parts: Sequence[Part]) -> tuple[Verdict, Snapshot]:
    """The verdict on a job of which each part shows some ranks, and the moment that shows it best.

    An instrument that ends its part of a job, and a machine that is switched off, make ranks fail
    elsewhere. Where every failure says itself that it follows from the end of another process, and ranks
    were alive when last seen, the moment before is judged. If that shows no hang, the ranks whose
    recording breaks off have been lost.

    Args:
        parts: at least one; of a rank that several show, the first counts.
    """
    last = together([part.last for part in parts])
    least, attached = min(part.patience for part in parts), any(part.attached for part in parts)
    patience = patience_at_end(last, least, attached=attached)
    verdict = _judged(last, patience)
    failed = events(last)
    unfinished = [part for part in parts if _runs(part.last)]
    followed = failed and failed[0].consequence and verdict.cause in ("error", "unknown")
    if len(parts) == 1 or not followed or not unfinished:
        return verdict, last
    before = together([part.before for part in parts])
    earlier = _judged(before, patience)
    if earlier.outcome != "hang" and not all(part.over for part in unfinished):
        lost = together([part.last if part.over else _lost(part.last) for part in parts])
        return _judged(lost, patience), lost
    masked = [f"{event.text} (rank {event.rank})" for event in failed if event.rank is not None]
    return replace(earlier, masked=tuple(dict.fromkeys((*earlier.masked, *masked)))), before


def with_rest(snapshot: Snapshot, verdict: Verdict) -> Snapshot:
    """The snapshot, which says what one machine does not show of a job on several, and how to see that.

    Nothing is said where all is well.
    """
    unseen = [view.rank for view in snapshot.ranks if view.state == "unseen" and view.rank is not None]
    waits = any(p.alive and p.awaits_nodes and p.rendezvous for p in snapshot.launchers)
    if verdict.outcome == "ok" or not (unseen or waits) or SEE_THE_REST in verdict.summary:
        return snapshot
    run = plural(unseen, "runs", "run")
    who = f"{spoken(unseen)} {run} on other machines" if unseen else "other nodes are not seen from here"
    return replace(snapshot, not_seen=(*snapshot.not_seen, f"{who}. {SEE_THE_REST}"))


def _runs(snapshot: Snapshot) -> bool:
    return any(view.process is not None and view.process.alive for view in snapshot.ranks)


def _judged(snapshot: Snapshot, patience: float) -> Verdict:
    history = (replace(snapshot, time=snapshot.time - 1.0), snapshot)
    return diagnose(history, patience=patience, final=True)


def _lost(snapshot: Snapshot) -> Snapshot:
    """What ran when its recording broke off has ended, in a way that nobody saw."""
    return replace(
        snapshot,
        ranks=tuple(
            replace(view, state="exited", process=_ended(view.process, snapshot.time))
            if view.process is not None and view.process.alive
            else view
            for view in snapshot.ranks
        ),
    )


def _ended(process: ProcessView, time: float) -> ProcessView:
    return replace(process, ended=time, state="exited", beacon=False, waits=())


def together(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The job of which each snapshot shows some ranks; of a rank that several show, the first counts.

    Args:
        snapshots: at least one.
    """
    time = max(snapshot.time for snapshot in snapshots)
    parts = [_moved(snapshot, time - snapshot.time) for snapshot in snapshots]
    numbered = _numbered(_ranks(parts))
    nameless = (view for part in parts for view in part.ranks if view.rank is None)
    nodes = len({(view.host, view.node) for view in numbered if view.process is not None})
    return replace(
        parts[0],
        time=time,
        job=_job([part.job for part in parts], nodes),
        ranks=(*numbered, *nameless),
        launchers=tuple(process for part in parts for process in part.launchers),
        strangers=tuple(stranger for part in parts for stranger in part.strangers),
        memory_kills=sum(part.memory_kills for part in parts),
        output=tuple({rank: (rank, lines) for part in parts for rank, lines in part.output}.values()),
        warned=tuple(dict.fromkeys(line for part in parts for line in part.warned)),
        not_seen=tuple(dict.fromkeys(line for part in parts for line in part.not_seen)),
        stores=tuple(store for part in parts for store in part.stores),
        interfaces=tuple(dict.fromkeys(interface for part in parts for interface in part.interfaces)),
        timed=len(parts) == 1 and parts[0].timed,
    )


def _ranks(parts: Sequence[Snapshot]) -> list[RankView]:
    """All ranks with a number, in order: each from the first part that shows it."""
    views: dict[int, RankView] = {}
    for view in (view for part in parts for view in part.ranks):
        shown = views.get(view.rank) if view.rank is not None else None
        if view.rank is not None and (shown is None or shown.process is None):
            views[view.rank] = view
    for rank in range(max(part.job.world_size or 0 for part in parts)):
        views.setdefault(rank, RankView(rank, state="unseen"))
    return [views[rank] for rank in sorted(views)]


def _moved(part: Snapshot, by: float) -> Snapshot:
    """With its times as long before its last look as they were, on the clock of another part."""

    def moved(process: ProcessView) -> ProcessView:
        ended = None if process.ended is None else process.ended + by
        return replace(process, read_at=process.read_at + by, ended=ended)

    if not by:
        return part
    ranks = (
        view if view.process is None else replace(view, process=moved(view.process))
        for view in part.ranks
    )
    return replace(part, ranks=tuple(ranks), launchers=tuple(map(moved, part.launchers)))


def _numbered(views: Sequence[RankView]) -> list[RankView]:
    """The ranks with the number of their node: as their launchers tell, else by their hosts."""
    started = [view for view in views if view.process is not None]
    hosts = dict.fromkeys((view.host, view.node) for view in started)
    if len({node for _, node in hosts}) == len(hosts):
        return [*views]
    number = {host: index for index, host in enumerate(hosts)}
    return [
        view if view.process is None else replace(view, node=number[view.host, view.node])
        for view in views
    ]


def _job(jobs: Sequence[Job], nodes: int) -> Job:
    """The first of some that has failed, else the first, with what the others know."""
    failed = next((job for job in jobs if job.exit_code or job.signal), jobs[0])
    if len(jobs) == 1:
        return failed
    return replace(
        failed,
        world_size=max((job.world_size for job in jobs if job.world_size), default=None),
        nodes_seen=nodes or len(jobs),
        attempt=max(job.attempt for job in jobs),
        backends=tuple(sorted({name for job in jobs for name in job.backends})),
        master=next((job.master for job in jobs if job.master), None),
        single_node=False,
    )
