"""What could not be seen of a run."""

from __future__ import annotations

from collections.abc import Iterator

from . import interpreter_lock, nccl, no_beacon
from .history import History
from .look import Dump, Failure
from .process_table import Row
from .store import NOT_LISTED

SHOWN_AGE = 3.0
"""Age, in seconds, from which on it is said how old it is what is shown of a process."""


def not_seen(history: History, now: float) -> tuple[str, ...]:
    """Sentences on what could not be seen of a run so far, and why.

    Args:
        now: monotonic seconds of the newest look.
    """
    rows = history.table.rows.values()
    sentences: list[str] = []
    if history.attached:
        environments = (row.environment for row in rows)
        sentences += no_beacon.of_attached(environments, recorder=history.recorder)
    sentences += [no_beacon.EDITED.format(file=file) for file in sorted(history.sources.edited)]
    stores = history.stores.values()
    sentences += [NOT_LISTED.format(address=store.address) for store in stores if not store.listed]
    if history.limit is not None and history.limit.not_seen:
        sentences.append(history.limit.not_seen)
    for row in rows:
        subject = no_beacon.name(row, history.identities[row.pid].rank)
        if row.pid in history.inbox.beacons:
            sentences += _of_beacon(history, row, subject, now)
        elif history.has_no_beacon(row, now):
            sentences += _without_beacon(history, row, subject)
    return tuple(dict.fromkeys(sentences))


def _of_beacon(history: History, row: Row, subject: str, now: float) -> Iterator[str]:
    """What the beacon of a process could not see.

    Args:
        subject: the process, as a sentence names it.
    """
    record = history.records[row.pid]
    question = nccl.question(record, now)
    yield from no_beacon.kept_back(record)
    yield from nccl.not_seen(record, history.answers.get(question) if question else None, now)
    for part, why in record.get("faults", {}).items():
        yield no_beacon.FAULT.format(subject=subject, part=part, why=why)
    age = _age(history, row, now)
    if age > SHOWN_AGE:
        yield no_beacon.old(subject, age, _why_late(history, row, now))


def _without_beacon(history: History, row: Row, subject: str) -> Iterator[str]:
    """Why a process has no beacon, and how it is seen without one."""
    pid = row.pid
    if not history.attached:
        failure = history.inbox.failures.get(pid) or history.ask(Failure(pid)) or ""
        yield no_beacon.why(row, subject, failure, begun=pid in history.inbox.written)
    if row.ended is None:
        dump = history.ask(Dump(pid))
        problem = dump if isinstance(dump, str) and pid not in history.records else None
        is_read = pid in history.records and not history.attached
        yield from no_beacon.instead(subject, is_read, problem)


def _age(history: History, row: Row, now: float) -> float:
    """Seconds since what is shown of a live process was so; one that is stopped stays as it is."""
    fresh = row.ended is not None or row.stopped or row.frozen or row.pid in history.dumps
    return 0.0 if fresh else now - history.inbox.written.get(row.pid, now)


def _why_late(history: History, row: Row, now: float) -> str:
    """Why the beacon of a process has not looked for a while."""
    refusal = history.answers.get(Dump(row.pid)) if Dump(row.pid) in history.wanted else None
    if isinstance(refusal, str):
        return refusal
    if row.starved:
        return no_beacon.STARVED
    record, written = history.records.get(row.pid), history.inbox.written.get(row.pid)
    lock_is_held = interpreter_lock.is_held(row, record, written, now, history.dumps.get(row.pid))
    return no_beacon.HELD if lock_is_held else no_beacon.SILENT
