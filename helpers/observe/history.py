"""What has been seen of one run so far."""

from __future__ import annotations

import os
from collections.abc import Mapping
from signal import SIGKILL
from typing import Any

import msgspec

from ..beacon.record import Record
from ..beacon.torch_names import MP_SPAWN
from ..model.facts import LimitView
from ..model.network import Interface, StoreView
from . import debug_server, interpreter_lock, no_beacon, polling, process_view, ranks
from .cells import Cells, files
from .identity import Identity
from .inbox import Inbox
from .look import AnyQuestion, Cell, Dump, Issued, Look, Movement, Store, SystemCall, Threads, Watched
from .outside import Outside
from .process_table import Row, Table
from .source import Sources
from .store import store_view

MOST_WATCHED = 64
"""Threads of a process whose wake-ups are counted: each takes 0.02 ms a look."""


class History:
    """What has been seen of a run so far, brought up to date by each look. No I/O.

    Args:
        watched: what stays the same for the whole run.

    Attributes:
        wanted: what the next look is to find out, once a snapshot has been made of the newest one.
        dumps: what py-spy has read where a beacon cannot run, see `interpreter_lock.is_held`.
        server_pending: whether torch's debug server was asked in the newest look and may yet answer.
    """

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.start = watched.start
        self.table = Table()
        self.inbox = Inbox()
        self.records = self.inbox.records
        self.sources = Sources(watched.cwd, self.ask)
        self.outside = Outside(watched.cwd, watched.host, self.ask)
        self.identities: dict[int, Identity] = {}
        self.ended: float | None = None
        self.limit: LimitView | None = None
        self.kills = 0
        self.stores: dict[str, StoreView] = {}
        self.dumps: dict[int, Record] = {}
        self.interfaces = tuple(Interface(watched.host, *pair) for pair in watched.interfaces)
        self.wanted: set[AnyQuestion] = set()
        self.answers: dict[AnyQuestion, Any] = {}
        self.newest: Look | None = None
        self.server_pending = False
        self._request_time: float | None = None
        self.recorder = False
        self._counts_wakes = False

    def note(self, look: Look) -> None:
        """Take in a look, of which a snapshot may be made: that costs ten times as much."""
        self.newest = look
        self.answers.update(look.answers)
        self.wanted = set()
        self.outside.take(look)
        self.limit = look.limit
        self.inbox.take(look.told)
        self._update_table(look)
        self._look_where_no_beacon_is(look.time)
        self._look_where_no_beacon_can_run(look.time)
        self._update_identities(look.time)
        self.server_pending = self._look_at_recorders(look.time)
        self._name_first()
        if self.limit is not None or any(row.signal == SIGKILL for row in self.table.rows.values()):
            self.kills = look.memory_kills
        for question, answer in look.answers:
            if isinstance(question, Store) and answer is not None:
                address = question.address
                self.stores[address] = store_view(address, self.watched.host, answer)
        self._look_at_threads(look.time)

    def _update_table(self, look: Look) -> None:
        """Bring the process table up to date, and with it when the command has ended."""
        root = self.watched.pid
        if all(usage.pid != root for usage in look.alive):
            self.table.ensure(root, 0, self.watched.command, self.start, look.time)
        for pid, record in self.records.items():
            argv = tuple(record["argv"])
            self.table.ensure(pid, record["ppid"], argv, record["started"], look.time)
        self.table.take(look, self._statuses(look))
        for pid in [pid for pid in self.inbox.beacons if self._has_replaced(pid)]:
            self.inbox.forget(pid)
        root_ended = self.attached and self.table.rows[root].ended is not None
        if self.ended is None and (look.status is not None or root_ended):
            self.ended = look.time - self.start

    def _update_identities(self, now: float) -> None:
        """Take over who each process says it is."""
        for pid, row in self.table.rows.items():
            identity = self.identities.setdefault(pid, Identity(self.watched.host))
            identity.update(self.records.get(pid), row.environment or {}, now, alive=row.ended is None)
            if identity.rank is None and pid in self.inbox.spawned:
                identity.rank = identity.local_rank = self.inbox.spawned[pid]

    def _name_first(self) -> None:
        """Give the program that has started the other ranks its number, where no beacon tells it."""
        if self.inbox.beacons:
            return
        first = ranks.unnamed_first(self.table, self.identities, self.records)
        if first is not None:
            self.identities[first].rank = self.identities[first].local_rank = 0

    @property
    def hurt(self) -> bool:
        """True when a process, whether a rank or not, has failed or has ended in an unknown way."""
        return any(
            row.status or (row.ended is not None and row.status is None)
            for row in self.table.rows.values()
        ) or any(record["error"] is not None for record in self.records.values())

    def written(self, pid: int) -> float | None:
        """Monotonic time at which the record of a process last held; None where that is not told."""
        record = self.records.get(pid)
        if record is not None and record["source"] == "py-spy":
            return record.get("read")
        return self.inbox.written.get(pid)

    def ask(self, question: AnyQuestion) -> Any:
        """The answer that is known, None where there is none; the next look asks again."""
        self.wanted.add(question)
        return self.answers.get(question)

    @property
    def attached(self) -> bool:
        """True for a job that was started without the instrument, and so without beacons."""
        return self.watched.attached

    def _has_replaced(self, pid: int) -> bool:
        """True for a process that runs another program than the one whose beacon has told of it.

        In a container the same program may have another path, but no other name.
        """
        row = self.table.rows[pid]
        now, then = (os.path.basename(exe) for exe in (row.exe, self.records[pid].get("exe", "")))
        return row.ended is None and "" not in (now, then) and now != then

    def _look_where_no_beacon_is(self, now: float) -> None:
        """Have the stacks of processes that have no beacon, and never will, read from outside."""
        for row in self.table.rows.values():
            if row.pid in self.inbox.beacons or not self.has_no_beacon(row, now):
                continue
            dump = self.ask(Dump(row.pid)) if row.ended is None else None
            if not isinstance(dump, dict):
                continue
            self.records[row.pid] = record = self._with_cells(row.pid, _record(dump))
            child = record["process"]
            if child is not None and child["target"] == MP_SPAWN and child["index"] is not None:
                self.inbox.spawned[row.pid] = child["index"]

    def _with_cells(self, pid: int, record: Record) -> Record:
        """What was read from outside, with cells as the beacon, else the notebook's file, names them."""
        if pid not in self.inbox.beacons:
            cells = ((file, self.ask(Cell(pid, file))) for file in sorted(files(record)))
            self.inbox.cells[pid] = Cells({file: cell for file, cell in cells if cell})
        return self.inbox.cells[pid].in_record(record)

    def _look_where_no_beacon_can_run(self, now: float) -> None:
        """Have the stacks of processes in a C call that holds the interpreter lock read from outside.

        Once is enough where the lock is held: as long as the call goes on, no other line is reached.
        """
        for pid in self.inbox.beacons:
            row, record, written = self.table.rows[pid], self.records[pid], self.inbox.written.get(pid)
            row.starved = self._is_starved(pid, now)
            if not interpreter_lock.is_held(row, record, written, now):
                self.dumps.pop(pid, None)
                continue
            if isinstance(dump := self.answers.get(Dump(pid)), dict):
                self.dumps[pid] = self._with_cells(pid, _record(dump))
            outside = self.dumps.get(pid)
            if outside is None or not interpreter_lock.is_held(row, record, written, now, outside):
                self.wanted.add(Dump(pid))

    def _is_starved(self, pid: int, now: float) -> bool:
        """True where the beacon of a process is late because its thread gets no processor."""
        thread = self.records[pid].get("beacon_thread")
        overdue = interpreter_lock.is_late(self.inbox.written.get(pid), now)
        if thread is None or not overdue or self.table.rows[pid].stopped:
            return False
        movement = self.ask(Movement(pid, (thread,)))
        return self._counts_wakes if movement is None else any(runs for _, runs, _ in movement)

    def _look_at_recorders(self, now: float) -> bool:
        """Where the job has started torch's debug server, take in what the ranks have issued.

        Returns: whether it has been asked and may yet answer.
        """
        address = self._debug_server() if self.attached else None
        if address is None:
            return False
        answer = self.ask(Issued(address))
        self._request_time = now if self._request_time is None else self._request_time
        for pid, identity in self.identities.items():
            record, rank = self.records.get(pid), identity.rank
            if answer is None or record is None or rank is None:
                continue
            recorded = debug_server.recorded(record, answer, rank, identity.world_size or 0)
            self.recorder = self.recorder or recorded is not record
            self.records[pid] = recorded
        return answer is None and now - self._request_time < debug_server.ANSWERS

    def _look_at_threads(self, now: float) -> None:
        """Of processes whose main thread stands, take in what each thread does.

        Recordings of an earlier version do not tell how often one was scheduled.
        """
        self._counts_wakes = self._counts_wakes or any(isinstance(q, Movement) for q in self.answers)
        for pid, row in self.table.rows.items():
            record = self.dumps.get(pid) or self.records.get(pid)
            foreign = record is None and pid != self.watched.pid and not row.is_python
            halted = row.stopped or pid in self.dumps  # whatever its main thread does for the lock
            stands = halted or foreign or (record is not None and _stands(record))
            if row.ended is None and stands:
                self._take_movement(row, record, now)
                if foreign:
                    row.native = self.ask(SystemCall(pid))
            else:
                row.threads.clear()
                row.motions.clear()
                row.roused = now if self._counts_wakes else row.roused
                self.answers.pop(Threads(pid), None)

    def _take_movement(self, row: Row, record: Record | None, now: float) -> None:
        """Take in what the threads of a process have used, and how often they were scheduled."""
        if record is not None:
            row.take_threads(now, self.ask(Threads(row.pid)) or ())
        polls = {row.pid: 0.0} if record is None else _polling(record)
        if (movement := self.ask(Movement(row.pid, tuple(sorted(polls))))) is not None:
            row.take_motions(now, movement, polls)

    def _debug_server(self) -> str | None:
        """Where the debug server of the job listens, which is a child of a rank."""
        servers = (pid for pid, record in self.records.items() if debug_server.is_server(record))
        for row in (self.table.rows[pid] for pid in servers):
            rank = self.table.rows.get(row.parent)
            unshared = set(row.sockets) - set(rank.sockets if rank is not None else ())
            return next((f"localhost:{port}" for _, port in sorted(unshared)), None)
        return None

    def has_no_beacon(self, row: Row, now: float) -> bool:
        """True when a process surely has no beacon, or should have had time enough to show it."""
        if not row.is_python or row.is_helper:
            return False
        age = (row.ended or now) - self.start - process_view.started(row, self.start)
        if self.attached or age > process_view.NO_BEACON_AFTER:
            return True
        identity = self.identities.get(row.pid)
        matters = row.pid == self.watched.pid or (identity is not None and identity.rank is not None)
        return matters and no_beacon.is_certain(row)

    def _statuses(self, look: Look) -> dict[int, int]:
        tables = [*(record["reaped"] for record in self.records.values()), look.reaped]
        statuses = {pid: status for table in tables for pid, status in table.items()}
        if look.status is not None:
            statuses[self.watched.pid] = look.status
        return statuses


def _record(dump: Mapping[Any, Any]) -> Record:
    return msgspec.convert(dump, Record, str_keys=True)


def _stands(record: Record) -> bool:
    """True when the main thread of a process has not moved for a moment."""
    main = [thread for thread in record["threads"] if thread["main"]]
    return any(thread["native"] is not None or thread.get("spins") for thread in main)


def _polling(record: Record) -> dict[int, float]:
    """The kernel's id of each thread -> wake-ups a second that are its place's own."""
    main_first = sorted(record["threads"], key=lambda thread: not thread["main"])
    pairs = ((thread.get("native_id"), thread) for thread in main_first[:MOST_WATCHED])
    return {number: polling.wakes(thread) for number, thread in pairs if number is not None}
