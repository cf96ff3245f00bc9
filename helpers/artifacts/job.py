"""What files tell of the processes of a job -> a snapshot of the job as it was. No I/O."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from msgspec.structs import replace

from ..beacon.membership import MOST_RANKS
from ..beacon.record import Call, Flight, Group, Record, Thread
from ..model.facts import UNTOLD, ChildView, Job, ProcessView, RankView, Snapshot
from ..observe import libraries, pyspy_record
from ..observe.account import Account
from ..observe.ends import own_error
from ..observe.evidence import Evidence, Source, merge
from ..observe.judged_thread import judged
from ..observe.process_view import with_evidence
from ..observe.source import Sources
from . import gdb_text, pyspy_dump, rest, whose

T = TypeVar("T")

PAIR = 2
"""Ranks of the smallest job in which one can wait for another."""

NOBODY = -1
"""The number of a process that is no rank."""

TAKEN = 3600.0
"""When all of it was seen, in seconds of a clock of its own: files tell no time that ranks share."""


def snapshot(accounts: Iterable[Account], sources: Sources, output: Iterable[Account] = ()) -> Snapshot:
    """The job, one rank for each number that a file tells of or that a group needs.

    Args:
        accounts: of all its processes; a rank may have several.
        sources: of the program, where it can be read.
        output: what ranks have printed.
    """
    placed = whose.placed(accounts, sources)
    by_rank = _by_rank(placed)
    rank_accounts = list(itertools.chain.from_iterable(by_rank.values()))
    sizes = (account.world_size or 0 for account in rank_accounts)
    world = max((size for size in sizes if 0 < size <= MOST_RANKS), default=None)
    views = _ranks(by_rank, world, sources, timed_out=any(account.timed_out for account in placed))
    return Snapshot(
        time=TAKEN,
        job=_job(rank_accounts, world, failed=any(account.has_failed for account in placed)),
        ranks=(*libraries.readable(views, sources), *_without_rank(placed, sources)),
        memory_kills=sum(account.memory_kills for account in placed),
        warned=_distinct(account.warned for account in placed),
        masked=_distinct(account.masked for account in placed),
        absent=tuple(sorted(_distinct(account.absent for account in placed))),
        doubled=tuple(sorted(_distinct(account.doubled for account in placed))),
        locks=tuple(
            dict.fromkeys((account.rank, account.lock) for account in placed if account.lock is not None)
        ),
        ended_by=next((account.ended_by for account in placed if account.ended_by), ""),
        timed=False,
        output=tuple((account.rank, account.output) for account in output if account.rank is not None),
    )


def _distinct(rows: Iterable[Iterable[T]]) -> tuple[T, ...]:
    """What several accounts tell, once each, in their order."""
    return tuple(dict.fromkeys(itertools.chain.from_iterable(rows)))


def _ranks(
    by_rank: Mapping[int, Sequence[Account]], world: int | None, sources: Sources, *, timed_out: bool
) -> list[RankView]:
    """Each rank that a file tells of or that a group needs; at work where none is stuck.

    Whoever looks into a process by gdb has found it to be stuck.

    Args:
        by_rank: what is told of each rank.
        timed_out: whether a call of some rank has run into its time limit.
    """
    members = _members(by_rank, world)
    needed = range(max(world or 0, *by_rank, *map(max, members.values()), 0))
    views = [
        _view(rank, by_rank[rank], members, world, sources)
        if rank in by_rank
        else RankView(rank, state="unseen")
        for rank in sorted({*by_rank, *needed})
    ]
    stuck = any(view.process is not None and view.process.blocking for view in views)
    if stuck or timed_out:
        return views
    looked_into = {
        rank
        for rank, accounts in by_rank.items()
        if any(account.kind == gdb_text.KIND for account in accounts)
    }
    return [view if view.rank in looked_into else _at_work(view) for view in views]


def _job(accounts: Sequence[Account], world: int | None, *, failed: bool) -> Job:
    """The job, of which no file tells how it was started.

    Args:
        accounts: of its ranks.
        failed: whether any process ended badly.
    """
    backends = {group["backend"] for account in accounts for group in account.groups if group["backend"]}
    return Job(
        command=(),
        launcher="",
        world_size=world,
        nodes_seen=len({account.host for account in accounts if account.host}) or 1,
        hardware="cuda" if "nccl" in backends else "cpu" if backends else "",
        backends=tuple(sorted(backends)),
        exit_code=next((account.exit_code for account in accounts if account.exit_code), None),
        ended=TAKEN if failed else None,
        single_node=False,
    )


def _is_seen(account: Account) -> bool:
    """True for a process, and not what a log says of the job."""
    waits = account.timed_out or (bool(account.threads) and not whose.is_helper(account))
    return waits or account.has_failed


def _without_rank(accounts: Iterable[Account], sources: Sources) -> Iterator[RankView]:
    """Processes of which no file tells the rank."""
    nameless = (account for account in accounts if account.rank is None and _is_seen(account))
    for number, account in enumerate(nameless):
        process = _process(-1 - number, [account], {}, None, sources)
        yield RankView(None, host=account.host, state=process.state, process=process)


def _by_rank(accounts: Iterable[Account]) -> dict[int, list[Account]]:
    """Rank -> what is told of it."""
    by_rank: dict[int, list[Account]] = {}
    for account in accounts:
        if account.rank is not None and 0 <= account.rank < MOST_RANKS:
            by_rank.setdefault(account.rank, []).append(account)
    return by_rank


def _members(by_rank: Mapping[int, Sequence[Account]], world: int | None) -> dict[str, list[int]]:
    """Id of each group -> its members: as told, else the ranks that have issued something in it."""
    members: dict[str, list[int]] = {}
    used: dict[str, set[int]] = {}
    for rank, accounts in by_rank.items():
        for group in (group for account in accounts for group in account.groups):
            used.setdefault(group["id"], set()).add(rank)
            if _is_valid(group["ranks"]):
                members[group["id"]] = group["ranks"]
            elif group["name"] == "default":
                used[group["id"]].update(range(world or 0), by_rank)
    if world == PAIR or (world is None and {*by_rank} == {*range(PAIR)}):
        used = {name: set(range(PAIR)) for name in used}  # a group of one waits for nobody
    return {name: members.get(name) or sorted(ranks) for name, ranks in used.items()}


def _is_valid(ranks: Sequence[int]) -> bool:
    """True for the ranks of a group that a file tells, and that a job can have."""
    return bool(ranks) and min(ranks) >= 0 and max(ranks) < MOST_RANKS


def _view(
    rank: int,
    accounts: Sequence[Account],
    members: Mapping[str, list[int]],
    world: int | None,
    sources: Sources,
) -> RankView:
    accounts, child_accounts = whose.split_children(accounts, sources)
    process = _process(rank, accounts, members, world, sources)
    children = (_child(child, sources) for child in child_accounts)
    return RankView(
        rank,
        local_rank=next(
            (account.local_rank for account in accounts if account.local_rank is not None), None
        ),
        host=next((account.host for account in accounts if account.host), ""),
        state=process.state,
        process=process,
        children=tuple(children),
        joined=bool(process.groups),
        master=next((account.master for account in accounts if account.master), None),
    )


def _child(account: Account, sources: Sources) -> ChildView:
    kind = "dataloader-worker" if account.worker else "process"
    process = _process(NOBODY, [account], {}, None, sources)
    return ChildView(replace(process, kind=kind), worker_id=account.worker_id)


def _process(
    rank: int,
    accounts: Sequence[Account],
    members: Mapping[str, list[int]],
    world: int | None,
    sources: Sources,
) -> ProcessView:
    record = _record(rank, accounts, members, world, sources)
    ended = next((account for account in accounts if _has_ended(account, accounts)), None)
    pid = next((account.pid for account in accounts if account.pid is not None), None)
    view = ProcessView(
        pid=-1 - abs(rank) if pid is None else pid,
        kind="rank",
        state="running" if ended is None else "exited",
        still=UNTOLD,
        idle=0.0 if any(account.busy for account in accounts) else UNTOLD,
        woken=UNTOLD,
        ended=None if ended is None else float(ended.ended_at or TAKEN),
        signal=None if ended is None else ended.signal,
        exit_code=None if ended is None else ended.exit_code,
    )
    place = judged(record, TAKEN, sources, alive=ended is None)
    error = own_error(record, sources, start=0.0)
    merged = merge([place or Evidence(Source.RECORD, TAKEN, since=0.0), *error])
    return with_evidence(view, record, merged, sources)


def _has_ended(account: Account, accounts: Sequence[Account]) -> bool:
    """True where a file tells of a process's end, and no later one shows that it runs.

    What was written before the stacks were dumped is about an attempt before that.
    """
    dumps = (account.written or 0.0 for account in accounts if account.kind == pyspy_dump.KIND)
    return account.has_failed and max(dumps, default=0.0) < (account.written or math.inf)


def _at_work(view: RankView) -> RankView:
    """A rank of which nothing shows that it has stopped."""
    process = view.process
    if process is None or process.stack:
        return view
    return replace(view, process=replace(process, still=0.0, idle=0.0))


def _record(
    rank: int,
    accounts: Sequence[Account],
    members: Mapping[str, list[int]],
    world: int | None,
    sources: Sources,
) -> Record:
    newest = _newest(accounts)
    errors = (account.error for account in accounts if account.error and _has_ended(account, accounts))
    groups: list[Group] = [
        {**group, "ranks": members[group["id"]], "guessed": not group["ranks"]}
        for group in {group["id"]: group for account in accounts for group in account.groups}.values()
    ]
    return {
        **pyspy_record.blank(),
        "threads": _threads(accounts, sources),
        "dist": {"rank": rank, "world_size": world or 0, "groups": groups, "made": None}
        if groups
        else None,
        "flight": _begun(newest) if newest is not None else None,
        "error": next(errors, None),
    }


def _newest(accounts: Sequence[Account]) -> Flight | None:
    """The newest of a rank's dumps."""
    dumps = (account.flight for account in accounts if account.flight is not None)
    return max(dumps, key=lambda flight: flight["since"], default=None)


def _begun(newest: Flight) -> Flight:
    """A dump, its entries up to the oldest of each group that is pending.

    Operations of a group are carried out one after the other: those behind it have not begun.
    """
    pending: dict[str, int] = {}
    for entry in newest["entries"]:
        if not entry["done"]:
            pending.setdefault(entry["group"], entry["seq"])
    reached = [
        entry for entry in newest["entries"] if entry["seq"] <= pending.get(entry["group"], entry["seq"])
    ]
    return {**newest, "since": 0.0, "entries": reached}


def _threads(accounts: Sequence[Account], sources: Sources) -> list[Thread]:
    """The threads as they were seen at rest, in the calls that they, or the Flight Recorder, tell of.

    What the recorder has as pending is what the main thread waits for, whatever its state is called: in
    the operation in which it stands, at the line that has issued it, or at rest in nothing else that is
    known. With NCCL the device waits for it, at whatever line its process is.
    """
    dumped = [account for account in accounts if account.threads]
    stacks = next((account.threads for account in dumped if account.flight is None), ())
    issued = next((account.threads for account in dumped if account.flight is not None), ())
    if not stacks:
        return [_at_rest(thread, sources) for thread in issued]
    busy = any(account.busy for account in accounts)
    in_calls = [
        _in_call(
            thread, _pending_call(thread, issued, accounts, rests=not busy and _rests(thread, sources))
        )
        for thread in stacks
    ]
    working = [thread["main"] and busy and not _in_group(thread["call"]) for thread in in_calls]
    return [
        thread if works else _at_rest(thread, sources)
        for thread, works in zip(in_calls, working, strict=True)
    ]


def _in_call(thread: Thread, call: Call | None) -> Thread:
    return {**thread, "call": call}


def _rests(thread: Thread, sources: Sources) -> bool:
    """True for a thread that is in nothing but, perhaps, the wait for a handle."""
    native = thread["native"] or rest.native_call(thread, sources)
    return native["call"] in (rest.UNKNOWN, "futex")


def _pending_call(
    thread: Thread, issued: Sequence[Thread], accounts: Sequence[Account], *, rests: bool
) -> Call | None:
    """The call in which a thread is, with its group where it is the main one and the recorder tells.

    Args:
        rests: whether the thread is in nothing else, as far as it shows.
    """
    call = thread["call"]
    if not thread["main"] or _in_group(call) or (call is not None and call["kind"] != "collective"):
        return call
    at_line = [entry["call"] for entry in issued if _same_line(_line(entry), _line(thread))]
    if call is None:
        nccl = any(group["backend"] == "nccl" for account in accounts for group in account.groups)
        return next(iter(at_line or (entry["call"] for entry in issued if nccl or rests)), None)
    same = [
        entry["call"]
        for entry in issued
        if entry["call"] is not None and entry["call"]["op"] == call["op"]
    ]
    return next(iter([*at_line, *same]), None) or _of_entry(call, accounts)


def _of_entry(call: Call, accounts: Sequence[Account]) -> Call:
    """A call with the group of the only pending entry of its operation, behind others of its rank."""
    flight = _newest(accounts)
    groups = {group["id"]: group for account in accounts for group in account.groups}
    entries = flight["entries"] if flight is not None else []
    pending = [entry for entry in entries if not entry["done"] and entry["op"] == call["op"]]
    if len(pending) != 1 or pending[0]["group"] not in groups:
        return call
    group = groups[pending[0]["group"]]
    return {**call, "group": group["name"], "ranks": group["ranks"], "sizes": pending[0]["sizes"]}


def _in_group(call: Call | None) -> bool:
    """True for a collective of which the group is told, and for no other call."""
    return call is not None and call["kind"] == "collective" and call["group"] is not None


def _at_rest(thread: Thread, sources: Sources) -> Thread:
    """A thread with the system call in which it rests: as its dump tells, else as its line does."""
    return {**thread, "native": thread["native"] or rest.native_call(thread, sources)}


def _line(thread: Thread) -> tuple[str, int] | None:
    return next(((file, line) for file, line, _, user in thread["frames"] if user), None)


def _same_line(first: tuple[str, int] | None, second: tuple[str, int] | None) -> bool:
    """True for one line, of which a dump may have the end of the file's name alone."""
    if first is None or second is None or first[1] != second[1]:
        return False
    short, long = sorted((first[0], second[0]), key=len)
    return short == long or long.endswith(os.sep + short)
