"""Looks at one run become snapshots of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from signal import SIGKILL
from typing import Any

import msgspec

from ..beacon.record import Error, Record
from ..beacon.torch_names import DATALOADER_WORKER, MP_SPAWN
from ..launch.processes import is_launcher
from ..model.facts import (
    Attempt,
    ChildView,
    Job,
    LimitView,
    Port,
    ProcessView,
    RankView,
    Snapshot,
    State,
)
from ..model.frames import Frame, innermost_user
from ..model.network import Interface, StoreView
from . import (
    debug_server,
    interpreter_lock,
    libraries,
    no_beacon,
    polling,
    process_view,
    ranks,
    tracebacks,
    waits,
)
from .cells import Cells, files
from .compilers import compiling
from .evidence import merge
from .identity import Identity, spawned_number, task
from .inbox import Inbox
from .look import (
    AnyQuestion,
    Cell,
    Dump,
    ErrorFile,
    Failure,
    Issued,
    Look,
    Movement,
    Output,
    Store,
    SystemCall,
    Threads,
    Watched,
)
from .outside import Outside
from .process_table import Row, Table
from .process_view import Readings
from .rendezvous import rendezvous
from .source import Sources
from .stillness import with_movement
from .store import NOT_LISTED, addresses_to_look_at, store_view

KERNEL_CLOCK = 2.0
"""Seconds within which the kernel tells when a process was started."""

SHOWN_AGE = 3.0
"""Age, in seconds, from which on it is said how old it is what is shown of a process."""

MOST_ENDED = 64
"""Processes that have ended well which are kept, besides ranks: a long job starts any number of them."""

MOST_WATCHED = 64
"""Threads of a process whose wake-ups are counted: each takes 0.02 ms a look."""


class Observer:
    """Makes snapshots of looks: what it has seen so far, brought up to date by each look. No I/O.

    Args:
        watched: what stays the same for the whole run.

    Attributes:
        wanted: what the next look is to find out, once a snapshot has been made of the newest one.
        held: what was read in processes whose beacons cannot run, see `interpreter_lock.is_held`.
    """

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self.start = watched.start
        self.table = Table()
        self.inbox = Inbox()
        self.records = self.inbox.records
        self.sources = Sources(watched.cwd, self._ask)
        self.outside = Outside(watched.cwd, watched.host, self._ask)
        self.identities: dict[int, Identity] = {}
        self.ended: float | None = None
        self.limit: LimitView | None = None
        self.kills = 0
        self.stores: dict[str, StoreView] = {}
        self.held: dict[int, Record] = {}
        self.interfaces = tuple(Interface(watched.host, *one) for one in watched.interfaces)
        self.wanted: set[AnyQuestion] = set()
        self._answers: dict[AnyQuestion, Any] = {}
        self._newest: Look | None = None
        self._asked = False
        self._asked_at: float | None = None
        self._recorder = False
        self._counts_wakes = False

    def take(self, look: Look) -> Snapshot:
        """Take in a look; return everything that is known now."""
        self.note(look)
        return self.snapshot()

    def note(self, look: Look) -> None:
        """Take in a look, of which a snapshot may be made: that costs ten times as much."""
        self._newest = look
        self._answers.update(look.answers)
        self.wanted = set()
        self.outside.take(look)
        self.limit = look.limit
        self.inbox.take(look.told)
        root = self.watched.pid
        if all(usage.pid != root for usage in look.alive):
            self.table.ensure(root, 0, self.watched.command, self.start, look.time)
        for pid, record in self.records.items():
            argv = tuple(record["argv"])
            self.table.ensure(pid, record["ppid"], argv, record["started"], look.time)
        self.table.take(look, self._statuses(look))
        for pid in [pid for pid in self.inbox.beacons if self._has_replaced(pid)]:
            self.inbox.forget(pid)
        gone = self.attached and self.table.rows[root].ended is not None
        if self.ended is None and (look.status is not None or gone):
            self.ended = look.time - self.start
        self._look_where_no_beacon_is(look.time)
        self._look_where_no_beacon_can_run(look.time)
        for pid, row in self.table.rows.items():
            identity = self.identities.setdefault(pid, Identity(self.watched.host))
            seen, environment = self.records.get(pid), row.environment or {}
            identity.update(seen, environment, look.time, alive=row.ended is None)
            if identity.rank is None and pid in self.inbox.spawned:
                identity.rank = identity.local_rank = self.inbox.spawned[pid]
        self._asked = self._look_at_recorders(look.time)
        first = (
            None
            if self.inbox.beacons
            else ranks.unnamed_first(self.table, self.identities, self.records)
        )
        if first is not None:
            self.identities[first].rank = self.identities[first].local_rank = 0
        if self.limit is not None or any(row.signal == SIGKILL for row in self.table.rows.values()):
            self.kills = look.memory_kills
        for question, answer in look.answers:
            if isinstance(question, Store) and answer is not None:
                address = question.address
                self.stores[address] = store_view(address, self.watched.host, answer)
        self._look_at_threads(look.time)

    def snapshot(self) -> Snapshot:
        """Everything that is known after the newest look; answers that nobody needs are forgotten."""
        assert self._newest is not None, "a look comes before a snapshot"
        snapshot = self._snapshot(self._newest)
        self._answers = {
            asked: answer for asked, answer in self._answers.items() if asked in self.wanted
        }
        return snapshot

    @property
    def hurt(self) -> bool:
        """True when a process, whether a rank or not, has failed or has ended in an unknown way."""
        return any(
            row.status or (row.ended is not None and row.status is None)
            for row in self.table.rows.values()
        ) or any(record["error"] is not None for record in self.records.values())

    def _ask(self, question: AnyQuestion) -> Any:
        """The answer that is known, None where there is none; the next look asks again."""
        self.wanted.add(question)
        return self._answers.get(question)

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
            if row.pid in self.inbox.beacons or not self._no_beacon(row, now):
                continue
            dump = self._ask(Dump(row.pid)) if row.ended is None else None
            if not isinstance(dump, dict):
                continue
            self.records[row.pid] = record = self._named(row.pid, _record(dump))
            child = record["process"]
            if child is not None and child["target"] == MP_SPAWN and child["index"] is not None:
                self.inbox.spawned[row.pid] = child["index"]

    def _named(self, pid: int, record: Record) -> Record:
        """What was read from outside, with cells as the beacon, else the notebook's file, names them."""
        if pid not in self.inbox.beacons:
            asked = {file: self._ask(Cell(pid, file)) for file in sorted(files(record))}
            self.inbox.cells[pid] = Cells({file: cell for file, cell in asked.items() if cell})
        return self.inbox.cells[pid].named(record)

    def _look_where_no_beacon_can_run(self, now: float) -> None:
        """Have the stacks of processes in a C call that holds the interpreter lock read from outside.

        Once is enough where the lock is held: as long as the call goes on, no other line is reached.
        """
        for pid in self.inbox.beacons:
            row, record, written = self.table.rows[pid], self.records[pid], self.inbox.written.get(pid)
            row.starved = self._is_starved(pid, now)
            if not interpreter_lock.is_held(row, record, written, now):
                self.held.pop(pid, None)
                continue
            if isinstance(dump := self._answers.get(Dump(pid)), dict):
                self.held[pid] = self._named(pid, _record(dump))
            outside = self.held.get(pid)
            if outside is None or not interpreter_lock.is_held(row, record, written, now, outside):
                self.wanted.add(Dump(pid))

    def _is_starved(self, pid: int, now: float) -> bool:
        """True where the beacon of a process is late because its thread gets no processor."""
        thread = self.records[pid].get("beacon_thread")
        late = interpreter_lock.is_late(self.inbox.written.get(pid), now)
        if thread is None or not late or self.table.rows[pid].stopped:
            return False
        seen = self._ask(Movement(pid, (thread,)))
        return self._counts_wakes if seen is None else any(runs for _, runs, _ in seen)

    def _look_at_recorders(self, now: float) -> bool:
        """Where the job has started torch's debug server, take in what the ranks have issued.

        Returns: whether it has been asked and may yet answer.
        """
        address = self._debug_server() if self.attached else None
        if address is None:
            return False
        told = self._ask(Issued(address))
        self._asked_at = now if self._asked_at is None else self._asked_at
        for pid, identity in self.identities.items():
            record, rank = self.records.get(pid), identity.rank
            if told is None or record is None or rank is None:
                continue
            found = debug_server.recorded(record, told, rank, identity.world_size or 0)
            self._recorder = self._recorder or found is not record
            self.records[pid] = found
        return told is None and now - self._asked_at < debug_server.ANSWERS

    def _look_at_threads(self, now: float) -> None:
        """Of processes whose main thread stands, take in what each thread does.

        Recordings of an earlier version do not tell how often one was scheduled.
        """
        self._counts_wakes = self._counts_wakes or any(isinstance(q, Movement) for q in self._answers)
        for pid, row in self.table.rows.items():
            record = self.held.get(pid) or self.records.get(pid)
            program = record is None and pid != self.watched.pid and not row.is_python
            held = row.stopped or pid in self.held  # whatever its main thread does for the lock
            stands = held or program or (record is not None and _stands(record))
            if row.ended is not None or not stands:
                row.threads.clear()
                row.motions.clear()
                row.roused = now if self._counts_wakes else row.roused
                self._answers.pop(Threads(pid), None)
                continue
            if record is not None:
                row.take_threads(now, self._ask(Threads(pid)) or ())
            if program:
                row.native = self._ask(SystemCall(pid))
            polls = {pid: 0.0} if record is None else _polling(record)
            if (seen := self._ask(Movement(pid, tuple(sorted(polls))))) is not None:
                row.take_motions(now, seen, polls)

    def _debug_server(self) -> str | None:
        """Where the debug server of the job listens, which is a child of a rank."""
        servers = (
            self.table.rows[pid] for pid, seen in self.records.items() if debug_server.is_server(seen)
        )
        for row in servers:
            rank = self.table.rows.get(row.parent)
            own = set(row.sockets) - set(rank.sockets if rank is not None else ())
            return next((f"localhost:{port}" for _, port in sorted(own)), None)
        return None

    def _no_beacon(self, row: Row, now: float) -> bool:
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
        found: dict[int, int] = {}
        for record in self.records.values():
            found.update(record["reaped"])
        found.update(look.reaped)
        if look.status is not None:
            found[self.watched.pid] = look.status
        return found

    def _snapshot(self, look: Look) -> Snapshot:
        now, status = look.time, look.status
        roles = ranks.assign(self.table, self.identities, ended=self.ended is not None)
        ranks.tell_ends(self.table, roles)
        of_rank = [self.identities[pid] for rank, pid in roles.ranks.items() if rank >= 0]
        root = self.table.rows.get(self.watched.pid)
        part = task((root.environment if root else None) or {})
        world = max((i.world_size for i in of_rank if i.world_size), default=None)
        counts = (spawned_number(record) for record in self.records.values())
        world = world or max((n for n in counts if n), default=None)
        world = world or len(set(self.inbox.spawned.values())) or None
        unnamed = set(roles.ranks) == {-1} and (world is None or status is not None)
        single, number = unnamed and part is None, -1
        if unnamed:
            number, world = part or (0, world or 1)
        script_error = self._script_error()
        job = Job(
            command=self.watched.command,
            launcher=ranks.launcher_name(self.table, roles, self.records),
            world_size=world,
            attempt=max((i.attempt for i in of_rank), default=0),
            restarts=min((i.restarts for i in of_rank), default=0),
            exit_code=root.exit_code if root and status is not None else None,
            signal=root.signal if root and status is not None else None,
            ended=self.ended,
            hardware=self._hardware(),
            backends=tuple(sorted({b for i in of_rank for b in i.backends})),
            master=next((i.master for i in of_rank if i.master), None),
            single_node=all(i.single_node for i in of_rank) and part is None,
            script_error=script_error[0],
            script_line=script_error[1],
        )
        views_of_ranks = [
            self._rank(number if rank == -1 else rank, pid, roles, job, now)
            for rank, pid in roles.ranks.items()
            if job.script_error is None
        ]
        absent: State = "missing" if job.single_node else "unseen"
        if self.attached and job.single_node and any(one.joined or one.together for one in of_rank):
            absent = "exited"  # all ranks were there once
        complete = single or job.script_error is not None
        readable = libraries.readable(views_of_ranks, self.sources)
        all_ranks = ranks.with_absent(readable, 0 if complete else world or 0, absent)
        launchers = tuple(
            self._launcher(pid, roles, job, now)
            for pid in roles.launchers
            if not self.table.rows[pid].is_helper
        )
        self._forget_ended(roles, job)
        addresses = addresses_to_look_at(all_ranks, launchers)
        for address in addresses:
            self._ask(Store(address))
        return Snapshot(
            time=now - self.start,
            job=job,
            ranks=all_ranks,
            launchers=launchers,
            earlier=self._earlier(roles, job, now),
            strangers=tuple(self.outside.strangers.items()),
            memory_kills=self.kills,
            limit=self.limit,
            not_seen=self._not_seen(now),
            stdin=self.watched.stdin,
            stores=tuple(self.stores.values()),
            interfaces=self.interfaces,
            asked=self._asked or not addresses <= self.stores.keys(),
        )

    def _forget_ended(self, roles: ranks.Roles, job: Job) -> None:
        """Forget the oldest of the processes that have ended well and were no ranks."""
        parents = {row.parent for row in self.table.rows.values() if row.ended is None}
        kept = {self.watched.pid, *roles.ranks.values(), *roles.duplicates, *parents}
        ended = [
            (row.ended, pid)
            for pid, row in self.table.rows.items()
            if row.ended is not None and row.status == 0 and pid not in kept
            if self.identities[pid].attempt == job.attempt
        ]
        for _, pid in sorted(ended)[:-MOST_ENDED]:
            del self.table.rows[pid], self.identities[pid]
            self.inbox.forget(pid)
            self.held.pop(pid, None)

    def _launcher(self, pid: int, roles: ranks.Roles, job: Job, now: float) -> ProcessView:
        found = self._process(pid, "launcher", job, now)
        meets = rendezvous(found.command, self.watched.host) if is_launcher(found.command) else None
        return replace(found, wraps=roles.wrappers.get(pid), rendezvous=meets)

    def _earlier(self, roles: ranks.Roles, job: Job, now: float) -> tuple[Attempt, ...]:
        """The ranks of attempts before the newest, which the roles no longer know."""
        found = []
        for number in sorted({i.attempt for i in self.identities.values() if i.attempt < job.attempt}):
            then = ranks.assign(self.table, self.identities, number)
            views_of_ranks = (
                self._rank(rank, pid, roles, job, now)
                for rank, pid in sorted(then.ranks.items())
                if rank >= 0 and self.table.rows[pid].ended is not None
            )
            found.append(Attempt(number, tuple(views_of_ranks)))
        return tuple(attempt for attempt in found if attempt.ranks)

    def _rank(self, rank: int, pid: int, roles: ranks.Roles, job: Job, now: float) -> RankView:
        process = self._process(pid, "rank", job, now)
        identity = self.identities[pid]
        children = tuple(self._child(child, roles, job, now) for child in roles.children.get(pid, ()))
        alive = (child.process.command for child in children if child.process.alive)
        process = replace(process, compiles=compiling(alive))
        return RankView(
            rank=rank if rank >= 0 else None,
            local_rank=identity.local_rank,
            node=identity.node,
            host=self.watched.host,
            state=process.state,
            process=process,
            children=children,
            joined=identity.joined,
            rpc=identity.rpc,
            master=identity.master,
            interface=identity.interface,
        )

    def _child(self, pid: int, roles: ranks.Roles, job: Job, now: float) -> ChildView:
        row = self.table.rows[pid]
        made = self.inbox.child(pid)
        worker_id = self.inbox.workers.get(pid)
        if made is not None and made["target"] == DATALOADER_WORKER:
            worker_id = made["index"]
        kind = "helper" if row.is_helper else "process"
        if worker_id is not None:
            kind = "dataloader-worker"
        return ChildView(
            process=self._process(pid, kind, job, now),
            worker_id=worker_id,
            joined_as_rank=roles.duplicates.get(pid),
            joined_at=self._joined_at(pid, roles) if pid in roles.duplicates else None,
        )

    def _joined_at(self, pid: int, roles: ranks.Roles) -> Frame | None:
        """The line of the child's own call, else of a rank's: both run the same code."""
        for other in (pid, *roles.ranks.values()):
            entries = self.identities[other].joined_from
            frames = [waits.frame(entry, self.watched.cwd) for entry in entries]
            if frames:
                return innermost_user(frames)
        return None

    def _process(self, pid: int, kind: str, job: Job, now: float) -> ProcessView:
        row = self.table.rows[pid]
        cells = self.inbox.cells.get(pid, Cells({}))
        sources = self.sources.of(self._started(row), cells.texts)
        readings = self._readings(row, cells)
        evidence = merge(process_view.evidence_of(row, readings, now, self.start, sources))
        view = process_view.with_evidence(
            process_view.of_kernel(row, kind, now, self.start),
            readings.record,
            evidence,
            sources,
            completed=lambda wait: self.outside.completed(wait, pid, self.table.rows),
            held=readings.held(row, now),
        )
        self.outside.look_for_strangers(view, self.table.rows)
        view = replace(view, ports=tuple(self._ports(row, job)))
        outside = self.outside.moved(view.waits, self.table.rows)
        return with_movement(view, row, evidence, now, self.start, outside)

    def _readings(self, row: Row, cells: Cells) -> Readings:
        """What has been read of a process; of one that has failed, more is asked for."""
        failed = row.ended is not None and row.exit_code != 0
        made = self.inbox.child(row.pid)
        error_file = made["error_file"] if failed and made is not None else None
        return Readings(
            record=self.records.get(row.pid),
            written=self.inbox.written.get(row.pid),
            outside=self.held.get(row.pid),
            crash=cells.in_text(self.inbox.stacks.get(row.pid, "")),
            traceback=cells.in_text(self._ask(ErrorFile(error_file)) or "") if error_file else "",
            log=cells.in_text(self._ask(Output(row.pid)) or "") if failed else "",
        )

    def _started(self, row: Row) -> float:
        """When a process was started at the latest: the kernel tells that to a second only."""
        record = self.records.get(row.pid)
        if record is not None and record["source"] == "beacon":
            return record["started"]
        return row.started + KERNEL_CLOCK

    def _ports(self, row: Row, job: Job) -> list[Port]:
        """What it listens on; for a process that ends, what it ever listened on."""
        record = self.records.get(row.pid)
        ending = row.ended is not None or (record is not None and record["error"] is not None)
        sockets = sorted(row.all_sockets) if ending else row.sockets
        store = (job.master or "").rpartition(":")[2]
        joined = self.identities[row.pid].joined
        return [
            Port(address, port, "store" if str(port) == store else "gloo" if joined else "other")
            for address, port in sockets
        ]

    def _hardware(self) -> str:
        used = {record["accelerator"] for record in self.records.values()}
        return "cuda" if "cuda" in used else "cpu"

    def _script_error(self) -> tuple[str | None, Frame | None]:
        """Why Python could not even start the script, from its own words, and the line."""
        for pid, row in self.table.rows.items():
            if row.ended is None or row.exit_code in (0, None) or not row.is_python:
                continue
            error = self.records[pid]["error"] if pid in self.records else None
            if error is not None and _does_not_parse(error):
                line = [waits.frame(entry, self.watched.cwd) for entry in error["frames"][:1]]
                return f"{error['type']}: {error['message']}", line[0] if line else None
            match = tracebacks.NO_SCRIPT.search(self._ask(Output(pid)) or "") if error is None else None
            if match:
                return match[0], None
        return None, None

    def _failure(self, pid: int) -> str:
        """What the beacon of a process said when it could not start, or look."""
        return self.inbox.failures.get(pid) or self._ask(Failure(pid)) or ""

    def _age(self, row: Row, now: float) -> float:
        """Seconds since what is shown of a live process was so; one that is stopped stays as it is."""
        fresh = row.ended is not None or row.stopped or row.frozen or row.pid in self.held
        return 0.0 if fresh else now - self.inbox.written.get(row.pid, now)

    def _why_late(self, row: Row, now: float) -> str:
        """Why the beacon of a process has not looked for a while."""
        refusal = self._answers.get(Dump(row.pid)) if Dump(row.pid) in self.wanted else None
        if isinstance(refusal, str):
            return refusal
        if row.starved:
            return no_beacon.STARVED
        record, written = self.records.get(row.pid), self.inbox.written.get(row.pid)
        held = interpreter_lock.is_held(row, record, written, now, self.held.get(row.pid))
        return no_beacon.HELD if held else no_beacon.SILENT

    def _not_seen(self, now: float) -> tuple[str, ...]:
        environments = (row.environment for row in self.table.rows.values())
        found = no_beacon.of_attached(environments, recorder=self._recorder) if self.attached else []
        found += [no_beacon.EDITED.format(file=file) for file in sorted(self.sources.edited)]
        found += [NOT_LISTED.format(address=s.address) for s in self.stores.values() if not s.listed]
        if self.limit is not None and self.limit.not_seen:
            found.append(self.limit.not_seen)
        for pid, row in self.table.rows.items():
            who = no_beacon.name(row, self.identities[pid].rank)
            if pid in self.inbox.beacons:
                found += no_beacon.kept_back(self.records[pid])
                faults = self.records[pid].get("faults", {}).items()
                found += [no_beacon.FAULT.format(who=who, part=part, why=why) for part, why in faults]
                age = self._age(row, now)
                if age > SHOWN_AGE:
                    found.append(no_beacon.old(who, age, self._why_late(row, now)))
            if pid in self.inbox.beacons or not self._no_beacon(row, now):
                continue
            if not self.attached:
                begun = pid in self.inbox.written
                found.append(no_beacon.why(row, who, self._failure(pid), begun=begun))
            if row.ended is None:
                seen = pid in self.records and not self.attached
                dump = self._ask(Dump(pid))
                problem = dump if isinstance(dump, str) and pid not in self.records else None
                found += no_beacon.instead(who, seen, problem)
        return tuple(dict.fromkeys(found))


def _record(dump: Mapping[Any, Any]) -> Record:
    return msgspec.convert(dump, Record, str_keys=True)


def _does_not_parse(error: Error) -> bool:
    return error["type"] in ("SyntaxError", "IndentationError", "TabError") and not any(
        frame[3] for frame in error["frames"][1:]
    )


def _stands(record: Record) -> bool:
    """True when the main thread of a process has not moved for a moment."""
    return any(thread["main"] and thread["native"] is not None for thread in record["threads"])


def _polling(record: Record) -> dict[int, float]:
    """The kernel's id of each thread -> wake-ups a second that are its place's own."""
    main_first = sorted(record["threads"], key=lambda thread: not thread["main"])
    found = ((thread.get("native_id"), thread) for thread in main_first[:MOST_WATCHED])
    return {number: polling.wakes(thread) for number, thread in found if number is not None}
