"""A dump of torch's Flight Recorder -> what its rank has issued, and where it waits.

A dump is a dictionary, as a pickle (`TORCH_NCCL_DEBUG_INFO_TEMP_FILE`, `_dump_fr_trace`) or as JSON
(`_dump_fr_trace_json`, torch's debug server): `version`, `pg_config`, `pg_status` and `entries`. The
versions of the format, 2.0 to 2.10 (torch 2.4 to 2.13, torch/csrc/distributed/c10d/FlightRecorder.hpp),
differ in keys that are added. The rank is not in it: it is the number at the end of the file's name.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import os
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from ..beacon import flight
from ..beacon.calls import NOTHING
from ..beacon.record import Call, FrameEntry, Group, Thread
from . import pyspy_record
from .account import Account, UnreadableError

KIND = "Flight Recorder dump"

WORLD = "default_pg"
"""How torch describes the default group."""

_RANK = re.compile(r"(\d+)(\.(json|pickle|pkl|pt|trace|gz))*$")
_PEERS = re.compile(r"(send|recv) (\d+)(->|<-)(\d+)$")

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"\s+")


class _DataOnly(pickle.Unpickler):
    """Containers and scalars: nothing is looked up, so nothing can be called."""

    def find_class(self, module: str, name: str) -> object:
        raise UnreadableError(f"it wants to call {module}.{name}, which no dump does")

    def persistent_load(self, pid: object) -> object:  # noqa: ARG002 (as pickle calls it)
        raise UnreadableError("it refers to something outside of itself, which no dump does")


def unpickled(data: bytes) -> object:
    """What a pickle holds.

    Raises:
        UnreadableError: it is cut off, or holds more than containers, numbers and texts.
    """
    try:
        return _DataOnly(io.BytesIO(data)).load()
    except UnreadableError:
        raise
    except Exception as problem:  # a pickle that is not what it claims to be raises anything
        raise UnreadableError(f"its pickle is damaged: {_reason(problem)}") from None


def parsed(data: bytes) -> Iterator[object]:
    """What a JSON text holds: one value, or several behind each other.

    Raises:
        UnreadableError: it is none.
    """
    text = data.decode("utf-8", "replace").strip()
    at = 0
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            yield value
            space = _SPACE.match(text, at)
            at = space.end() if space is not None else at
    except (ValueError, RecursionError) as problem:
        raise UnreadableError(f"its JSON is damaged: {_reason(problem)}") from None


def _reason(problem: Exception) -> str:
    return " ".join(str(problem).split())[:80] or type(problem).__name__


def is_dump(value: object) -> TypeGuard[Mapping[str, Any]]:
    """True for what a recorder writes."""
    return isinstance(value, dict) and "entries" in value and "version" in value


def rank_of(path: str) -> int | None:
    """The number at the end of a file's name: torch adds the rank to the name that it was given."""
    match = _RANK.search(os.path.basename(path))
    return int(match[1]) if match is not None else None


def account(dump: Mapping[str, Any], path: str) -> Account:
    """What a dump tells of its rank.

    Raises:
        UnreadableError: it is not as torch writes it.
    """
    try:
        return _account(dump, path)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, OverflowError) as problem:
        raise UnreadableError(f"its entries are not as torch writes them: {_reason(problem)}") from None


def _account(dump: Mapping[str, Any], path: str) -> Account:
    entries = [_plain(entry) for entry in dump["entries"]]
    config = _config(dump.get("pg_config") or {})
    tail, calls, issued = flight.collectives(_collectives(entries), _is_user)
    groups = _groups(entries, config)
    world = next((group["ranks"] for group in groups if group["name"] == "default"), [])
    since = max((entry["created"] for entry in tail), default=0)
    return Account(
        file=path,
        kind=KIND,
        written=since / 1e9 if since else None,
        rank=rank_of(path),
        world_size=len(world) or None,
        threads=tuple(_waiting(entries, groups)),
        groups=tuple(groups),
        flight={"since": since / 1e9, "entries": tail, "calls": calls, "issued": issued},
    )


def _plain(entry: object) -> dict[str, Any]:
    """An entry whose numbers are numbers: JSON has some of them as texts."""
    if not isinstance(entry, dict):
        raise TypeError("an entry is not a dictionary")
    plain = dict(entry)
    for key in ("collective_seq_id", "p2p_seq_id", "time_created_ns"):
        plain[key] = int(plain.get(key) or 0)
    plain["process_group"] = (*map(str, plain.get("process_group") or ()), "", "")[:2]
    return plain


def _collectives(entries: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The collectives, each with its parts: those that are issued as one have one number."""
    for _, parts in itertools.groupby(
        (entry for entry in entries if not entry.get("is_p2p")),
        key=lambda entry: (entry["process_group"][0], entry["collective_seq_id"]),
    ):
        *first, last = parts
        if first:
            sizes = [shape for part in (*first, last) for shape in part.get("input_sizes") or []]
            last = {**last, "input_sizes": sizes}
        yield last


@functools.lru_cache(maxsize=4096)
def _is_user(file: str) -> bool:
    return pyspy_record.is_user(file, ())


def _config(config: Mapping[str, Any]) -> dict[str, list[int]]:
    """Id of each group -> its members, as far as the recorder tells: gloo's does not."""
    return {
        str(name): [int(number) for number in re.findall(r"\d+", str(facts.get("ranks") or ""))]
        for name, facts in config.items()
    }


def _groups(entries: Sequence[Mapping[str, Any]], config: Mapping[str, list[int]]) -> list[Group]:
    """The groups in which the rank has issued something."""
    by_id: dict[str, Group] = {}
    for entry in entries:
        name, description = entry["process_group"]
        if name not in by_id:
            backend, _ = flight.operation(entry)
            label = "default" if description == WORLD else description
            label = name if label in ("", "undefined") else label
            # gloo's recorder has one entry, without a name, which tells the members of no other group.
            members = config.get(name) or (config.get("", []) if label == "default" else [])
            by_id[name] = {"name": label, "id": name, "ranks": members, "backend": backend}
    return list(by_id.values())


def _waiting(entries: Sequence[Mapping[str, Any]], groups: Sequence[Group]) -> Iterator[Thread]:
    """A thread for each group with something pending: at the line that issued the oldest of it."""
    pending: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        done = bool(entry.get("retired")) or entry.get("state") == "completed"
        if not done:
            pending.setdefault(entry["process_group"][0], entry)
    by_time = sorted(pending.values(), key=lambda entry: entry["time_created_ns"])
    for number, entry in enumerate(by_time):
        group = next(group for group in groups if group["id"] == entry["process_group"][0])
        yield {
            "name": "MainThread" if number == 0 else str(entry.get("thread_name") or "thread"),
            "main": number == 0,
            "since": 0.0,
            "frames": [_frame(frame) for frame in entry.get("frames") or ()],
            "call": _call(entry, group),
            "native": None,
            "site": None,
        }


def _frame(frame: Mapping[str, Any]) -> FrameEntry:
    """Torch writes the line 0 or -1 where it has none."""
    file = str(frame["filename"])
    return file, max(0, int(frame["line"])), str(frame["name"]), _is_user(file)


def _call(entry: Mapping[str, Any], group: Group) -> Call:
    _, op = flight.operation(entry)
    peers = _PEERS.search(op)
    call: Call = {
        "kind": "p2p" if peers is not None else "collective",
        "op": peers[1] if peers is not None else op,
        **NOTHING,
        "group": group["name"],
        "ranks": group["ranks"],
        "sizes": [list(shape) for shape in entry.get("input_sizes") or ()],
    }
    if peers is not None:
        # `send 0->1` and `recv 1<-0`, both numbered in the group; the other end comes last.
        number = int(peers[4])
        members = group["ranks"]
        call["peers"] = [members[number] if number < len(members) else number]
    return call
