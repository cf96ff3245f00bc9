"""Which process is which rank: from process groups, launch variables and descent."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .table import Row, Table

LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
MP_SPAWN = "torch.multiprocessing.spawn._wrap"
WORKER = "torch.utils.data._utils.worker._worker_loop"

_LAUNCHERS = (
    (re.compile(r"(^|/)torchrun$|torch[./]distributed[./](run|launch)"), "torchrun"),
    (re.compile(r"(^|/)accelerate(-launch)?$|accelerate[./]commands"), "accelerate"),
    (re.compile(r"(^|/)deepspeed$"), "deepspeed"),
)


@dataclass
class Identity:
    """Who a process says it is; the newest known value of each is kept.

    Attributes:
        rank: its global rank.
        restarts: how often its launcher may still start all ranks anew.
        joined: True once it has (or had) a process group as that rank.
        joining: True while it is in `init_process_group` as that rank.
        joined_from: the stack of that call, in the form of a beacon record.
    """

    rank: int | None = None
    local_rank: int | None = None
    node: int = 0
    world_size: int | None = None
    attempt: int = 0
    restarts: int = 0
    master: str | None = None
    joined: bool = False
    joining: bool = False
    backends: tuple[str, ...] = ()
    single_node: bool = True
    joined_from: Sequence[Sequence[Any]] = ()

    def update(self, record: Mapping[str, Any] | None, environment: Mapping[str, str]) -> None:
        """Take over what the newest record and the environment tell."""
        env = record["env"] if record else environment
        self.attempt = _int(env.get("TORCHELASTIC_RESTART_COUNT")) or 0
        self.restarts = max(0, (_int(env.get("TORCHELASTIC_MAX_RESTARTS")) or 0) - self.attempt)
        self.node = _int(env.get("GROUP_RANK", env.get("NODE_RANK"))) or 0
        if env.get("MASTER_PORT"):
            self.master = f"{env.get('MASTER_ADDR', 'localhost')}:{env['MASTER_PORT']}"
        if _int(env.get("LOCAL_RANK")) is not None:
            self.local_rank = _int(env.get("LOCAL_RANK"))
        self.world_size = _int(env.get("WORLD_SIZE")) or self.world_size
        self._from_environment(env)
        if record is None:
            return
        self.joined |= _stands_in_a_group(record)
        process = record.get("process") or {}
        if self.rank is None and process.get("target") == MP_SPAWN:
            self.rank = self.local_rank = process.get("index")
        thread = rendezvous_thread(record)
        self.joining = thread is not None
        if thread is not None:
            call, self.joined_from = thread["call"], thread["frames"]
            if call.get("rank") is not None:
                self.rank = call["rank"]
            self.world_size = call.get("world_size") or self.world_size
            self._from_method(str(call.get("key") or ""))
        self.joined_from = record.get("joining") or self.joined_from
        groups = record.get("dist")
        if groups:
            self.rank, self.world_size = groups["rank"], groups["world_size"]
            self.joined = True
            self.backends = tuple(sorted({group["backend"] for group in groups["groups"]}))

    def _from_environment(self, env: Mapping[str, str]) -> None:
        if not self.joined and _int(env.get("RANK")) is not None:
            self.rank = _int(env.get("RANK"))
        elif not self.joined and self.rank is None and self.local_rank is not None:
            self.rank = self.local_rank
        local_world = _int(env.get("LOCAL_WORLD_SIZE"))
        nodes = _int(env.get("GROUP_WORLD_SIZE"))
        world = _int(env.get("WORLD_SIZE"))
        address = env.get("MASTER_ADDR", "localhost")
        if nodes is not None:
            self.single_node = nodes == 1
        elif local_world is not None and world is not None:
            self.single_node = local_world >= world
        else:
            self.single_node = address in (*LOOPBACK, socket.gethostname())

    def _from_method(self, method: str) -> None:
        match = re.match(r"tcp://(\[[^\]]+\]|[^/:]+):(\d+)", method)
        if match:
            self.master = f"{match[1]}:{match[2]}"
            self.single_node = match[1] in (*LOOPBACK, socket.gethostname())


def rendezvous_thread(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The thread of the process that stands in `init_process_group`."""
    for thread in record.get("threads", ()):
        call = thread.get("call")
        if call and call["kind"] == "rendezvous":
            return dict(thread)
    return None


def spawned_number(record: Mapping[str, Any]) -> int | None:
    """How many processes the caller of `mp.spawn` waits for, where its stack has been read."""
    calls = (thread.get("call") or {} for thread in record.get("threads", ()))
    return next((call.get("world_size") for call in calls if call.get("op") == "mp.spawn"), None)


def unnamed_first(
    table: Table, identities: Mapping[int, Identity], records: Mapping[int, Mapping[str, Any]]
) -> int | None:
    """Pid of the program that is rank 0 itself and has started the other ranks, as Lightning's does.

    It sets its own variables after its start, so they cannot be read from outside.
    """
    known = [pid for pid, identity in identities.items() if identity.rank is not None]
    parents = {table.rows[pid].parent for pid in known}
    parents = {pid for pid in parents if pid in table.rows and identities[pid].rank is None}
    if any(identities[pid].rank == 0 for pid in known) or len(parents) != 1:
        return None
    first = parents.pop()
    spawns = spawned_number(records.get(first, {})) is not None
    return first if _is_plain_program(table.rows[first]) and not spawns else None


def _stands_in_a_group(record: Mapping[str, Any]) -> bool:
    """True for a process seen from outside that is in a call which only a member can make."""
    calls = (thread.get("call") or {} for thread in record.get("threads", ()))
    return "source" in record and any(call.get("kind") in ("collective", "p2p") for call in calls)


@dataclass(frozen=True)
class Roles:
    """The parts that the processes of a job play.

    Attributes:
        ranks: rank -> pid; a rank of unknown number is under a negative key.
        children: pid of a rank -> pids of the processes it has started.
        duplicates: pid of a child -> the rank it has joined as, or tries to.
        launchers: pids of the rest, outermost first.
    """

    ranks: Mapping[int, int]
    children: Mapping[int, tuple[int, ...]]
    duplicates: Mapping[int, int]
    launchers: tuple[int, ...]


def assign(table: Table, identities: Mapping[int, Identity]) -> Roles:
    """Say which process is which rank.

    A process that carries the rank of a process above it has inherited that rank's environment: it is
    a child of that rank. The rank of two unrelated processes is the one that started first, unless it
    had ended before the other began: then all that had is a job, or a launch, before this one. A helper
    of `multiprocessing` is never a rank; it outlives the one that started it, and loses its parent.
    """
    ranks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    duplicates: dict[int, int] = {}
    launchers: list[int] = []
    newest = max((i.attempt for i in identities.values()), default=0)
    for row in sorted(table.rows.values(), key=lambda row: (row.is_helper, row.started)):
        identity = identities[row.pid]
        above = _rank_above(table, row, ranks)
        inherited = above is not None and identities[above].rank == identity.rank
        nested = above is not None and _starts_a_job(identities[above], identity, ranks)
        if identity.rank is None or inherited or nested:
            owner = above
        elif row.is_helper:
            owner = ranks.get(identity.rank)
        elif identity.rank not in ranks:
            if identity.attempt == newest:
                ranks[identity.rank] = row.pid
            continue
        elif table.rows[ranks[identity.rank]].precedes(row):
            ranks = {rank: pid for rank, pid in ranks.items() if not table.rows[pid].precedes(row)}
            ranks[identity.rank] = row.pid
            continue
        else:
            taken = ranks[identity.rank]
            nested = _elsewhere(identities[taken], identity)
            owner = None if nested else taken
        if owner is None:
            launchers.append(row.pid)
            continue
        children.setdefault(owner, []).append(row.pid)
        if identity.rank is not None and (identity.joined or identity.joining) and not nested:
            duplicates[row.pid] = identity.rank
    plain = [pid for pid in launchers if _is_plain_program(table.rows[pid])]
    if not ranks and plain:
        return _single(table, plain[0])
    return Roles(ranks, {k: tuple(v) for k, v in children.items()}, duplicates, tuple(launchers))


def own_rendezvous(command: Sequence[str]) -> int | None:
    """The port on this machine at which a launcher of one node is told to meet nobody else, or None."""
    words = " ".join(command).replace("_", "-")
    nodes = re.search(r"--nnodes[= ](\S+)", words)
    endpoint = re.search(r"--rdzv-endpoint[= ](\S+):(\d+)", words)
    if endpoint is None or (nodes is not None and nodes[1] not in ("1", "1:1")):
        return None
    return int(endpoint[2]) if endpoint[1] in (*LOOPBACK, socket.gethostname()) else None


def launcher_name(table: Table, roles: Roles, records: Mapping[int, Mapping[str, Any]]) -> str:
    """`torchrun`, `accelerate`, `deepspeed`, `mp.spawn` or `python`."""
    for pid in roles.launchers:
        words = " ".join(table.rows[pid].command[:4])
        for pattern, name in _LAUNCHERS:
            if any(pattern.search(word) for word in words.split()):
                return name
        if records.get(pid, {}).get("spawned") or spawned_number(records.get(pid, {})):
            return "mp.spawn"
    return "python"


def is_launcher(command: Sequence[str]) -> bool:
    """True for the command line of a launcher that is known by name."""
    return any(pattern.search(word) for pattern, _ in _LAUNCHERS for word in command[:4])


def _is_plain_program(row: Row) -> bool:
    return row.is_python and not row.is_helper and not is_launcher(row.command)


def _single(table: Table, main: int) -> Roles:
    """A program that has not become distributed (yet): its one process, of unknown rank."""
    below = tuple(
        row.pid
        for row in table.rows.values()
        if main in [above.pid for above in table.ancestors(row.pid)]
    )
    rest = tuple(pid for pid in table.rows if pid != main and pid not in below)
    return Roles({-1: main}, {main: below}, {}, rest)


def _starts_a_job(above: Identity, identity: Identity, ranks: Mapping[int, int]) -> bool:
    """True for a process below a rank that is part of another job, with a store of its own."""
    number = identity.rank
    if number is None or not _elsewhere(above, identity):
        return False
    return number in ranks or number >= (above.world_size or number + 1)


def _elsewhere(one: Identity, other: Identity) -> bool:
    """True for two processes that look for their store at different ports."""
    ports = {(who.master or "").rpartition(":")[2] for who in (one, other)}
    return len(ports) == 2 and "" not in ports


def _rank_above(table: Table, row: Row, ranks: Mapping[int, int]) -> int | None:
    pids = set(ranks.values())
    return next((above.pid for above in table.ancestors(row.pid) if above.pid in pids), None)


def _int(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
