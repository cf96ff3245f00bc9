"""Ports and who owns them, as a map; conflicts come first."""

from __future__ import annotations

import msgspec

from ...model.facts import Blocker, Port, Snapshot
from ...model.port_refusal import refused_port
from ...model.wording import spoken
from .family import family
from .templates import html

APART = 8
"""Ports of one role above which they share one entry."""

_ORDER = ("store", "gloo", "other")
_ROLES = {
    "store": "the job's store",
    "gloo": "gloo, listens for other ranks",
    "other": "another listener",
}


class Entry(msgspec.Struct):
    """One port.

    Attributes:
        owners: which processes listen on it.
        refused: which processes wanted to, and could not.
        stranger: the process outside the job that has it.
    """

    port: int
    roles: list[str] = msgspec.field(default_factory=list)
    addresses: list[str] = msgspec.field(default_factory=list)
    owners: list[str] = msgspec.field(default_factory=list)
    refused: list[str] = msgspec.field(default_factory=list)
    stranger: Blocker | None = None

    @property
    def conflict(self) -> bool:
        """True when more than one process wants the port."""
        return bool(self.refused or self.stranger)

    @property
    def order(self) -> tuple[bool, int, int]:
        """Conflicts first, then the store, the launcher's rendezvous, and the others."""
        role = self.roles[0] if self.roles else "other"
        return not self.conflict, _ORDER.index(role) if role in _ORDER else len(_ORDER), self.port


class Crowd(msgspec.Struct, frozen=True):
    """Many ports of one role, which share an item of the map."""

    role: str
    entries: tuple[Entry, ...]

    @property
    def ports(self) -> list[int]:
        """Their numbers."""
        return [entry.port for entry in self.entries]

    @property
    def owners(self) -> str:
        """`ranks 0-8 and 2 other processes`."""
        names = dict.fromkeys(owner for entry in self.entries for owner in entry.owners)
        ranks = [int(name.removeprefix("rank ")) for name in names if name[5:].isdigit()]
        strangers = len(names) - len(ranks)
        who = [spoken(ranks)] if ranks else []
        return " and ".join([*who, f"{strangers} other processes"] if strangers else who)


def entries(snapshot: Snapshot, *, reveal: bool = True) -> list[Entry]:
    """Every port that a process of the job has, or wanted, in the order of the map.

    Args:
        snapshot: what was seen.
        reveal: False leaves out which processes wanted a port and could not have it.
    """
    entry_by_port: dict[int, Entry] = {}
    for name, process in family(snapshot):
        for port in process.ports:
            _add(entry_by_port.setdefault(port.port, Entry(port.port)), port, name)
        number = refused_port(process.error) if process.error and reveal else None
        if number is not None:
            entry_by_port.setdefault(number, Entry(number)).refused.append(name)
    for number, who in snapshot.strangers if reveal else ():
        entry = entry_by_port.setdefault(number, Entry(number))
        entry.stranger = who
    return sorted(entry_by_port.values(), key=lambda entry: entry.order)


def _add(entry: Entry, port: Port, owner: str) -> None:
    pairs = ((port.role, entry.roles), (port.address, entry.addresses), (owner, entry.owners))
    for text, texts in pairs:
        if text not in texts:
            texts.append(text)


def port_map(snapshot: Snapshot, *, reveal: bool = True) -> str:
    """A list of ports, each with its role and owner; `reveal` as for `entries`."""
    ports = entries(snapshot, reveal=reveal)
    if not ports:
        return "<p>No process of the job listens on a port.</p>"
    calm = {
        role: [entry for entry in ports if role in entry.roles and not entry.conflict] for role in _ROLES
    }
    crowds = [
        Crowd(role, tuple(crowd))
        for role, crowd in calm.items()
        if sum(entry.roles == [role] for entry in crowd) > APART
    ]
    crowded = {port for crowd in crowds for port in crowd.ports}
    single = [entry for entry in ports if entry.port not in crowded]
    return html("ports", single, crowds, _ROLES)
