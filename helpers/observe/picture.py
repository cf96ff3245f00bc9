"""What has been seen of a run -> what is known of it now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..beacon.launch_variables import TEST
from ..beacon.record import Error
from ..beacon.torch_names import DATALOADER_WORKER
from ..launch.processes import is_launcher
from ..model.facts import STILL, Attempt, ChildView, Job, Port, ProcessView, RankView, Snapshot, State
from ..model.frames import Frame, innermost_user
from ..model.samples import Sample
from . import device_reads, libraries, nccl, process_view, ranks, tracebacks
from .cells import Cells
from .compilers import compiling
from .device_calls import with_calls
from .evidence import merge
from .history import History
from .identity import spawned_number, task
from .look import ErrorFile, Look, Output, Printed, Store
from .not_seen import not_seen
from .process_table import Row
from .process_view import Readings
from .rendezvous import rendezvous
from .sampled import from_outside, of_beacon
from .source import Sources, frame_of
from .stillness import with_movement
from .store import addresses_to_look_at
from .thread_ends import ended_threads

KERNEL_CLOCK = 2.0
"""Seconds within which the kernel tells when a process was started."""

MOST_ENDED = 64
"""Processes that have ended well which are kept, besides ranks: a long job starts any number of them."""


class Picture:
    """What is known of a run after a look; it asks for what else would be worth knowing. No I/O.

    Args:
        history: what has been seen so far, the look included.
    """

    def __init__(self, history: History, look: Look) -> None:
        self._history, self._look, self._now = history, look, look.time
        self._rows, self._records = history.table.rows, history.records
        self._identities, self._watched = history.identities, history.watched
        self._roles = ranks.assign(history.table, history.identities, ended=history.ended is not None)
        ranks.tell_ends(history.table, self._roles)
        self._of_rank = [self._identities[pid] for rank, pid in self._roles.ranks.items() if rank >= 0]
        root = history.table.rows.get(history.watched.pid)
        self._part = task((root.environment if root else None) or {})
        world = self._world_size()
        self._unnamed = set(self._roles.ranks) == {-1} and (world is None or look.status is not None)
        self._number, self._world = -1, world
        if self._unnamed:
            self._number, self._world = self._part or (0, world or 1)
        self._job = self._job_of(root)

    def snapshot(self) -> Snapshot:
        """The job with its ranks and launchers."""
        history = self._history
        all_ranks, launchers = self._ranks(), self._launchers()
        self._forget_ended()
        addresses = addresses_to_look_at(all_ranks, launchers)
        for address in addresses:
            history.ask(Store(address))
        return Snapshot(
            time=self._now - history.start,
            job=self._job,
            ranks=all_ranks,
            launchers=launchers,
            earlier=self._earlier(),
            strangers=tuple(history.outside.strangers.items()),
            memory_kills=history.kills,
            limit=history.limit,
            not_seen=not_seen(history, self._now),
            stdin=history.watched.stdin,
            stores=tuple(history.stores.values()),
            interfaces=history.interfaces,
            asked=history.server_pending or not addresses <= history.stores.keys(),
            output=tuple(self._output(all_ranks)),
        )

    def _world_size(self) -> int | None:
        """How many ranks the job has, as far as anything tells."""
        world_size = max((identity.world_size or 0 for identity in self._of_rank), default=0)
        counts = (spawned_number(record) for record in self._records.values())
        spawned = max((number for number in counts if number), default=None)
        return world_size or spawned or len(set(self._history.inbox.spawned.values())) or None

    def _job_of(self, root: Row | None) -> Job:
        """The job, without its ranks.

        Args:
            root: the row of its command.
        """
        of_rank = self._of_rank
        over = root is not None and self._look.status is not None
        error, line = self._script_error()
        return Job(
            command=self._watched.command,
            launcher=ranks.launcher_name(self._history.table, self._roles, self._records),
            world_size=self._world,
            attempt=max((identity.attempt for identity in of_rank), default=0),
            restarts=min((identity.restarts for identity in of_rank), default=0),
            exit_code=root.exit_code if root and over else None,
            signal=root.signal if root and over else None,
            ended=self._history.ended,
            hardware="cuda"
            if any(r["accelerator"] == "cuda" for r in self._records.values())
            else "cpu",
            backends=tuple(sorted({name for identity in of_rank for name in identity.backends})),
            master=next((identity.master for identity in of_rank if identity.master), None),
            single_node=all(identity.single_node for identity in of_rank) and self._part is None,
            script_error=error,
            script_line=line,
            test=self._test(),
        )

    def _test(self) -> str | None:
        """The test that runs the job: as pytest itself has it now, else as the ranks got it.

        A rank that a fixture keeps for several tests still has the name of the first one; where several
        tests run at once (pytest-xdist), the ranks' own is that of the job.
        """
        at_start = {pid: (row.environment or {}).get(TEST) for pid, row in self._rows.items()}
        of_pytest = {
            test
            for pid, record in self._records.items()
            if (test := record["env"].get(TEST)) and test != at_start.get(pid)
        }
        of_ranks = [test for pid in self._roles.ranks.values() if (test := at_start.get(pid))]
        test = next(iter(of_ranks if of_ranks and len(of_pytest) != 1 else of_pytest), None)
        return test.rpartition(" (")[0] or test if test else None

    def _ranks(self) -> tuple[RankView, ...]:
        """Those that were seen, and those that are absent."""
        job = self._job
        views = [
            self._rank(self._number if rank == -1 else rank, pid)
            for rank, pid in self._roles.ranks.items()
            if job.script_error is None
        ]
        absent: State = "missing" if job.single_node else "unseen"
        met_before = any(identity.joined or identity.together for identity in self._of_rank)
        if self._history.attached and job.single_node and met_before:
            absent = "exited"  # all ranks were there once
        complete = (self._unnamed and self._part is None) or job.script_error is not None
        readable = with_calls(libraries.readable(views, self._history.sources))
        return ranks.with_absent(readable, 0 if complete else job.world_size or 0, absent)

    def _output(self, views: Sequence[RankView]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The newest lines of each rank, once all rest: before that, they change all the time."""
        processes = {
            view.rank: view.process
            for view in views
            if view.rank is not None and view.process is not None
        }
        if any(process.alive and process.unmoved < STILL for process in processes.values()):
            return
        for rank, process in processes.items():
            if len(processes) > 1:
                yield rank, tuple(self._history.ask(Printed(process.pid)) or ())

    def _launchers(self) -> tuple[ProcessView, ...]:
        pids = (pid for pid in self._roles.launchers if not self._rows[pid].is_helper)
        return tuple(map(self._launcher, pids))

    def _forget_ended(self) -> None:
        """Forget the oldest of the processes that have ended well and were no ranks."""
        parents = {row.parent for row in self._rows.values() if row.ended is None}
        needed = {self._watched.pid, *self._roles.ranks.values(), *self._roles.duplicates, *parents}
        ended = [
            (row.ended, pid)
            for pid, row in self._rows.items()
            if row.ended is not None and row.status == 0 and pid not in needed
            if self._identities[pid].attempt == self._job.attempt
        ]
        for _, pid in sorted(ended)[:-MOST_ENDED]:
            del self._rows[pid], self._identities[pid]
            self._history.inbox.forget(pid)
            self._history.dumps.pop(pid, None)

    def _launcher(self, pid: int) -> ProcessView:
        view = self._process(pid, "launcher")
        meets = rendezvous(view.command, self._watched.host) if is_launcher(view.command) else None
        return replace(view, wraps=self._roles.wrappers.get(pid), rendezvous=meets)

    def _earlier(self) -> tuple[Attempt, ...]:
        """The ranks of attempts before the newest, which the roles no longer know."""
        attempts = []
        for number in sorted(
            {i.attempt for i in self._identities.values() if i.attempt < self._job.attempt}
        ):
            roles = ranks.assign(self._history.table, self._identities, number)
            views_of_ranks = (
                self._rank(rank, pid)
                for rank, pid in sorted(roles.ranks.items())
                if rank >= 0 and self._rows[pid].ended is not None
            )
            attempts.append(Attempt(number, tuple(views_of_ranks)))
        return tuple(attempt for attempt in attempts if attempt.ranks)

    def _rank(self, rank: int, pid: int) -> RankView:
        process = self._process(pid, "rank")
        identity = self._identities[pid]
        children = tuple(self._child(child) for child in self._roles.children.get(pid, ()))
        alive = (child.process.command for child in children if child.process.alive)
        samples = self._samples(pid, process, children)
        process = replace(process, compiles=compiling(alive), samples=samples)
        return RankView(
            rank=rank if rank >= 0 else None,
            local_rank=identity.local_rank,
            node=identity.node,
            host=self._watched.host,
            state=process.state,
            process=process,
            children=children,
            joined=identity.joined,
            rpc=identity.rpc,
            master=identity.master,
            interface=identity.interface,
        )

    def _samples(
        self, pid: int, process: ProcessView, children: Sequence[ChildView]
    ) -> tuple[Sample, ...]:
        record, cwd, start = self._records.get(pid), self._watched.cwd, self._history.start
        if record is None or record["source"] == "beacon":
            return of_beacon(self._history.inbox.samples.get(pid, ()), children, cwd, start)
        return from_outside(record, process.waits, children, cwd, start)

    def _child(self, pid: int) -> ChildView:
        row = self._rows[pid]
        child = self._history.inbox.child(pid)
        worker_id = self._history.inbox.workers.get(pid)
        if child is not None and child["target"] == DATALOADER_WORKER:
            worker_id = child["index"]
        kind = "helper" if row.is_helper else "process"
        if worker_id is not None:
            kind = "dataloader-worker"
        return ChildView(
            process=self._process(pid, kind),
            worker_id=worker_id,
            joined_as_rank=self._roles.duplicates.get(pid),
            joined_at=self._joined_at(pid) if pid in self._roles.duplicates else None,
        )

    def _joined_at(self, pid: int) -> Frame | None:
        """The line of the child's own call, else of a rank's: both run the same code."""
        for caller in (pid, *self._roles.ranks.values()):
            entries = self._identities[caller].joined_from
            frames = [frame_of(entry, self._watched.cwd) for entry in entries]
            if frames:
                return innermost_user(frames)
        return None

    def _process(self, pid: int, kind: str) -> ProcessView:
        row = self._rows[pid]
        cells = self._history.inbox.cells.get(pid, Cells({}))
        sources = self._history.sources.of(self._started(row), cells.texts)
        readings = self._readings(row, cells, sources)
        evidence = merge(
            process_view.evidence_of(row, readings, self._now, self._history.start, sources)
        )
        view = process_view.with_evidence(
            process_view.of_kernel(row, kind, self._now, self._history.start),
            readings.record,
            evidence,
            sources,
            completed=lambda wait: self._history.outside.completed(wait, pid, self._rows),
            gil_held=readings.gil_held(row, self._now),
        )
        self._history.outside.look_for_strangers(view, self._rows)
        view = replace(view, ports=tuple(self._ports(row)))
        if readings.record is not None:
            ended = ended_threads(readings.record, row, sources.cwd)
            view = replace(view, ended_threads=ended)
        outside = self._history.outside.moved(view.waits, self._rows)
        return with_movement(view, row, evidence, self._now, self._history.start, outside)

    def _readings(self, row: Row, cells: Cells, sources: Sources) -> Readings:
        """What has been read of a process; of one that has failed, more is asked for."""
        ask, failed = self._history.ask, row.ended is not None and row.exit_code != 0
        child, record = self._history.inbox.child(row.pid), self._records.get(row.pid)
        if record is not None and row.ended is None:
            if (entries := nccl.question(record, self._now)) is not None:
                record = nccl.recorded(record, ask(entries))
            if (stack := device_reads.question(record, self._now, sources)) is not None:
                record = device_reads.with_native_stack(record, ask(stack))
        error_file = child["error_file"] if failed and child is not None else None
        return Readings(
            record=record,
            written=self._history.written(row.pid),
            outside=self._history.dumps.get(row.pid),
            crash=cells.in_text(self._history.inbox.stacks.get(row.pid, "")),
            traceback=cells.in_text(ask(ErrorFile(error_file)) or "") if error_file else "",
            log=cells.in_text(ask(Output(row.pid)) or "") if failed else "",
        )

    def _started(self, row: Row) -> float:
        """When a process was started at the latest: the kernel tells that to a second only."""
        record = self._records.get(row.pid)
        if record is not None and record["source"] == "beacon":
            return record["started"]
        return row.started + KERNEL_CLOCK

    def _ports(self, row: Row) -> list[Port]:
        """What it listens on; for a process that ends, what it ever listened on."""
        record = self._records.get(row.pid)
        ending = row.ended is not None or (record is not None and record["error"] is not None)
        sockets = sorted(row.all_sockets) if ending else row.sockets
        store = (self._job.master or "").rpartition(":")[2]
        joined = self._identities[row.pid].joined
        return [
            Port(address, port, "store" if str(port) == store else "gloo" if joined else "other")
            for address, port in sockets
        ]

    def _script_error(self) -> tuple[str | None, Frame | None]:
        """Why Python could not even start the script, from its own words, and the line."""
        for pid, row in self._rows.items():
            if row.ended is None or row.exit_code in (0, None) or not row.is_python:
                continue
            error = self._records[pid]["error"] if pid in self._records else None
            if error is not None and _does_not_parse(error):
                line = [frame_of(entry, self._watched.cwd) for entry in error["frames"][:1]]
                return f"{error['type']}: {error['message']}", line[0] if line else None
            output = self._history.ask(Output(pid)) or "" if error is None else ""
            if match := tracebacks.NO_SCRIPT.search(output):
                return match[0], None
        return None, None


def _does_not_parse(error: Error) -> bool:
    return error["type"] in ("SyntaxError", "IndentationError", "TabError") and not any(
        frame[3] for frame in error["frames"][1:]
    )
