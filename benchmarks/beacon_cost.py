"""What the beacon costs a rank: blocks of the same training steps with it and without it, in turn.

Runs under the instrument, on two ranks, as `beacon_cost.py KIND FOLDER PAIRS`, and writes one JSON
object per rank to the folder: `cpu` and `wall` are pairs of seconds for one block with the beacon and
one without, `beacon` is what the beacon's own thread has used of the processor in the former.
"""

import json
import os
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from stuck_ranks_beacon import beacon
from training import step_of

SECONDS = 1.0
"""Length of a block: about five looks of the beacon."""


def train(kind: str, folder: Path, pairs_wanted: int) -> None:
    """Train, and note how long the blocks take."""
    step = step_of(kind)

    def steps(count: int) -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(count):
            step()
        return time.process_time() - cpu, time.perf_counter() - wall

    def resume() -> int:
        """Start the beacon; its thread is the newest, after that of `faulthandler`'s timer."""
        before = set(os.listdir("/proc/self/task"))
        beacon.current.resume()
        return max(map(int, set(os.listdir("/proc/self/task")) - before))

    steps(50)
    beacon.current.rest()
    count = torch.tensor(max(1, int(100 * SECONDS / steps(100)[1])))
    dist.broadcast(count, 0)
    pairs, own = [], []
    for number in range(pairs_wanted):
        alone = steps(int(count)) if number % 2 else None  # either comes first as often
        thread = resume()
        watched = steps(int(count))
        own.append(int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[0]) / 1e9)
        beacon.current.rest()
        pairs.append((watched, alone or steps(int(count))))
    beacon.current.resume()
    found = {
        "steps": int(count),
        "beacon": own,
        "cpu": [(watched[0], alone[0]) for watched, alone in pairs],
        "wall": [(watched[1], alone[1]) for watched, alone in pairs],
    }
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(found))


train(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
dist.destroy_process_group()
