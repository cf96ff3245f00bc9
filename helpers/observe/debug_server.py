"""What torch's debug servers tell of a job that is seen from outside -> its records. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..beacon import torch_names
from ..beacon.record import Group, Record
from . import flight_dump
from .account import UnreadableError

ANSWERS = 5.0
"""Seconds within which the server has answered, if ever."""


def is_server(record: Record) -> bool:
    """True for the process that serves the pages."""
    frames = (frame for thread in record["threads"] for frame in thread["frames"])
    return any(torch_names.is_debug_server(file) for file, *_ in frames)


def recorded(record: Record, answer: Mapping[str, Any], rank: int, world_size: int) -> Record:
    """A record with what the rank's Flight Recorder holds.

    It stays as it is where the server does not tell that, or not as torch writes it, or has told it
    before the rank's main thread came to where it is now.
    """
    dump = answer.get("ranks", {}).get(str(rank))
    main = (thread for thread in record["threads"] if thread["main"])
    if dump is None or any(thread["since"] > answer.get("at", 0.0) for thread in main):
        return record
    try:
        account = flight_dump.account(dump, "")
    except UnreadableError:
        return record
    everybody = list(range(world_size))
    groups: list[Group] = [
        group if group["ranks"] or group["name"] != "default" else {**group, "ranks": everybody}
        for group in account.groups
    ]
    assert account.flight is not None, "a dump has entries, if none"
    return {
        **record,
        "flight": {**account.flight, "since": 0.0},
        "dist": {"rank": rank, "world_size": world_size, "groups": groups, "made": None},
    }
