"""Launchers that wait for those of other nodes before they start any rank. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.facts import ProcessView, Verdict
from ..model.wording import spoken
from .network import is_loopback
from .scene import Facts


def launchers_wait(facts: Facts) -> Verdict | None:
    """Launchers wait in a rendezvous of their own for other nodes, and have started no rank."""
    in_rendezvous = [p for p in facts.snapshot.launchers if p.alive and p.awaits_nodes]
    waiting = [process for process in in_rendezvous if _waited(process) >= facts.patience]
    if not waiting:
        return None
    if facts.snapshot.strangers:
        return _other_job(facts)
    waited = f" for {min(map(_waited, waiting)):.0f} s" if facts.snapshot.timed else ""
    lost, evidence = _clauses(facts, waiting)
    served = {_address(process) for process in waiting if _serves(process)}
    detail = "; ".join(lost) or f"{_missing(in_rendezvous)} not joined the rendezvous"
    text = f"{detail} ({'; '.join(evidence)})" if evidence else detail
    if not lost and len(served) > 1:
        detail = text = f"each serves a rendezvous of its own: {'; '.join(evidence)}"
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=detail,
        summary=f"No rank has been started{waited}: {text}.",
        evidence=(*lost, *evidence),
    )


def _clauses(facts: Facts, launchers: Sequence[ProcessView]) -> tuple[list[str], list[str]]:
    """What launchers do whose rendezvous cannot be reached, and what the others do."""
    stores = {(store.address, store.host): store for store in reversed(facts.snapshot.stores)}
    lost, rest = [], []
    for process in launchers:
        meets = process.rendezvous
        store = stores.get((meets.address, meets.host)) if meets is not None else None
        if store is not None and store.problem:
            lost.append(
                f"{_node(process)} looks for the rendezvous at {store.address}, which {store.problem}"
            )
        elif _serves(process):
            host = _address(process).rpartition(":")[0]
            note = ", where no other machine finds it" if is_loopback(host) else ""
            rest.append(f"{_node(process)} serves the rendezvous at {_address(process)}{note}")
        else:
            rest.append(f"{_node(process)} waits in the rendezvous at {_address(process)}")
    return lost, rest


def _serves(process: ProcessView) -> bool:
    """True for a launcher that listens at the port of its rendezvous."""
    number = _address(process).rpartition(":")[2]
    return any(str(port.port) == number for port in process.ports)


def _address(process: ProcessView) -> str:
    return process.rendezvous.address if process.rendezvous is not None else "an unknown address"


def _node(process: ProcessView) -> str:
    """`the launcher of node 1 (host n1)`."""
    meets = process.rendezvous
    if meets is None:
        return "the launcher"
    number = "" if meets.node is None else f" of node {meets.node}"
    return f"the launcher{number} (host {meets.host})" if meets.host else f"the launcher{number}"


def _missing(launchers: Sequence[ProcessView]) -> str:
    """`node 1 has`, `some of nodes 1, 2 and 3 have`, `other nodes have`.

    Args:
        launchers: the launchers that are in the rendezvous.
    """
    meetings = [process.rendezvous for process in launchers if process.rendezvous is not None]
    nodes = next((meeting.nodes for meeting in meetings if meeting.nodes is not None), None)
    numbers = {meeting.node for meeting in meetings}
    if nodes is None or None in numbers:
        return "other nodes have"
    absent = [number for number in range(nodes) if number not in numbers]
    names = spoken(absent).replace("rank", "node")
    if len(absent) == 1:
        return f"{names} has"
    return f"some of {names} have" if len(numbers) == 1 else f"{names} have"


def _waited(process: ProcessView) -> float:
    """Seconds for which a launcher has waited: its store takes processor time now and then."""
    return max(process.idle, process.still)


def _other_job(facts: Facts) -> Verdict:
    """The launcher has come to the rendezvous of another job, which has all its nodes."""
    port, owner = facts.snapshot.strangers[0]
    return Verdict(
        outcome="hang",
        cause="rendezvous-incomplete",
        detail=f"the launcher waits in a rendezvous at port {port} that belongs to another job",
        summary=(
            f"The launcher has started no rank: the rendezvous at port {port} belongs to process "
            f"{owner.pid} outside the job, and there it waits for a place."
        ),
        evidence=(
            "the launcher is in the rendezvous of torchrun",
            f"port {port} belongs to process {owner.pid}: {owner.command}",
        ),
        blockers=(owner,),
    )
