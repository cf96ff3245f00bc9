"""Ports and who owns them, as a map; a conflict stands first. Pure; outside text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...diagnose.events import refused
from ...model.facts import Port, Snapshot
from ...model.wording import spoken
from ...report.markup import code, text
from .family import family

APART = 8
"""Ports of one role above which they share one entry."""

_ORDER = ("store", "gloo", "other")
_ROLES = {
    "store": "the job's store",
    "gloo": "gloo, listens for other ranks",
    "other": "another listener",
}


@dataclass
class Entry:
    """One port.

    Attributes:
        owners: who listens on it; refused: who wanted to, and could not.
        stranger: the process outside the job that has it, and its command.
    """

    port: int
    roles: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    owners: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    stranger: tuple[str, str] | None = None

    @property
    def conflict(self) -> bool:
        """True when more than one process wants the port."""
        return bool(self.refused or self.stranger)

    @property
    def order(self) -> tuple[bool, int, int]:
        """Conflicts first, then the store, the launcher's rendezvous, and the others."""
        role = self.roles[0] if self.roles else "other"
        return not self.conflict, _ORDER.index(role) if role in _ORDER else len(_ORDER), self.port


def entries(snapshot: Snapshot, *, reveal: bool = True) -> list[Entry]:
    """Every port that a process of the job has, or wanted, in the order of the map.

    Args:
        snapshot: what was seen.
        reveal: False leaves out who wanted a port and could not have it.
    """
    found: dict[int, Entry] = {}
    for member in family(snapshot):
        process = member.process
        for port in process.ports:
            _add(found.setdefault(port.port, Entry(port.port)), port, member.name)
        number = refused(process.error) if process.error and reveal else None
        if number is not None:
            found.setdefault(number, Entry(number)).refused.append(member.name)
    for number, who in snapshot.strangers if reveal else ():
        entry = found.setdefault(number, Entry(number))
        entry.stranger = (f"pid {who.pid}, outside the job", who.command)
    return sorted(found.values(), key=lambda entry: entry.order)


def _add(entry: Entry, port: Port, owner: str) -> None:
    for told, seen in ((port.role, entry.roles), (port.address, entry.addresses), (owner, entry.owners)):
        if told not in seen:
            seen.append(told)


def port_map(snapshot: Snapshot, *, reveal: bool = True) -> str:
    """A list of ports, each with its role and owner; `reveal` as for `entries`."""
    found = entries(snapshot, reveal=reveal)
    if not found:
        return "<p>No process of the job listens on a port.</p>"
    crowded = {
        role
        for role in _ROLES
        if sum(entry.roles == [role] and not entry.conflict for entry in found) > APART
    }
    single = [entry for entry in found if entry.conflict or not crowded.intersection(entry.roles)]
    shown = [_entry(entry) for entry in single]
    shown += [_many(role, [e for e in found if e not in single and role in e.roles]) for role in crowded]
    return f'<ul class="sr-ports" aria-label="Ports">{"".join(shown)}</ul>'


def _entry(entry: Entry) -> str:
    role = " and ".join(_ROLES.get(role, role) for role in entry.roles) or "wanted by the job"
    lines = [f'<span class="sr-port">{entry.port}</span> {text(role)}']
    if entry.conflict:
        lines.insert(0, '<strong><span aria-hidden="true">✕</span> conflict</strong>')
    if entry.owners:
        lines.append(f"held by <strong>{text(_list(entry.owners))}</strong>")
    if entry.stranger:
        lines.append(f"held by <strong>{text(entry.stranger[0])}</strong>: {code(entry.stranger[1])}")
    if entry.refused:
        lines.append(f"refused to <strong>{text(_list(entry.refused))}</strong>")
    if entry.addresses:
        lines.append(f'<span class="sr-note">at {text(_list(entry.addresses))}</span>')
    return f'<li class="sr-{"bad" if entry.conflict else "plain"}">{"<br>".join(lines)}</li>'


def _many(role: str, crowd: list[Entry]) -> str:
    owners = list(dict.fromkeys(owner for entry in crowd for owner in entry.owners))
    ranks = [int(name.removeprefix("rank ")) for name in owners if name[5:].isdigit()]
    others = len(owners) - len(ranks)
    who = [spoken(ranks)] if ranks else []
    who += [f"{others} other processes"] if others else []
    low, high = min(entry.port for entry in crowd), max(entry.port for entry in crowd)
    return (
        f'<li class="sr-plain"><span class="sr-port">{len(crowd)} ports</span> {_ROLES[role]}<br>'
        f"held by <strong>{text(' and '.join(who))}</strong><br>"
        f'<span class="sr-note">between {low} and {high}</span></li>'
    )


def _list(names: Iterable[str]) -> str:
    return " and ".join(names)
