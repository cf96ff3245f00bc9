"""Listening on a port fails because another process has it."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.facts import Blocker, ChildView, RankView, Verdict
from ...model.findings import AddressInUse, Owner
from ...model.port_refusal import is_address_in_use, refused_port
from ...model.wording import child_phrase, place, sentence
from ..events import Event, twins
from ..scene import Facts


def find(facts: Facts) -> Verdict | None:
    """The first failure is a bind that the kernel refused with EADDRINUSE."""
    event = facts.first
    if event is None or event.error is None or not is_address_in_use(event.error):
        return None
    port = refused_port(event.error)
    blockers = tuple(b for number, b in facts.snapshot.strangers if number == port)
    name = f"port {port}" if port is not None else "a port"
    owner, evidence = _owner(facts, port)
    if blockers:
        owner = f"process {blockers[0].pid} outside the job"
        evidence = (f"{name} belongs to process {blockers[0].pid}: {blockers[0].command}",)
    holder = f", which {owner} holds" if owner else ""
    who, why = _who(facts, event)
    refusal = f"{who} cannot listen on {name}{holder}"
    if port == 0:  # the process leaves the choice to the kernel
        refusal = f"{who} finds no free port to listen on"
        why = "this machine has given out every port of net.ipv4.ip_local_port_range"
    return Verdict(
        outcome="error",
        cause="address-in-use",
        detail=refusal,
        summary=f"{sentence(refusal)}: {why}.",
        culprits=() if blockers or event.rank is None else (event.rank,),
        where=event.where,
        evidence=(f"{who}: {event.error.text}", *evidence),
        blockers=blockers,
        finding=AddressInUse(
            port=port,
            owner=_kind_of_owner(facts, blockers, owner),
            same_rank=_is_twin(facts, event),
            runs_module_again=facts.runs_module_again and not blockers,
        ),
    )


def _is_twin(facts: Facts, event: Event) -> bool:
    """True for a process that acts as a rank beside another one."""
    view = facts.graph.ranks.get(event.rank) if event.rank is not None else None
    return view is not None and event.process.pid in twins(view)


def _kind_of_owner(facts: Facts, blockers: Sequence[Blocker], owner: str | None) -> Owner:
    """Who has the port; an earlier run of the same command is known by its command line."""
    command = " ".join(facts.snapshot.job.command)
    if any(blocker.command and blocker.command in command for blocker in blockers):
        return "earlier run"
    return "stranger" if blockers else "job" if owner else "unknown"


def _owner(facts: Facts, port: int | None) -> tuple[str | None, tuple[str, ...]]:
    for view in facts.snapshot.ranks:
        processes = [(view.process, "")]
        processes += [(child.process, _child(view, child)) for child in view.children]
        for process, child in processes:
            for listener in process.ports if process else ():
                if listener.port == port:
                    owner = f"{child}rank {view.rank}" if child else f"rank {view.rank}"
                    return owner, (f"port {port} ({listener.role}) is owned by {owner}",)
    for process in facts.snapshot.launchers:
        if any(listener.port == port for listener in process.ports):
            return "the launcher", (f"port {port} is owned by the launcher",)
    return None, ()


def _who(facts: Facts, event: Event) -> tuple[str, str]:
    """Who failed, and the sentence that says why it tried to listen."""
    where = place(event.where)
    if event.own or event.rank is None:
        launcher = event.process.kind == "launcher" and event.rank is None
        who = "the launcher" if launcher else event.who
        before = f" before {where} runs" if event.where else ""
        return who, f"another process has taken the address{before}"
    view = facts.graph.ranks[event.rank]
    child = next(c for c in view.children if c.process.pid == event.process.pid)
    who = f"{_child(view, child)}rank {event.rank}"
    if child.process.pid in twins(view):
        return who, f"the first has taken the address before {where} runs"
    if _runs_module_again(event):
        return who, f"it runs the module again from the top and so calls {where} a second time"
    return who, f"it opens the job's store itself at {where}"


def _child(view: RankView, child: ChildView) -> str:
    return "a second process as " if child.process.pid in twins(view) else f"{child_phrase(child)} of "


def _runs_module_again(event: Event) -> bool:
    """True when the failing line runs at module level inside multiprocessing's own start-up."""
    stack = event.error.stack if event.error else ()
    files = [frame.file for frame in stack]
    return any("multiprocessing/spawn.py" in file for file in files)
