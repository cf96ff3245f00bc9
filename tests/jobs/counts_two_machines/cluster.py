"""What runs where."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """One rank: where it meets the others, and how many threads it may use."""

    rank: int
    world: int
    address: str
    threads: int


@dataclass(frozen=True)
class Cluster:
    """The machines of a job, the first of which has the store, and which of them this is."""

    machines: tuple[str, ...]
    machine: str
    per_machine: int
    address: str

    @classmethod
    def from_config(cls, config: dict, port: int) -> "Cluster":
        machines = tuple(name for name in config["machines"] if config["machines"][name]["ranks"])
        ranks = {config["machines"][name]["ranks"] for name in machines}
        if len(ranks) != 1:
            raise SystemExit("all machines have to run as many ranks")
        machine = os.environ.get("TRAIN_MACHINE", config["default"])
        host = config["machines"][machines[0]]["host"]
        return cls(machines, machine, ranks.pop(), f"tcp://{host}:{port}")

    def place(self, local_rank: int) -> Place:
        """The place of a rank of this machine."""
        number = self.machines.index(self.machine)
        cores = len(os.sched_getaffinity(0))
        return Place(
            rank=number * self.per_machine + local_rank,
            world=len(self.machines) * self.per_machine,
            address=self.address,
            threads=max(1, cores // self.per_machine),
        )
