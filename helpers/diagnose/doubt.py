"""What is not known of a hang that is not proved: who is still, for how long, and what could end it.

The ranks in question are those that nothing seen keeps where they are: that they stay there is assumed.
Each kind of wait has its own doubt, as it has its own answer in `needs`.
"""

from __future__ import annotations

from ..model.clauses import MOST_CLAUSES, Predicate, clauses, grouped, verb
from ..model.facts import UNTOLD, ProcessView, Snapshot
from ..model.waits import (
    ENDLESS,
    SIGNAL,
    InRPC,
    InStore,
    OnChild,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
    Wait,
)
from ..model.wording import functions, joined, operation, place, plural, spoken
from .graph import Graph
from .needs import Need, ended_by_unknown
from .scene import Facts


def doubt(facts: Facts, graph: Graph) -> str:
    """`Probably a hang: rank 1 has not moved from a.py:9 for 31 s; how long it sleeps is not known.`

    Args:
        graph: the graph of the same snapshot, in which nothing is assumed.
    """
    if not (facts.snapshot.timed or graph.ranks):
        return "Probably a hang: whether the wait would have ended is not known."
    if not facts.snapshot.ranks:
        return (
            "Probably a hang: no rank has been started; whether those for whom the launcher waits still "
            "come is not known."
        )
    assumed = facts.graph.given_up | (facts.graph.awaited & graph.unseen)
    alone = {rank for rank in assumed if graph.may_go_on_alone(rank)}
    last = {rank for rank in alone if not graph.waited_for[rank]} or alone
    doubts = {rank: _doubt(graph, rank) for rank in last}
    still = {rank: graph.alive[rank] for rank in last & graph.alive.keys()}
    still = still or {r: p for r, p in graph.alive.items() if r in facts.graph.given_up | facts.stuck}
    who = clauses(_stillness(still)) or "nothing moves"
    return (
        f"Probably a hang: {who}; {_unknown(doubts, pronoun=doubts.keys() == still.keys())} not known."
    )


def _unknown(doubts: dict[int, Predicate], *, pronoun: bool) -> str:
    """`how long it sleeps is`, with a pronoun where the sentence has just named the ranks."""
    groups = sorted(grouped(doubts).items(), key=lambda group: -len(group[1]))
    pronoun = pronoun and len(groups) == 1
    parts = [_about(what, ranks, pronoun=pronoun) for what, ranks in groups[:MOST_CLAUSES]]
    if rest := sum(len(ranks) for _, ranks in groups[MOST_CLAUSES:]):
        parts.append(f"what keeps {rest} more")
    return f"{joined(parts) or 'whether that lasts'} {'are' if len(parts) > 1 else 'is'}"


def _about(what: Predicate, ranks: list[int], *, pronoun: bool) -> str:
    """A doubt with its ranks, which are `it` where the sentence has just named them."""
    name = spoken(ranks)
    it, them = plural(ranks, ("it", "it"), ("they", "them")) if pronoun else (name, name)
    return plural(ranks, *what).replace("{it}", it).replace("{them}", them)


def _stillness(still: dict[int, ProcessView]) -> dict[int, Predicate]:
    """For how long ranks have not moved, and from where; what a file tells has no length."""
    lengths = [process.unmoved for process in still.values() if process.unmoved < UNTOLD]
    predicates = {}
    for rank, process in still.items():
        where = place(process.where)
        if process.unmoved < UNTOLD:
            predicates[rank] = verb("has", "have", f"not moved from {where} for {int(min(lengths))} s")
        elif process.where is not None:
            predicates[rank] = verb("was", "were", f"last seen at {where}")
        elif process.blocking:
            predicates[rank] = verb("was", "were", f"last seen in {operation(process.blocking[0])}")
        else:
            predicates[rank] = verb("has", "have", "said nothing more")
    return predicates


def _doubt(graph: Graph, rank: int) -> Predicate:
    """What could still let a rank go on; `{it}` and `{them}` stand for the rank."""
    view = graph.ranks[rank]
    if view.state == "unseen":
        return _whether("{it}, out of sight, still comes", "{it}, out of sight, still come")
    if view.process is None:
        return _whether("{it} is still started", "{it} are still started")
    if view.process.unmoved >= UNTOLD:
        return _whether("{it} has moved since", "{it} have moved since")
    if (doubt := _of_state(view.process, graph.snapshot)) is not None:
        return doubt
    for wait in graph.waits(rank):
        if Need() in graph.needs.otherwise(rank, wait):
            children = [process for process in graph.needs.in_turn(rank) if process.kind != "rank"]
            by_child = children and not ended_by_unknown(wait)
            return _of_child(children[-1]) if by_child else _of_wait(wait)
    if view.process.acting_thread is not None:
        return _whether("another thread of {them} still ends the wait")
    return Predicate("what {it} waits for", "what {it} wait for")


def _whether(text: str, of_many: str = "") -> Predicate:
    return Predicate(f"whether {text}", f"whether {of_many or text}")


def _of_state(process: ProcessView, snapshot: Snapshot) -> Predicate | None:
    """The doubt about a process that is held by something else than what it waits in."""
    tests = any(isinstance(wait, OnCondition) and wait.op != ENDLESS for wait in process.blocking[:1])
    if process.state == "stopped":
        return _whether("somebody lets {them} go on")
    if process.gil_held:
        return _whether("the C call that {it} is in returns", "the C calls that {it} are in return")
    if process.asleep and process.ends is not None:
        remaining = process.ends - snapshot.time
        return _whether(f"something wakes {{them}} before {remaining:.0f} s more of sleep are over")
    if process.asleep and not tests:
        return Predicate("how long {it} sleeps", "how long {it} sleep")
    return None


def _of_child(process: ProcessView) -> Predicate:
    """The doubt about a child that a rank waits for."""
    kind = "DataLoader worker" if process.kind == "dataloader-worker" else "process"
    name, names = f"the {kind} that {{it}} waits for", f"the {kind}s that {{it}} wait for"
    if process.state == "stopped":
        return _whether(f"somebody lets {name} go on", f"somebody lets {names} go on")
    if process.asleep:
        return Predicate(f"how long {name} sleeps", f"how long {names} sleep")
    return _whether(f"{name} goes on", f"{names} go on")


def _of_wait(wait: Wait) -> Predicate:
    """The doubt about a wait that something else than a rank may end."""
    match wait:
        case OnCondition(op=op, changed_at=(_, *_) as lines):
            return _whether(f"{functions(lines)} still changes `{op}`")
        case OnCondition(op=op) if op != ENDLESS:
            return _whether(f"something outside still changes `{op}`")
        case OnInput():
            return _whether("somebody types what {it} waits for", "somebody types what {it} wait for")
        case OnLock(holder=int(pid)):
            return _whether(f"process {pid}, which is outside the job, releases {operation(wait)}")
        case OnLock() if wait.on_file:
            return _whether(f"somebody who is not seen releases {operation(wait)}")
        case OnLock() | OnThread():
            return _whether("another thread of {them}, or a callback, still ends the wait")
        case InStore():
            return _whether(f"a process that is no rank still sets {operation(wait)}")
        case InRPC():
            return _whether(f"{operation(wait)} is still answered")
        case OnChild():
            return _whether("the process that {it} waits for goes on", "those that {it} wait for go on")
        case OnIO(target=target) if target == SIGNAL:
            return _whether("somebody still sends {them} a signal")
        case OnIO(target=str(target)):
            return _whether(f"anything still happens at {target}")
        case OnIO() | OnCondition():
            return _whether(f"something outside still ends `{wait.op}`")
    return _whether(f"{operation(wait)} still finishes")
