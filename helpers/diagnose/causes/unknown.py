"""Nothing the instrument knows explains what it saw."""

from __future__ import annotations

from helpers.diagnose.scene import Facts, Finding, operation, place, spoken


def find(facts: Facts) -> Finding | None:
    """Something failed, or ranks are stuck, and no other cause applies."""
    event = facts.first
    job = facts.snapshot.job
    if event is not None:
        who = spoken((event.rank,)).capitalize() if event.rank is not None else "The command"
        return Finding(
            cause="unknown",
            detail=event.text,
            summary=f"{who} {event.text}; nothing that was seen explains why.",
            culprits=(event.rank,) if event.rank is not None else (),
            where=event.where,
            evidence=(f"{who}: {event.text}",),
        )
    if facts.stuck:
        ranks = tuple(sorted(facts.stuck))
        return Finding(
            cause="unknown",
            detail=f"{spoken(ranks)} cannot go on",
            summary=f"{spoken(ranks).capitalize()} cannot go on; what was seen does not say why.",
            culprits=(),
            where=facts.where(ranks),
            hang=True,
        )
    if job.exit_code or job.signal:
        how = f"exit code {job.exit_code}" if job.exit_code else f"signal {job.signal}"
        return Finding(
            cause="unknown",
            detail=f"the command ended with {how}",
            summary=f"The command ended with {how}; no process of it said why.",
        )
    return None


def unseen(facts: Facts, ranks: tuple[int, ...]) -> Finding:
    """Ranks that use no CPU and into which nobody can see."""
    verb = "uses" if len(ranks) == 1 else "use"
    return Finding(
        cause="unknown",
        detail=f"{spoken(ranks)} {verb} no CPU, and no beacon says why",
        summary=(
            f"{spoken(ranks).capitalize()} {verb} no CPU for {facts.patience:.0f} s, and no beacon runs "
            "there that could say why."
        ),
        proved=False,
        hang=True,
    )


def together(facts: Facts, ranks: tuple[int, ...]) -> Finding | None:
    """Every member stands in the same operation and nothing moves: the transport itself stalls."""
    wait = facts.waits(ranks[0])[0]
    if wait.group is None or any(operation(facts.waits(r)[0]) != operation(wait) for r in ranks):
        return None
    return Finding(
        cause="unknown",
        detail=f"{spoken(ranks)} stand in the same {operation(wait)}, which does not finish",
        summary=(
            f"{spoken(ranks).capitalize()} stand in the same {operation(wait)} at "
            f"{place(wait.where)} and it does not finish: nobody is missing, so look at the network "
            "or the devices."
        ),
        where=wait.where,
        proved=False,
        hang=True,
    )


def apart(facts: Facts, ranks: tuple[int, ...]) -> Finding:
    """Ranks stand in operations of which nobody can see whether they belong together."""
    listed = "; ".join(
        f"rank {rank} in {operation(wait)} at {place(wait.where)}"
        for rank in ranks
        for wait in facts.waits(rank)[:1]
    )
    return Finding(
        cause="unknown",
        detail=f"nothing shows whether these calls belong together: {listed}",
        summary=(
            f"{spoken(ranks).capitalize()} have not moved for {facts.patience:.0f} s: {listed}. "
            "Whether these calls belong together cannot be seen."
        ),
        where=facts.where(ranks),
        proved=False,
        hang=True,
    )
