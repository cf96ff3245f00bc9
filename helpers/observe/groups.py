"""What a record tells of process groups, and of the collectives that they have seen. No I/O."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import NotRequired, TypedDict

from ..beacon.membership import ranks_of
from ..beacon.record import CallHistory, FlightEntry, Members, Record
from ..beacon.record import Group as JoinedGroup
from ..beacon.torch_names import P2P_CALLS
from ..model.facts import Collective, Group
from ..model.frames import Frame
from ..model.waits import UNKNOWN_CALL, InCollective, Sizes

CPU_BACKENDS = ("gloo", "mpi", "ucc", "fake", "threaded")
"""The backends of torch whose calls return once they are done."""

Place = tuple[str, int]
"""A group, as it is called here, and the number of a collective in it."""

LOGGED = 64
"""Newest collectives of a group that are told from its calls, as many as the log keeps."""


class Waiting(TypedDict):
    """What all waits of one thread have in common."""

    thread: str
    where: Frame | None
    within: NotRequired[tuple[str, ...]]
    traced: NotRequired[bool]


def collectives(record: Record) -> tuple[Collective, ...]:
    """The tail of the record's Flight Recorder, oldest first."""
    labels = labels_of(record)
    return tuple(
        Collective(
            group=labels.get(entry["group"], ("group " + entry["group"], ()))[0],
            seq=entry["seq"],
            op=entry["op"],
            sizes=sizes(entry["sizes"]),
            dtype=entry.get("dtype", ""),
            outputs=sizes(entry.get("outputs", [])),
            done=entry["done"],
        )
        for entry in _flight(record)
    )


def on_device(record: Record) -> bool:
    """True for a process that may wait for a device: it uses CUDA, or a backend that is for no CPU."""
    on_devices = (_is_on_device(group["backend"]) for group in joined(record))
    return record["accelerator"] != "cpu" or any(on_devices)


def carries_out(record: Record, label: str | None) -> bool:
    """True for a group, by its label, whose collectives a device carries out."""
    return any(_is_on_device(group["backend"]) for group in joined(record) if group["name"] == label)


def joined(record: Record) -> list[JoinedGroup]:
    """The groups that a process is in, none before it has joined one; several may have one label."""
    return record["dist"]["groups"] if record["dist"] is not None else []


def _is_on_device(backend: str) -> bool:
    return backend not in ("", *CPU_BACKENDS)


def _is_counted(backend: str) -> bool:
    kinds = backend.replace(":", ",").split(",")
    return _is_on_device(backend) and not any(kind.startswith("nccl") for kind in kinds)


def logged(record: Record, open_handles: Collection[Place] = ()) -> tuple[Collective, ...]:
    """What was issued in groups whose backend has no recorder: the calls made through Python.

    They count as done, which nothing here tells. NCCL's do not count: it has a recorder, and takes a
    barrier for the all_reduce that it is, so calls of different names may be done.

    Args:
        open_handles: the asynchronous ones for which the rank has not waited.
    """
    dist, history = record["dist"], record.get("call_history")
    if dist is None or history is None or not history.get("whole"):
        return ()
    entries = _entries(history, open_handles)
    return tuple(
        entries.get((name, number)) or Collective(name, number, UNKNOWN_CALL, done=True, logged=True)
        for name in (group["name"] for group in dist["groups"] if _is_counted(group["backend"]))
        for newest in (history["collectives"].get(name, 0),)
        for number in range(max(1, newest - LOGGED + 1), newest + 1)
    )


def _entries(history: CallHistory, open_handles: Collection[Place]) -> dict[Place, Collective]:
    """The newest collectives of a log, as `logged` gives them."""
    calls = [call for call in history["newest"] if call["op"] not in P2P_CALLS]
    asynchronous = {call["op"] for call in calls if call.get("handle")}
    operations = {(call["group"], call["number"]): call["op"] for call in calls}
    order = history.get("order") or [(*place, op) for place, op in operations.items()]
    return {
        (group, number): Collective(
            group,
            number,
            op,
            done=True,
            logged=True,
            turn=turn,
            handle=(group, number) in open_handles
            if (group, number) in operations
            else op in asynchronous,
        )
        for turn, (group, number, op) in enumerate(order)
    }


def calls(record: Record) -> int:
    """How many calls of torch.distributed a process has made through Python."""
    history = record.get("call_history")
    return sum((*history["collectives"].values(), *history["p2p"].values())) if history else 0


def group_count(record: Record) -> int | None:
    """How many groups the process has made; None when unknown."""
    return record["dist"]["made"] if record["dist"] is not None else None


def groups(record: Record) -> tuple[Group, ...]:
    """The process groups of a process, with one that a `new_group` call of it is creating.

    torch numbers the groups that a process makes, and names them by that number.
    """
    listed = [
        Group(group["id"], group["name"], members(group), group.get("guessed", False))
        for group in joined(record)
    ]
    for call in (thread["call"] for thread in record["threads"]):
        if call is not None and call["counted"] and members(call) and (number := group_count(record)):
            name = str(number - 1)
            if name not in [group.id for group in listed]:
                listed.append(Group(name, name, members(call)))
    return tuple(listed)


def pending_waits(record: Record, common: Waiting) -> list[InCollective]:
    """Every collective that the Flight Recorder has as enqueued and not completed, oldest first."""
    labels = labels_of(record)
    pending = []
    for entry in _flight(record):
        if entry["done"]:
            continue
        label, ranks = labels.get(entry["group"], ("group " + entry["group"], ()))
        pending.append(
            InCollective(
                op=entry["op"],
                group=label,
                members=ranks,
                seq=entry["seq"],
                sizes=sizes(entry["sizes"]),
                dtype=entry.get("dtype", ""),
                on_device=carries_out(record, label),
                **common,
            )
        )
    return pending


def labels_of(record: Record) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Id of each group -> what it is called here, and its members."""
    return {group["id"]: (group["name"], members(group)) for group in joined(record)}


def members(group: Members) -> tuple[int, ...]:
    """The members of a group: one object wherever they are equal, since they may be many."""
    return _interned(tuple(ranks_of(group)))


@functools.lru_cache(maxsize=64)
def _interned(members: tuple[int, ...]) -> tuple[int, ...]:
    return members


def sizes(shapes: Sequence[Sequence[int]]) -> Sizes:
    """Shapes of tensors, as a wait has them."""
    return tuple(map(tuple, shapes))


def _flight(record: Record) -> list[FlightEntry]:
    """The entries of the record's Flight Recorder, oldest first."""
    entries = record["flight"]["entries"] if record["flight"] is not None else ()
    return sorted(entries, key=lambda entry: entry["created"])
