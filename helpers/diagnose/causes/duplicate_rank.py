"""Two processes act as one rank of one job."""

from __future__ import annotations

from ...model.facts import Verdict
from ...model.wording import place, plural, sentence, spoken
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """A child of a rank has joined the job's process group under a rank that is taken already."""
    found = [
        (view, child)
        for view in facts.snapshot.ranks
        for child in view.children
        if child.joined_as_rank is not None and view.rank is not None
    ]
    if not found:
        return None
    ranks = tuple(sorted({view.rank for view, _ in found if view.rank is not None}))
    worker = all(child.process.kind == "dataloader-worker" for _, child in found)
    what = "a DataLoader worker" if worker else "a child process"
    where = next((child.joined_at for _, child in found if child.joined_at), None)
    line = f" at {place(where)}" if where else ""
    return Verdict(
        outcome="error",
        cause="duplicate-rank",
        detail=f"{what} has joined the process group a second time as {spoken(ranks)}",
        summary=(
            f"{sentence(spoken(ranks))} {plural(ranks, 'exists', 'exist')} twice: {what} runs "
            f"the launch code again{line} and joins the job as the rank it inherited."
        ),
        culprits=ranks,
        where=where,
        evidence=tuple(
            f"process {child.process.pid}, a {child.process.kind} of rank {view.rank}, joined as "
            f"rank {child.joined_as_rank}"
            for view, child in found
        ),
    )
