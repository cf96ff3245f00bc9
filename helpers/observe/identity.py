"""Who a process says it is: from its process groups, its launch variables and its stack."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ..beacon.launch_variables import INTERFACES
from ..beacon.record import Call, FrameEntry, Record
from ..beacon.torch_names import MP_SPAWN

LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")


class Identity(msgspec.Struct):
    """Who a process says it is; the newest known value of each is kept.

    Attributes:
        host: name of the machine.
        rank: its global rank.
        restarts: how often its launcher may still restart all ranks.
        joined: True once it has (or had) a process group as that rank.
        member: True while it has one, or is in `init_process_group`, as that rank.
        alive: False once it has been seen to have ended.
        since: when it was first seen as a member, until: the last look at which it may still have been
            one; None for one that never was, or has failed to become one. A process that leaves its
            group and joins again is a member since then.
        loaded: True once torch is loaded there, False before; None where no beacon can say.
        rpc: True once it has (or had) a place among those that call each other by `rpc`.
        joined_from: the stack of its call of `init_process_group`, innermost first.
        interface: the setting that names the network interface it uses, `NAME=VALUE`, else empty.
        together: True where its launcher has started all ranks of the machine at once, as torchrun does.
    """

    host: str = ""
    rank: int | None = None
    local_rank: int | None = None
    node: int = 0
    world_size: int | None = None
    attempt: int = 0
    restarts: int = 0
    master: str | None = None
    joined: bool = False
    member: bool = False
    alive: bool = True
    since: float | None = None
    until: float | None = None
    loaded: bool | None = None
    rpc: bool = False
    backends: tuple[str, ...] = ()
    single_node: bool = True
    joined_from: Sequence[FrameEntry] = ()
    interface: str = ""
    together: bool = False

    def update(
        self,
        record: Record | None,
        environment: Mapping[str, str],
        now: float = 0.0,
        *,
        alive: bool = True,
    ) -> None:
        """Take over what the newest record and the environment tell.

        Args:
            record: the newest beacon record, None for a process without a beacon.
            environment: as it was when its program started.
            now: monotonic seconds of this look.
            alive: False once the process has ended; its last record stays as it is.
        """
        env = record["env"] if record else environment
        self._from_environment(env)
        if record is None:
            return
        if record["source"] == "beacon":
            self.loaded = bool(record["torch"])
        child = record["process"]
        if self.rank is None and child is not None and child["target"] == MP_SPAWN:
            self.rank = self.local_rank = child["index"]
        joining = self._from_rendezvous(record)
        self._from_rpc(record)
        member = self._from_groups(record)
        self.joined |= member
        failed = record["error"] is not None and not self.joined
        self._count(member or joining, now, failed=failed, alive=alive)

    def _count(self, member: bool, now: float, *, failed: bool, alive: bool) -> None:
        """Take in whether it is a member; one that ended well may have joined and left between looks."""
        passed = self.since is None and self.joined_from and not alive
        if failed or (self.member and not member and not self.joined):
            self.since = self.until = None
        elif passed or (member and not self.member):
            self.since = self.until = now
        elif (member or self.member) and self.alive:
            self.until = now  # also at the look that finds it gone: it may have been one until then
        self.member, self.alive = member, alive

    def _from_rendezvous(self, record: Record) -> bool:
        """Take over what a call of `init_process_group` tells; True while it is in one."""
        joining = next(
            (t for t in record["threads"] if t["call"] and t["call"]["kind"] == "rendezvous"), None
        )
        if joining is not None and (call := joining["call"]) is not None:
            self.joined_from = joining["frames"]
            self.rank = self.rank if call["rank"] is None else call["rank"]
            self.world_size = call["world_size"] or self.world_size
            self._from_method(call["key"] or "")
        self.joined_from = record["joining"] or self.joined_from
        return joining is not None

    def _from_groups(self, record: Record) -> bool:
        """Take over what its process groups tell; True while it has some."""
        groups = record["dist"]
        if groups:
            self.rank, self.world_size = groups["rank"], groups["world_size"]
            self.backends = tuple(sorted({group["backend"] for group in groups["groups"]}))
        return bool(groups) or _in_a_group(record)

    def _from_rpc(self, record: Record) -> None:
        for call in _calls(record):
            if call["op"] == "init_rpc":
                self.rank = self.rank if call["rank"] is None else call["rank"]
                self.world_size = call["world_size"] or self.world_size
                self._from_method(call["key"] or "")
        rpc = record.get("rpc")
        self.rpc = self.rpc or rpc is not None
        if rpc is not None and record["dist"] is None:
            self.rank, self.world_size = rpc

    def _from_environment(self, env: Mapping[str, str]) -> None:
        self.together = "TORCHELASTIC_RESTART_COUNT" in env
        self.interface = next((f"{name}={env[name]}" for name in INTERFACES if env.get(name)), "")
        self.attempt = _int(env.get("TORCHELASTIC_RESTART_COUNT")) or 0
        self.restarts = max(0, (_int(env.get("TORCHELASTIC_MAX_RESTARTS")) or 0) - self.attempt)
        self.node = _int(env.get("GROUP_RANK", env.get("NODE_RANK"))) or 0
        if env.get("MASTER_PORT"):
            self.master = f"{env.get('MASTER_ADDR', 'localhost')}:{env['MASTER_PORT']}"
        if _int(env.get("LOCAL_RANK")) is not None:
            self.local_rank = _int(env.get("LOCAL_RANK"))
        self.world_size = _int(env.get("WORLD_SIZE")) or self.world_size
        if not self.joined and _int(env.get("RANK")) is not None:
            self.rank = _int(env.get("RANK"))
        elif not self.joined and self.rank is None and self.local_rank is not None:
            self.rank = self.local_rank
        self.single_node = self._is_single_node(env)

    def _is_single_node(self, env: Mapping[str, str]) -> bool:
        """True where all ranks are on this machine, as far as the launch variables tell."""
        nodes = _int(env.get("GROUP_WORLD_SIZE"))
        local_world, world = _int(env.get("LOCAL_WORLD_SIZE")), _int(env.get("WORLD_SIZE"))
        if nodes is not None:
            return nodes == 1
        if local_world is not None and world is not None:
            return local_world >= world
        return env.get("MASTER_ADDR", "localhost") in (*LOOPBACK, self.host)

    def _from_method(self, method: str) -> None:
        match = re.match(r"tcp://(\[[^\]]+\]|[^/:]+):(\d+)", method)
        if match:
            self.master = f"{match[1]}:{match[2]}"
            self.single_node = match[1] in (*LOOPBACK, self.host)


_STEP = "SLURM_STEP_ID"
_NUMBERS = (
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
)
TASKS = (_STEP, *(name for names in _NUMBERS for name in names))
"""Variables by which Slurm and the launchers of MPI tell a task its number, and how many there are."""


def task(environment: Mapping[str, str]) -> tuple[int, int] | None:
    """The number of a task that srun or mpirun has started, and how many there are; None for no such.

    A batch script has both in its environment, too, but no step of Slurm's.
    """
    for name, size in _NUMBERS:
        number, tasks = _int(environment.get(name)), _int(environment.get(size))
        started = _STEP in environment or not name.startswith("SLURM")
        if started and number is not None and tasks is not None and tasks > 1:
            return number, tasks
    return None


def spawned_number(record: Record) -> int | None:
    """How many processes the caller of `mp.spawn` waits for, where its stack has been read."""
    return next((call["world_size"] for call in _calls(record) if call["op"] == "mp.spawn"), None)


def _in_a_group(record: Record) -> bool:
    """True for a process seen from outside that is in a call which only a member can make."""
    from_outside = record["source"] == "py-spy"
    return from_outside and any(call["kind"] in ("collective", "p2p") for call in _calls(record))


def _calls(record: Record) -> list[Call]:
    """The torch calls that the threads of a process are in."""
    return [thread["call"] for thread in record["threads"] if thread["call"] is not None]


def _int(text: str | None) -> int | None:
    try:
        return int(text or "")
    except ValueError:
        return None
