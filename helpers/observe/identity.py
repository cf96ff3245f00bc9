"""Who a process says it is: from its process groups, its launch variables and its stack."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LOOPBACK = ("localhost", "127.0.0.1", "::1", "[::1]")
MP_SPAWN = "torch.multiprocessing.spawn._wrap"
WORKER = "torch.utils.data._utils.worker._worker_loop"


@dataclass
class Identity:
    """Who a process says it is; the newest known value of each is kept.

    Attributes:
        host: name of the machine.
        rank: its global rank.
        restarts: how often its launcher may still start all ranks anew.
        joined: True once it has (or had) a process group as that rank.
        member: True while it has one, or is in `init_process_group`, as that rank.
        alive: False once it has been seen to have ended.
        since: when it was first seen as a member, until when it was last seen so; None for one that
            never was, or has failed to become one. A process that leaves its group and joins again is a
            member since then.
        loaded: True once torch is loaded there, False before; None where no beacon can say.
        joined_from: the stack of its call of `init_process_group`, in the form of a beacon record.
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
    backends: tuple[str, ...] = ()
    single_node: bool = True
    joined_from: Sequence[Sequence[Any]] = ()

    def update(
        self,
        record: Mapping[str, Any] | None,
        environment: Mapping[str, str],
        now: float = 0.0,
        *,
        alive: bool = True,
    ) -> None:
        """Take over what the newest record and the environment tell.

        Args:
            record: the newest beacon record, None for a process without a beacon.
            environment: what its program was given at its start.
            now: monotonic seconds of this look.
            alive: False once the process has ended; its last record stays as it is.
        """
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
        if "source" not in record:
            self.loaded = bool(record.get("torch"))
        member = _stands_in_a_group(record)
        process = record.get("process") or {}
        if self.rank is None and process.get("target") == MP_SPAWN:
            self.rank = self.local_rank = process.get("index")
        thread = rendezvous_thread(record)
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
            member = True
            self.backends = tuple(sorted({group["backend"] for group in groups["groups"]}))
        self.joined |= member
        member = member or thread is not None
        failed = bool(record.get("error")) and not self.joined
        # One that came to its end well has joined and left between two looks.
        passed = self.since is None and self.joined_from and not alive
        if failed or (self.member and not member and not self.joined):
            self.since = self.until = None
        elif passed or (member and not self.member):
            self.since = self.until = now
        elif member and self.alive:
            self.until = now  # also at the look that finds it ended: it may have been one till then
        self.member, self.alive = member, alive

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
            self.single_node = address in (*LOOPBACK, self.host)

    def _from_method(self, method: str) -> None:
        match = re.match(r"tcp://(\[[^\]]+\]|[^/:]+):(\d+)", method)
        if match:
            self.master = f"{match[1]}:{match[2]}"
            self.single_node = match[1] in (*LOOPBACK, self.host)


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


def _stands_in_a_group(record: Mapping[str, Any]) -> bool:
    """True for a process seen from outside that is in a call which only a member can make."""
    calls = (thread.get("call") or {} for thread in record.get("threads", ()))
    return "source" in record and any(call.get("kind") in ("collective", "p2p") for call in calls)


def _int(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
