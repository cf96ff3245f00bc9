"""What NCCL has done of what a rank has issued, by its own account. No I/O.

A call of NCCL returns, or may, before the device has come to it. So where a rank stands tells what is
wrong only where NCCL has nothing left to do; else the entries of its recorder tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from ..beacon.nccl import DUMPS, PIPE
from ..beacon.record import Flight, NcclAccount, Record
from ..model.waits import InCollective
from .groups import Waiting, joined, pending_waits
from .look import Entries

SET_BY_USER = (
    f"the entries of NCCL's recorder are left to you, since {PIPE} or {DUMPS[0]} is set: without it, "
    "they are read from a dump into the run's folder"
)

SETTLED = 3.0
"""Seconds for which an account must not have moved before the entries are asked for."""


def serves(record: Record, label: str | None) -> bool:
    """True for a group, by its label, whose collectives NCCL carries out."""
    return any("nccl" in group["backend"] for group in joined(record) if group["name"] == label)


def is_open(record: Record, label: str | None) -> bool:
    """True where NCCL may have something left to do in a group, and nothing tells what."""
    account = record.get("nccl")
    if account is None or _has_pending_entries(record):
        return "nccl" in record["unseen"]
    return any(_is_pending(account, group["id"]) for group in joined(record) if group["name"] == label)


def question(record: Record | None, now: float) -> Entries | None:
    """What is to be asked of the recorder of a process, once its account has not moved for a while."""
    account = record.get("nccl") if record is not None else None
    if account is None or not account["dump"] or not _is_held(account, now):
        return None
    return Entries(account["dump"], account["since"])


def recorded(record: Record, answer: Any) -> Record:
    """The record with what NCCL's recorder holds, unless another one has something pending.

    Args:
        answer: to `question`.
    """
    account = record.get("nccl")
    if account is None or not isinstance(answer, dict) or _has_pending_entries(record):
        return record
    return {**record, "flight": msgspec.convert({**answer, "since": account["since"]}, Flight)}


def not_seen(record: Record, answer: Any, now: float) -> Iterator[str]:
    """Why the entries of NCCL's recorder cannot be seen, where they were wanted.

    Args:
        answer: to `question`.
    """
    account = record.get("nccl")
    if account is None or not _is_held(account, now):
        return
    if not account["dump"]:
        yield SET_BY_USER
    elif isinstance(answer, str):
        yield answer


def first_pending(record: Record, common: Waiting) -> list[InCollective]:
    """The oldest collective of each group that NCCL serves and has not completed, oldest first.

    Args:
        common: what the waits of the thread that waits for the device have in common.
    """
    oldest: dict[str | None, InCollective] = {}
    for wait in pending_waits(record, common):
        if serves(record, wait.group):
            oldest.setdefault(wait.group, replace(wait, enqueued=True))
    return [*oldest.values()]


def _has_pending_entries(record: Record) -> bool:
    flight = record["flight"]
    return flight is not None and any(not entry["done"] for entry in flight["entries"])


def _is_held(account: NcclAccount, now: float) -> bool:
    """True where NCCL has something left to do, and has not moved for a while."""
    settled = now - account["since"] >= SETTLED
    return settled and any(_is_pending(account, name) for name in account["groups"])


def _is_pending(account: NcclAccount, name: str) -> bool:
    enqueued, completed = account["groups"].get(name, (0, 0))
    return enqueued != completed
