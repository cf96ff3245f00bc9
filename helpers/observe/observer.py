"""One run, looked at again and again: each look is a `Snapshot`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import psutil

from ..launch.memory_limit import Enforcer
from ..model.facts import (
    Attempt,
    ChildView,
    Frame,
    Job,
    LimitView,
    Port,
    ProcessView,
    RankView,
    Snapshot,
    State,
)
from . import memory, ranks, tracebacks, waits
from . import no_beacon as blind
from . import process_view as views
from . import store as stores
from .identity import MP_SPAWN, WORKER, Identity, spawned_number
from .outside import Outside
from .process_table import Row, Table
from .pyspy import Dumps
from .records import Inbox


class Running(Protocol):
    """What the observer needs of a `helpers.launch.launch.Launch`."""

    pid: int
    started: float

    @property
    def folder(self) -> Path | None:
        """Where beacons report and output goes; None for a job that was started without them."""

    def poll(self) -> int | None:
        """Wait status of the command, None while it runs."""

    def reaped(self) -> dict[int, int]:
        """Wait status of every process the guardian has waited for."""

    def processes(self) -> list[psutil.Process]:
        """The processes of the run that exist."""


class Observer:
    """Turns a running command into snapshots.

    Args:
        launch: the running command.
        command: its words, as the user gave them.
        cwd: its working directory; files are reported relative to it.
        stdin: `terminal`, `silent` (an open pipe that never delivers) or `other`.
        limit: who limits the memory of the job.
    """

    def __init__(
        self,
        launch: Running,
        command: Sequence[str],
        cwd: Path,
        stdin: str = "silent",
        limit: Enforcer | None = None,
    ) -> None:
        self.launch = launch
        self.command = tuple(command)
        self.cwd = str(cwd.resolve())
        self.stdin = stdin
        self.start = time.monotonic() - (time.time() - launch.started)
        self.table = Table()
        self.dumps = Dumps()
        self.inbox = Inbox(launch.folder)
        self.records = self.inbox.records
        self.outside = Outside(self.cwd)
        self.identities: dict[int, Identity] = {}
        self.enforcer = limit
        self.limit: LimitView | None = None
        self.kernel_kills = memory.Kills(launch.pid)
        self.kills = 0
        self.attempt = 0
        self.ended: float | None = None
        self.store = stores.StoreWatch()

    def sample(self) -> Snapshot:
        """Look once."""
        status = self.launch.poll()
        self.outside.look_at_input(self.launch.pid)
        self.inbox.read()
        alive = self.launch.processes()
        if all(process.pid != self.launch.pid for process in alive):
            self.table.ensure(self.launch.pid, 0, self.command, self.start)
        for pid, record in self.records.items():
            self.table.ensure(pid, record["ppid"], tuple(record["argv"]), record["started"])
        self.table.look(alive, self._statuses(status))
        root = self.table.rows.get(self.launch.pid)
        gone = self.attached and root is not None and root.ended is not None
        if self.ended is None and (status is not None or gone):
            self.ended = time.monotonic() - self.start
        self._look_into_the_blind()
        now = time.monotonic()
        for pid, row in self.table.rows.items():
            identity = self.identities.setdefault(pid, Identity())
            seen, environment = self.records.get(pid), row.environment or {}
            identity.update(seen, environment, now, alive=row.ended is None)
            if identity.rank is None and pid in self.inbox.spawned:
                identity.rank = identity.local_rank = self.inbox.spawned[pid]
        first = (
            None
            if self.inbox.beacons
            else ranks.unnamed_first(self.table, self.identities, self.records)
        )
        if first is not None:
            self.identities[first].rank = self.identities[first].local_rank = 0
        if self.enforcer is not None:
            self.limit = self.enforcer.view()
            self.kills = self.limit.kills
        elif any(row.signal == 9 for row in self.table.rows.values()):
            self.kills = self.kernel_kills.count()
        return self._snapshot(status)

    def close(self) -> None:
        """End what looks on in the background."""
        self.store.close()

    @property
    def attached(self) -> bool:
        """True for a job that was running before anybody looked, without a beacon."""
        return self.launch.folder is None

    def _look_into_the_blind(self) -> None:
        """Read the stacks of processes that have no beacon, and never will have one, from outside."""
        without = [
            row
            for row in self.table.rows.values()
            if row.pid not in self.inbox.beacons and self._no_beacon(row)
        ]
        if not without:
            return
        for pid, record in self.dumps.look(row for row in without if row.ended is None).items():
            if pid in self.inbox.beacons:
                continue
            self.records[pid] = record
            process = record["process"] or {}
            if process.get("target") == MP_SPAWN and process["index"] is not None:
                self.inbox.spawned[pid] = process["index"]

    def _no_beacon(self, row: Row) -> bool:
        """True when a process surely has no beacon, or should have had time enough to show it."""
        if not row.is_python or row.is_helper:
            return False
        age = (row.ended or time.monotonic()) - self.start - views.job_time(row, self.start)
        if self.attached or age > views.NO_BEACON_AFTER:
            return True
        identity = self.identities.get(row.pid)
        matters = row.pid == self.launch.pid or (identity is not None and identity.rank is not None)
        return matters and blind.is_certain(row)

    def _statuses(self, status: int | None) -> dict[int, int]:
        found: dict[int, int] = {}
        for record in self.records.values():
            found.update({int(pid): status for pid, status in record["reaped"].items()})
        found.update(self.launch.reaped())
        if status is not None:
            found[self.launch.pid] = status
        return found

    def _snapshot(self, status: int | None) -> Snapshot:
        now = time.monotonic()
        roles = ranks.assign(self.table, self.identities)
        ranks.tell_ends(self.table, roles)
        of_rank = [self.identities[pid] for rank, pid in roles.ranks.items() if rank >= 0]
        root = self.table.rows.get(self.launch.pid)
        world = max((i.world_size for i in of_rank if i.world_size), default=None)
        counts = (spawned_number(record) for record in self.records.values())
        world = world or max((n for n in counts if n), default=None)
        world = world or len(set(self.inbox.spawned.values())) or None
        single = status is not None and set(roles.ranks) == {-1}
        script_error = self._script_error()
        job = Job(
            command=self.command,
            launcher=ranks.launcher_name(self.table, roles, self.records),
            world_size=1 if single and world is None else world,
            attempt=max((i.attempt for i in of_rank), default=0),
            restarts=min((i.restarts for i in of_rank), default=0),
            exit_code=root.exit_code if root and status is not None else None,
            signal=root.signal if root and status is not None else None,
            ended=self.ended,
            hardware=self._hardware(),
            backends=tuple(sorted({b for i in of_rank for b in i.backends})),
            master=next((i.master for i in of_rank if i.master), None),
            single_node=all(i.single_node for i in of_rank),
            ran=self._ran(),
            script_error=script_error[0],
            script_line=script_error[1],
        )
        views_of_ranks = [
            self._rank(0 if single and rank == -1 else rank, pid, roles, job, now)
            for rank, pid in roles.ranks.items()
            if job.script_error is None
        ]
        absent: State = "missing" if job.single_node else "unseen"
        if self.attached and job.single_node and any(identity.joined for identity in of_rank):
            absent = "exited"  # the group was complete once
        for number in range(job.world_size or 0):
            if number not in roles.ranks and not single and job.script_error is None:
                views_of_ranks.append(RankView(number, state=absent))
        store = self.store.look(views_of_ranks)
        return Snapshot(
            time=now - self.start,
            job=job,
            ranks=tuple(sorted(views_of_ranks, key=_order)),
            launchers=tuple(
                replace(self._view(pid, "launcher", job, now), wraps=roles.wrappers.get(pid))
                for pid in roles.launchers
                if not self.table.rows[pid].is_helper
            ),
            earlier=self._earlier(roles, job, now),
            strangers=tuple(self.outside.strangers.items()),
            memory_kills=self.kills,
            limit=self.limit,
            not_seen=self._not_seen(),
            stdin=self.stdin,
            store_answers=store.reachable if store else None,
            store_ranks=store.joined if store else (),
        )

    def _earlier(self, roles: ranks.Roles, job: Job, now: float) -> tuple[Attempt, ...]:
        """The ranks of attempts before the newest, of which the roles know nothing any more."""
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
        process = self._view(pid, "rank", job, now)
        identity = self.identities[pid]
        return RankView(
            rank=rank if rank >= 0 else None,
            local_rank=identity.local_rank,
            node=identity.node,
            state=process.state,
            process=process,
            children=tuple(self._child(child, roles, job, now) for child in roles.children.get(pid, ())),
            joined=identity.joined,
            master=identity.master,
        )

    def _child(self, pid: int, roles: ranks.Roles, job: Job, now: float) -> ChildView:
        row = self.table.rows[pid]
        process = self.inbox.process(pid)
        worker_id = self.inbox.workers.get(pid)
        if process.get("target") == WORKER:
            worker_id = process.get("index")
        kind = "helper" if row.is_helper else "process"
        if worker_id is not None:
            kind = "dataloader-worker"
        return ChildView(
            process=self._view(pid, kind, job, now),
            worker_id=worker_id,
            joined_as_rank=roles.duplicates.get(pid),
            joined_at=self._joined_at(pid, roles) if pid in roles.duplicates else None,
        )

    def _joined_at(self, pid: int, roles: ranks.Roles) -> Frame | None:
        """The line of the child's own call, else of a rank's: both run the same code."""
        for other in (pid, *roles.ranks.values()):
            entries = self.identities[other].joined_from
            frames = [waits.frame(entry, self.cwd) for entry in entries]
            if frames:
                return waits.innermost_user(frames)
        return None

    def _view(self, pid: int, kind: str, job: Job, now: float) -> ProcessView:
        row = self.table.rows[pid]
        failed = row.ended is not None and row.exit_code != 0
        process = self.inbox.process(pid)
        log = self.inbox.output(pid) if failed else ""
        error_file = process.get("error_file") if failed else None
        found = views.view(
            row,
            self.records.get(pid),
            kind=kind,
            now=now,
            start=self.start,
            cwd=self.cwd,
            written=self.inbox.written.get(pid),
            stacks=self.inbox.crash(pid),
            ports=self._ports(row, job),
            log_tail=log,
            told=tracebacks.pickled_text(error_file) if error_file else "",
        )
        full = self.limit is not None and self.limit.full
        if full and row.ended is None and memory.stands_in_kernel(pid):
            found = replace(found, frozen=True, state="stopped", gil_held=False, waits=())
        return self.outside.complete(found, self.table.rows)

    def _ports(self, row: Row, job: Job) -> list[Port]:
        """What it listens on; for a process that ends, what it ever listened on."""
        ending = row.ended is not None or bool((self.records.get(row.pid) or {}).get("error"))
        sockets = sorted(row.all_sockets) if ending else row.sockets
        store = (job.master or "").rpartition(":")[2]
        joined = self.identities[row.pid].joined
        return [
            Port(address, port, "store" if str(port) == store else "gloo" if joined else "other")
            for address, port in sockets
        ]

    def _hardware(self) -> str:
        used = {record.get("accelerator", "cpu") for record in self.records.values()}
        return "cuda" if "cuda" in used else "cpu"

    def _ran(self) -> bool:
        return any(
            frame[3]
            for record in self.records.values()
            for stack in (
                *(thread["frames"] for thread in record["threads"]),
                (record["error"] or {}).get("frames", ()),
            )
            for frame in stack
        )

    def _script_error(self) -> tuple[str | None, Frame | None]:
        """Why Python could not even start the script, from its own words, and the line."""
        for pid, row in self.table.rows.items():
            if row.ended is None or row.exit_code in (0, None) or not row.is_python:
                continue
            error = (self.records.get(pid) or {}).get("error")
            if error and _does_not_parse(error):
                line = [waits.frame(entry, self.cwd) for entry in error["frames"][:1]]
                return f"{error['type']}: {error['message']}", line[0] if line else None
            match = tracebacks.NO_SCRIPT.search(self.inbox.output(pid)) if not error else None
            if match:
                return match[0], None
        return None, None

    def _not_seen(self) -> tuple[str, ...]:
        found = list(blind.OF_ATTACHED) if self.attached else []
        if self.limit is not None and self.limit.not_seen:
            found.append(self.limit.not_seen)
        for pid, row in self.table.rows.items():
            if pid in self.inbox.beacons:
                found += blind.kept_back(self.records[pid])
            if pid in self.inbox.beacons or not self._no_beacon(row):
                continue
            who = blind.name(row, self.identities[pid].rank)
            if not self.attached:
                found.append(blind.why(row, who, self.inbox.failure(pid)))
            if row.ended is None:
                seen = pid in self.records and not self.attached
                found += blind.instead(who, seen, self.dumps.problem(pid))
        return tuple(dict.fromkeys(found))


def _does_not_parse(error: Mapping[str, Any]) -> bool:
    return error["type"] in ("SyntaxError", "IndentationError", "TabError") and not any(
        frame[3] for frame in error["frames"][1:]
    )


def _order(view: RankView) -> tuple[bool, int]:
    return (view.rank is None, view.rank or 0)
