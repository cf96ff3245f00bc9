"""What could not be seen of a run."""

from __future__ import annotations

from . import interpreter_lock, nccl, no_beacon
from .history import History
from .look import Dump, Failure
from .process_table import Row
from .store import NOT_LISTED

SHOWN_AGE = 3.0
"""Age, in seconds, from which on it is said how old it is what is shown of a process."""


def not_seen(seen: History, now: float) -> tuple[str, ...]:
    """Sentences on what could not be seen of a run so far, and why.

    Args:
        now: monotonic seconds of the newest look.
    """
    environments = (row.environment for row in seen.table.rows.values())
    found = no_beacon.of_attached(environments, recorder=seen.recorder) if seen.attached else []
    found += [no_beacon.EDITED.format(file=file) for file in sorted(seen.sources.edited)]
    found += [NOT_LISTED.format(address=s.address) for s in seen.stores.values() if not s.listed]
    if seen.limit is not None and seen.limit.not_seen:
        found.append(seen.limit.not_seen)
    for pid, row in seen.table.rows.items():
        who = no_beacon.name(row, seen.identities[pid].rank)
        if pid in seen.inbox.beacons:
            record = seen.records[pid]
            asked = nccl.question(record, now)
            found += no_beacon.kept_back(record)
            found += nccl.not_seen(record, seen.answers.get(asked) if asked else None, now)
            faults = record.get("faults", {}).items()
            found += [no_beacon.FAULT.format(who=who, part=part, why=why) for part, why in faults]
            age = _age(seen, row, now)
            if age > SHOWN_AGE:
                found.append(no_beacon.old(who, age, _why_late(seen, row, now)))
        if pid in seen.inbox.beacons or not seen.has_no_beacon(row, now):
            continue
        if not seen.attached:
            begun = pid in seen.inbox.written
            found.append(no_beacon.why(row, who, _failure(seen, pid), begun=begun))
        if row.ended is None:
            read = pid in seen.records and not seen.attached
            dump = seen.ask(Dump(pid))
            problem = dump if isinstance(dump, str) and pid not in seen.records else None
            found += no_beacon.instead(who, read, problem)
    return tuple(dict.fromkeys(found))


def _failure(seen: History, pid: int) -> str:
    """What the beacon of a process said when it could not start, or look."""
    return seen.inbox.failures.get(pid) or seen.ask(Failure(pid)) or ""


def _age(seen: History, row: Row, now: float) -> float:
    """Seconds since what is shown of a live process was so; one that is stopped stays as it is."""
    fresh = row.ended is not None or row.stopped or row.frozen or row.pid in seen.held
    return 0.0 if fresh else now - seen.inbox.written.get(row.pid, now)


def _why_late(seen: History, row: Row, now: float) -> str:
    """Why the beacon of a process has not looked for a while."""
    refusal = seen.answers.get(Dump(row.pid)) if Dump(row.pid) in seen.wanted else None
    if isinstance(refusal, str):
        return refusal
    if row.starved:
        return no_beacon.STARVED
    record, written = seen.records.get(row.pid), seen.inbox.written.get(row.pid)
    held = interpreter_lock.is_held(row, record, written, now, seen.held.get(row.pid))
    return no_beacon.HELD if held else no_beacon.SILENT
