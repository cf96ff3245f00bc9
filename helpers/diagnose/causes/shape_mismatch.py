"""Sizes differ between ranks in one operation."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ...model.clauses import clauses, every_clause, verb
from ...model.facts import Collective, ProcessView, Verdict
from ...model.findings import Lines, ShapeMismatch
from ...model.frames import Frame, innermost_user
from ...model.waits import InCollective, Sizes
from ...model.wording import place, plural, spoken, stack_of
from ..aborted_calls import classes
from ..events import line_of_call
from ..fingerprints import different_calls
from ..matching import SAME_SIZE, differ
from ..messages import COMPARED, OTHER_SIZES
from ..scene import Facts, minority

_SHAPE = re.compile(r"Process (\d+): (\[[\d, ]*\])")
"""What accelerate lists of each rank (`COMPARED`)."""


def find(facts: Facts) -> Verdict | None:
    """The first failure is a size check, or ranks are in one operation with different sizes."""
    event = facts.first
    if event is not None:
        if event.error is None or not OTHER_SIZES.search(event.error.message):
            return None
        if different_calls(event.error.message) is not None:
            return None
        compared = bool(COMPARED.search(event.error.message))
        calls = facts.aborted
        if not compared and (len({*classes(calls).values()}) > 1 or facts.excluded):
            return None
        unknown = [] if compared else sorted(facts.graph.ranks.keys() - calls.keys())
        were = f"{spoken(unknown)} {plural(unknown, 'was', 'were')}"
        at = f" at {place(event.where)}" if event.where is not None else ""
        doubt = f" (whether {were} in the same call is not known)" if unknown else ""
        return Verdict(
            outcome="error",
            cause="shape-mismatch",
            proved=not unknown,
            detail=f"sizes differ between ranks: {event.error.text}",
            summary=f"Sizes differ between ranks{at}{doubt}: {event.error.text}",
            culprits=_failing(facts),
            where=event.where,
            evidence=(f"{event.who}: {event.error.text}",),
            finding=ShapeMismatch("data", "same")
            if _listed(facts)
            else _finding(facts, [call.op for call in calls.values()], elsewhere=bool(unknown)),
        )
    return _stuck(facts)


def _finding(facts: Facts, ops: Sequence[str], *, elsewhere: bool = False) -> ShapeMismatch:
    """What has other sizes: what is reduced cannot be padded, since what is added would count.

    Args:
        ops: the operations in which ranks were.
        elsewhere: whether some rank may have come out of its call, so that its line tells nothing.
    """
    ranks = facts.processes(tuple(facts.graph.ranks))
    lines = set() if elsewhere else _lines(ranks)
    agreement: Lines = "unknown" if not lines else "same" if len(lines) == 1 else "different"
    # A rank that has come out of its call may be anywhere by now: its stack says nothing of that call.
    processes = facts.processes(tuple(facts.aborted)) if elsewhere else ranks
    frames = [frame for process in processes for frame in stack_of(process)]
    in_ddp = any(f.function == "__init__" and f.file.endswith("parallel/distributed.py") for f in frames)
    if in_ddp and agreement != "different":
        return ShapeMismatch("parameters", agreement)
    reduces = any(op.startswith(("all_reduce", "reduce")) for op in ops)
    return ShapeMismatch("reduction" if reduces else "data", agreement)


def _lines(ranks: Sequence[ProcessView]) -> set[Frame]:
    """The lines of the calls that have met, if all are known.

    A rank that has come out of its own is in a later one now, or in none. Where the ranks are in
    different groups, their numbers do not tell which call that was.
    """
    newest = [process.collectives[-1] for process in ranks if process.collectives]
    if len({call.group for call in newest}) > 1:
        return set()
    met = min(newest, key=lambda call: call.seq, default=None)
    lines = {_line_of(process, met) for process in ranks}
    return {frame for frame in lines if frame is not None} if None not in lines else set()


def _line_of(process: ProcessView, met: Collective | None) -> Frame | None:
    """The user's line of a call: as its history tells where the rank is past it, else as it was seen."""
    newest = process.collectives[-1:]
    if met is None or all((call.group, call.seq) == (met.group, met.seq) for call in newest):
        return line_of_call(process)
    for issued in process.issued:
        at = met.seq - issued.first
        if issued.group == met.group and 0 <= at < len(issued.calls):
            return innermost_user(issued.calls[at].stack)
    return None


def _failing(facts: Facts) -> tuple[int, ...]:
    """The odd ones out by the sizes they issued; with no majority all that took part."""
    sizes = _listed(facts)
    newest = _newest(facts)
    for rank, view in facts.graph.ranks.items():
        for entry in view.process.collectives if view.process else ():
            if newest == (entry.group, entry.seq):
                sizes[rank] = entry.sizes
    if len(set(sizes.values())) > 1:
        return minority(sizes)
    places: dict[int, object] = {
        rank: line_of_call(view.process) if view.process else None
        for rank, view in facts.graph.ranks.items()
    }
    odd = minority(places)
    if None not in places.values() and 0 < len(odd) < len(places):
        return odd
    complain = tuple(facts.saying(OTHER_SIZES))
    ranks = sorted(facts.graph.ranks)
    if 2 * len(complain) > len(ranks) and len(complain) < len(ranks):
        return tuple(rank for rank in ranks if rank not in complain)
    if 2 * len(complain) < len(ranks):
        return complain
    return tuple(ranks)


def _listed(facts: Facts) -> dict[int, object]:
    """Rank -> the shape that an exception lists for it."""
    message = facts.first.error.message if facts.first is not None and facts.first.error else ""
    return {int(rank): shape for rank, shape in _SHAPE.findall(message)}


def _newest(facts: Facts) -> tuple[str, int] | None:
    places = [
        (entry.seq, entry.group)
        for view in facts.graph.ranks.values()
        for entry in (view.process.collectives if view.process else ())
        if not entry.done
    ]
    return (max(places)[1], max(places)[0]) if places else None


Place = tuple[str | None, int | None, str]
"""Group, number and operation."""

Calls = Mapping[int, Collective | InCollective]


def _stuck(facts: Facts) -> Verdict | None:
    """Members are in one operation of one place and one root, but with other sizes or another type.

    One that has finished it counts, too.
    """
    waits = [(r, w) for r in sorted(facts.stuck) for w in facts.waits(r) if isinstance(w, InCollective)]
    blocked: dict[Place, dict[int, InCollective]] = {}
    for rank, wait in waits:
        if wait.seq is not None and wait.sizes:
            blocked.setdefault((wait.group, wait.seq, wait.op), {})[rank] = wait
    for at, pending in blocked.items():
        calls = pending | _passed(facts, at, pending)
        roots = {wait.root for wait in pending.values() if wait.root is not None}
        first, *rest = calls.values()
        if at[2] in SAME_SIZE and len(roots) < 2 and any(differ(first, call) for call in rest):
            return _different(facts, at, calls, pending)
    return next(filter(None, (_uneven(facts, wait) for _, wait in waits)), None)


def _passed(facts: Facts, at: Place, pending: Calls) -> dict[int, Collective | InCollective]:
    """The same call of ranks that are not stuck in it, but have issued it."""
    issued = {rank: view.process.collectives for rank, view in facts.alive.items() if view.process}
    return {
        rank: entry
        for rank, entries in issued.items()
        for entry in reversed(entries)
        if rank not in pending and entry.sizes and (entry.group, entry.seq, entry.op) == at
    }


def _different(facts: Facts, at: Place, calls: Calls, pending: Calls) -> Verdict:
    """The verdict on one call with tensors of different sizes, or types.

    Args:
        pending: of the calls, those in which ranks are stuck.
    """
    _, seq, op = at
    types = len({call.dtype for call in calls.values()}) > 1
    what = "types" if types else "sizes"
    culprits = minority({rank: (call.sizes, call.dtype) for rank, call in calls.items()})
    are = plural(culprits, "one is", "ones are")
    odd = f"; the odd {are} {spoken(culprits)}" if len(culprits) < len(calls) else ""
    shapes = {r: _shapes(call.sizes) + f" {call.dtype}" * types for r, call in calls.items()}
    have = {rank: verb("has", "have", shape) for rank, shape in shapes.items()}
    listed = clauses(have)
    return Verdict(
        outcome="hang",
        cause="shape-mismatch",
        detail=f"{op} #{seq} with different {what}: {listed}",
        summary=f"The ranks call the same {op} #{seq} with tensors of different {what}: {listed}{odd}.",
        culprits=culprits,
        where=facts.where(sorted(culprits, key=lambda rank: rank not in pending)),
        evidence=tuple(f"{op} #{seq}: {clause}" for clause in every_clause(have)),
        finding=_finding(facts, [op]),
    )


def _uneven(facts: Facts, wait: InCollective) -> Verdict | None:
    """All members are in one exchange of all with all, and send more, or less, than they receive."""
    if not wait.op.startswith("all_to_all"):
        return None
    at = (wait.group, wait.seq, wait.op)
    members = {member: process for member in wait.members for process in facts.processes((member,))}
    calls = {
        member: entry
        for member, process in members.items()
        for entry in process.collectives
        if (entry.group, entry.seq, entry.op) == at and entry.sizes and entry.outputs
    }
    sent = sum(math.prod(shape) for entry in calls.values() for shape in entry.sizes)
    wanted = sum(math.prod(shape) for entry in calls.values() for shape in entry.outputs)
    if calls.keys() != {*wait.members} or sent == wanted:
        return None
    text = f"{wait.op} #{wait.seq}: all ranks together send {sent} elements and are to receive {wanted}"
    return Verdict(
        outcome="hang",
        cause="shape-mismatch",
        detail=text,
        summary=f"The splits of the ranks do not match: {text}.",
        culprits=tuple(sorted(calls)),
        where=facts.where(sorted(calls)),
        evidence=(text,),
        finding=_finding(facts, []),
    )


def _shapes(sizes: Sizes) -> str:
    return ", ".join("x".join(str(n) for n in shape) or "scalar" for shape in sizes)
