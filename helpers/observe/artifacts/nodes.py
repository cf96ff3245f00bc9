"""What was seen of a job on each of its nodes -> the whole job, rank by rank. No I/O, and no clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...model.facts import Job, RankView, Snapshot


def together(parts: Sequence[Snapshot]) -> Snapshot:
    """The job of which each snapshot shows some ranks; of a rank that several show, the first counts.

    Args:
        parts: the last moment of each node, at least one.
    """
    if len(parts) == 1:
        return parts[0]
    views: dict[int, RankView] = {}
    nameless: list[RankView] = []
    for node, part in enumerate(parts):
        for view in part.ranks:
            placed = replace(view, node=node) if view.process is not None else view
            if view.rank is None:
                nameless.append(placed)
            elif view.rank not in views or views[view.rank].process is None:
                views[view.rank] = placed
    return replace(
        max(parts, key=lambda part: part.time),
        job=_job([part.job for part in parts]),
        ranks=(*(views[rank] for rank in sorted(views)), *nameless),
        launchers=tuple(process for part in parts for process in part.launchers),
        strangers=tuple(one for part in parts for one in part.strangers),
        memory_kills=sum(part.memory_kills for part in parts),
        warned=tuple(dict.fromkeys(said for part in parts for said in part.warned)),
        not_seen=tuple(dict.fromkeys(said for part in parts for said in part.not_seen)),
    )


def _job(jobs: Sequence[Job]) -> Job:
    """The first of some, with what the others know."""
    failed = next((job for job in jobs if job.exit_code or job.signal), jobs[0])
    return replace(
        failed,
        world_size=max((job.world_size for job in jobs if job.world_size), default=None),
        nodes_seen=sum(job.nodes_seen for job in jobs),
        attempt=max(job.attempt for job in jobs),
        backends=tuple(sorted({name for job in jobs for name in job.backends})),
        master=next((job.master for job in jobs if job.master), None),
        single_node=False,
    )
