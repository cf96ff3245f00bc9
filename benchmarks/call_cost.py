"""What the note of each call costs a rank: blocks of the same steps with the note and without it.

Runs under the instrument, on two ranks, as `call_cost.py FOLDER CALLS ROUNDS`, and writes one JSON
object per rank to the folder. A step computes for about `SECONDS`, then makes so many calls. For each
round, `cpu` is the processor time that the calling thread takes for a call, and `step` the length of a
step: without the looks and notes of the beacon, with its looks alone, and with both.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from stuck_ranks_beacon import beacon
from torch.distributed import distributed_c10d as c10d

SECONDS = 0.1
"""Length of what a step computes, as of a usual DDP job."""

BLOCK = 2.0
"""Seconds of a block: long beside the time that may be saved up for reading values."""


class Trainer:
    """A loop with as many frames and variables as that of a usual program."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.step, self.best = args, 0, 0.0
        self.weights, self.sent = torch.randn(256, 256), torch.ones(1)

    def compute(self, times: int) -> None:
        """So many products of two matrices."""
        for _ in range(times):
            self.weights @ self.weights

    def fit(self, steps: int, times: int) -> tuple[float, float]:
        """Processor time of a call, and the length of a step."""
        cpu, wall = 0.0, time.perf_counter()
        for number in range(steps):
            lr, warm = self.args.lr / (number + 1), number > 2
            self.compute(times)
            began = time.thread_time()
            self.reduce(number, lr, warm)
            cpu += time.thread_time() - began
            self.step += 1
        return cpu / steps / self.args.calls, (time.perf_counter() - wall) / steps

    def reduce(self, number: int, lr: float, warm: bool) -> None:
        """The calls of a step."""
        for call in range(self.args.calls):
            name = f"bucket {call}"
            if name and self.step >= number and lr and not (warm and self.best):
                dist.all_reduce(self.sent)


def main(folder: Path, calls: int, rounds: int) -> None:
    """Run the blocks, and write what they took."""
    dist.init_process_group("gloo")
    trainer = Trainer(argparse.Namespace(calls=calls, lr=0.1))
    began = time.perf_counter()
    trainer.compute(200)
    counts = torch.tensor([0, int(200 * SECONDS / (time.perf_counter() - began))])
    dist.broadcast(counts, 0)
    counts[0] = max(1, int(BLOCK / trainer.fit(1, int(counts[1]))[1]))
    dist.broadcast(counts, 0)
    steps, times = counts.tolist()
    noting = c10d._rank_not_in_group
    asks = noting.__wrapped__

    def block(looks: bool, notes: bool) -> tuple[float, float]:
        c10d._rank_not_in_group = noting if notes else asks
        if not looks:
            beacon.current.rest()
        taken = trainer.fit(steps, times)
        if not looks:
            beacon.current.resume()
        return taken

    kinds = [(False, False), (True, False), (True, True)]
    cpu, length = [], []
    for number in range(rounds + 1):
        order = kinds[number % 3 :] + kinds[: number % 3]  # each comes first as often
        taken = {kind: block(*kind) for kind in order}
        cpu.append([taken[kind][0] for kind in kinds])
        length.append([taken[kind][1] for kind in kinds])
    c10d._rank_not_in_group = noting
    notes = {"cpu": cpu[1:], "step": length[1:]}
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(notes))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
