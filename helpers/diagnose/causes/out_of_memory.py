"""An allocation failed, or the kernel or a monitor killed a process for memory."""

from __future__ import annotations

import math
import signal
from collections.abc import Sequence
from typing import Literal

from ...model.facts import Verdict
from ...model.findings import OutOfMemory
from ...model.wording import FROZEN, place, plural, sentence, spoken, stack_of
from ..events import Event
from ..messages import NO_GPU_MEMORY, NO_MEMORY, NO_SHARED_MEMORY, WORKERS
from ..scene import Facts

_LOADS = ("load", "load_state_dict", "load_checkpoint", "from_pretrained")
"""Functions of torch, Lightning and transformers that read a model or a checkpoint."""

_TYPES = ("MemoryError", "OutOfMemoryError")


def find(facts: Facts) -> Verdict | None:
    """The first failure is a failed allocation, or a SIGKILL that a memory counter explains.

    Without a failure: ranks that the kernel stops at the limit, where it may not kill.
    """
    event = facts.first
    if event is None:
        return _frozen(facts) or _nobody(facts)
    if event.rank is None and event.error is None and not event.own:
        return None
    return _shared_memory_full(facts, event) or _used_up(facts, event)


def _used_up(facts: Facts, event: Event) -> Verdict | None:
    """An allocation has failed, or the kernel has ended a process for memory."""
    if event.error is not None:
        lost = not facts.snapshot.timed and WORKERS.search(event.error.message) is not None
        killed = lost and facts.snapshot.memory_kills > 0
        failed = event.error.type in _TYPES or NO_MEMORY.search(event.error.message) is not None
        if not (killed or failed):
            return None
        culprits, who = event.ranks, event.who if event.own else "a process"
        at = f" at {place(event.where)}" if event.where or culprits else ""
        detail = f"{who} could not allocate memory{at}"
        evidence: tuple[str, ...] = (f"{who}: {event.error.text}",)
    elif event.by_signal == signal.SIGKILL and facts.snapshot.memory_kills > 0:
        culprits = _killed(facts)
        who = spoken(culprits) if culprits else event.who
        were = plural(culprits or (0,), "was", "were")
        detail = f"{who} {were} killed because the job ran out of memory"
        evidence = (
            f"{who} ended by SIGKILL",
            f"memory kills counted during the run: {facts.snapshot.memory_kills}",
        )
    else:
        return None
    rest = ""
    if culprits and len(culprits) < len(facts.graph.ranks):
        rest = f"; the other ranks depend on {plural(culprits, 'it', 'them')}"
    return Verdict(
        outcome="error",
        cause="out-of-memory",
        detail=detail,
        summary=f"{sentence(detail)}{rest}.",
        culprits=culprits,
        where=event.where,
        evidence=evidence,
        finding=OutOfMemory(
            of=_whose(event),
            while_loading=_was_loading(facts, culprits),
            limited=facts.snapshot.limit is not None,
        ),
    )


def _whose(event: Event) -> Literal["rank", "worker", "gpu"]:
    """Whose memory is used up."""
    error = event.error
    if error is not None and WORKERS.search(error.message):
        return "worker"
    if error is not None and NO_GPU_MEMORY.search(error.text):
        return "gpu"
    return "rank" if event.own else "worker"


def _was_loading(facts: Facts, ranks: Sequence[int]) -> bool:
    """True where one of the ranks was reading a model or a checkpoint."""
    names = {frame.function for process in facts.processes(ranks) for frame in stack_of(process)}
    return not names.isdisjoint(_LOADS)


def _shared_memory_full(facts: Facts, event: Event) -> Verdict | None:
    """A DataLoader's worker found no room in /dev/shm for a batch: it raised, or was ended by SIGBUS."""
    errors = [event.error, *(failure.error for failure in facts.events if failure.rank == event.rank)]
    texts = [error.text for error in errors if error and NO_SHARED_MEMORY.search(error.message)]
    attributed = event.rank is not None or event.own
    if not attributed or not texts or not (event.error is not None or event.by_signal == signal.SIGBUS):
        return None
    who = event.who
    return Verdict(
        outcome="error",
        cause="out-of-memory",
        detail=f"{who} has no room left in /dev/shm, through which DataLoader workers pass batches",
        summary=(
            f"A DataLoader's worker of {who} found no room in /dev/shm for a batch at "
            f"{place(event.where)}: {texts[0]}."
        ),
        culprits=event.ranks,
        where=event.where,
        evidence=(f"{who}: {texts[0]}",),
        finding=OutOfMemory(of="shared memory"),
    )


def _killed(facts: Facts) -> tuple[int, ...]:
    """The ranks of the first processes that SIGKILL ended, as many as were killed for memory."""
    killed = sorted(
        (e.time, e.rank) for e in facts.events if e.by_signal == signal.SIGKILL and e.rank is not None
    )
    return tuple(sorted({rank for _, rank in killed[: facts.snapshot.memory_kills]}))


def _nobody(facts: Facts) -> Verdict | None:
    """The kernel has killed for memory, and of no process more is known."""
    if not facts.snapshot.memory_kills or facts.patience == math.inf or facts.stuck:
        return None
    detail = "a process of the job was killed for memory"
    return Verdict(
        outcome="error",
        cause="out-of-memory",
        detail=detail,
        summary=f"{sentence(detail)}; nothing tells of which rank.",
        evidence=(detail,),
        finding=OutOfMemory(),
    )


def _frozen(facts: Facts) -> Verdict | None:
    ranks = tuple(
        r for r in sorted(facts.stuck) if any(p.stopped_for_memory for p in facts.processes((r,)))
    )
    limit = facts.snapshot.limit
    if not ranks or limit is None:
        return None
    verb = plural(ranks, "is", "are")
    detail = f"{spoken(ranks)} {verb} blocked in the kernel: the memory of the job is used up"
    return Verdict(
        outcome="hang",
        cause="out-of-memory",
        detail=detail,
        summary=(
            f"{sentence(detail)}, {limit.megabytes} MB in all, and no process is killed to free some."
        ),
        culprits=ranks,
        where=facts.where(ranks),
        evidence=(f"{spoken(ranks)}: {FROZEN}",),
        finding=OutOfMemory(while_loading=_was_loading(facts, ranks), limited=True),
    )
