"""Which addresses the ranks of a job give each other, and which of them cannot be reached. No I/O."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterable, Mapping, Sequence

from ..model.facts import Verdict
from ..model.wording import plural, sentence, spoken
from .events import Event
from .messages import CANNOT_CONNECT, NO_INTERFACE, PEER
from .scene import Facts, texts

SET_INTERFACE = (
    "Set GLOO_SOCKET_IFNAME (and NCCL_SOCKET_IFNAME) on every node to the interface of the network that "
    "the nodes share; `ip -br addr` lists them."
)

SEE_THE_REST = (
    "To see all of them, put `stuck-ranks diagnose --record FOLDER/ --` before the command on every "
    "node, or run `stuck-ranks attach --record FOLDER/ PID` there, and then `stuck-ranks read FOLDER`"
)


def wrong_interface(facts: Facts, event: Event) -> Verdict | None:
    """A rank could not connect to another one, at an address that means another machine to each.

    That is a loopback address, or one that several machines have, as those of virtual bridges.
    """
    message = event.error.message if event.error is not None else ""
    address = peer_in(message) if CANNOT_CONNECT.search(message) else None
    if facts.snapshot.job.single_node or address is None or event.rank is None:
        return None
    has = [interface for interface in facts.snapshot.interfaces if interface.address == address]
    hosts = {interface.host for interface in has}
    local = facts.graph.ranks[event.rank].host in hosts and not _is_master(facts, address)
    if not (is_loopback(address) or local or len(hosts) > 1):
        return None
    culprits = offering(facts, [address])
    who = on_hosts(facts, culprits) if culprits else "a rank on another machine"
    names = ", ".join(sorted({interface.name for interface in has}))
    means = "reaches no other machine" if is_loopback(address) else f"several machines have ({names})"
    gave = f"{who} {plural(culprits or (0,), 'has', 'have')} given the others {address} to connect to"
    failed = facts.saying(CANNOT_CONNECT)
    so = f"which {means}, so {spoken([*failed])} could not connect"
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=f"wrong network interface: {gave}{settings(facts, culprits)}",
        summary=f"{sentence(gave)}{settings(facts, culprits)}, {so}. {SET_INTERFACE}",
        culprits=culprits,
        where=event.where,
        evidence=texts(failed),
    )


def no_interface(facts: Facts, event: Event) -> Verdict | None:
    """The network interface that a setting names does not exist on a rank's machine."""
    message = event.error.message if event.error is not None else ""
    if event.rank is None or not NO_INTERFACE.search(message):
        return None
    failures = facts.saying(NO_INTERFACE)
    ranks = facts.graph.ranks
    settings_there = {
        (ranks[rank].host, ranks[rank].interface) for rank in failures if ranks[rank].interface
    }
    # Their launcher may have ended the others there before they could say so, too.
    alike = (r for r, view in ranks.items() if (view.host, view.interface) in settings_there)
    culprits = tuple(sorted({*failures, *alike}))
    lack = f"{on_hosts(facts, culprits)} {plural(culprits, 'does', 'do')} not have"
    detail = f"a setting{settings(facts, culprits)} names a network interface that {lack}"
    return Verdict(
        outcome="error",
        cause="rendezvous-incomplete",
        detail=f"wrong network interface: {detail}",
        summary=f"{sentence(detail)}, so {plural(culprits, 'it', 'they')} cannot join. {SET_INTERFACE}",
        culprits=culprits,
        where=event.where,
        evidence=texts(failures),
    )


def peer_in(message: str) -> str | None:
    """The address of the other end of a connection that a message speaks of."""
    match = PEER.search(message)
    return next(filter(None, match.groups())) if match else None


def _is_master(facts: Facts, address: str) -> bool:
    """True for the address at which all ranks have found the store: it is one that they share."""
    return (facts.snapshot.job.master or "").rpartition(":")[0] == address


def is_loopback(address: str) -> bool:
    """True for an address, or the name, by which a machine reaches itself only."""
    try:
        return address == "localhost" or ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return False


def offering(facts: Facts, addresses: Collection[str]) -> tuple[int, ...]:
    """The seen ranks that others are to reach at an address: where they listen, or were told to."""
    loopback = any(map(is_loopback, addresses))

    def is_offered(address: str) -> bool:
        return address in addresses or (loopback and is_loopback(address))

    links = {(link.host, link.name) for link in facts.snapshot.interfaces if is_offered(link.address)}
    return tuple(
        rank
        for rank, view in sorted(facts.graph.ranks.items())
        if view.process is not None
        and (
            (view.host, view.interface.partition("=")[2]) in links
            or any(is_offered(port.address) for port in view.process.ports if port.role != "store")
        )
    )


def settings(facts: Facts, ranks: Collection[int]) -> str:
    """` (GLOO_SOCKET_IFNAME=lo)`; nothing where no rank has such a setting."""
    names = sorted({facts.graph.ranks[rank].interface for rank in ranks} - {""})
    return f" ({', '.join(names)})" if names else ""


def unanswered(facts: Facts, ranks: Iterable[int]) -> dict[str, list[int]]:
    """IP address -> those of `ranks` that have long got no answer from there."""
    silent: dict[str, list[int]] = {}
    for rank in sorted(ranks):
        process = facts.graph.ranks[rank].process
        ends = process.unanswered if process is not None else ()
        for address in sorted({end.rpartition(":")[0] for end in ends}):
            silent.setdefault(address, []).append(rank)
    return silent


def in_words(facts: Facts, silent: Mapping[str, Sequence[int]]) -> str:
    """`ranks 0 and 1 (host n0) get no answer from 10.0.0.2 (host n1)`; empty where all answer."""
    hosts: dict[str, set[str]] = {}
    for interface in facts.snapshot.interfaces:
        hosts.setdefault(interface.address, set()).add(interface.host)
    who: dict[tuple[int, ...], list[str]] = {}
    for address, asking in silent.items():
        on = hosts.get(address, ())
        name = f"{address} (host {min(on)})" if len(on) == 1 else address
        who.setdefault(tuple(asking), []).append(name)
    lines = (
        f"{on_hosts(facts, asking)} {plural(asking, 'gets', 'get')} no answer from {' and '.join(ends)}"
        for asking, ends in who.items()
    )
    return "; ".join(lines)


def on_hosts(facts: Facts, ranks: Collection[int]) -> str:
    """`ranks 0 and 1 (host n0)`; without the host where it is not known."""
    hosts = sorted({facts.graph.ranks[rank].host for rank in ranks} - {""})
    on = f" ({plural(hosts, 'host', 'hosts')} {', '.join(hosts)})" if hosts else ""
    return f"{spoken(sorted(ranks))}{on}"
