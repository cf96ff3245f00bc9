"""What the beacon costs a rank: blocks of the same training steps with it and without it, in turn.

Runs under the instrument, on two ranks, as `beacon_cost.py KIND FOLDER PAIRS TIMES`, and writes one JSON
object per rank to the folder: `cpu` and `wall` are pairs of seconds for one block with the beacon and
one without, and `looks` says how often the beacon has looked in the former. There it looks TIMES as
often as elsewhere: what its usual looks cost is small beside whatever else happens to a block.
"""

import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from stuck_ranks_beacon import beacon, ticks
from training import step_of

SECONDS = 1.0
"""Length of a block."""


def train(kind: str, folder: Path, pairs_wanted: int, times: int) -> None:
    """Train, and note how long the blocks take."""
    ticks.TICK /= times
    beacon.LOOK_SHARE *= times
    step = step_of(kind)

    def steps(count: int) -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        for _ in range(count):
            step()
        return time.process_time() - cpu, time.perf_counter() - wall

    def look(**arguments: int) -> None:
        looked.append(None)
        beacon.Beacon.look(beacon.current, **arguments)

    looked: list[None] = []
    beacon.current.look = look
    steps(50)
    beacon.current.rest()
    count = torch.tensor(max(1, int(100 * SECONDS / steps(100)[1])))
    dist.broadcast(count, 0)
    pairs, looks = [], []
    for number in range(pairs_wanted):
        alone = steps(int(count)) if number % 2 else None  # either comes first as often
        beacon.current.resume()
        looked.clear()
        watched = steps(int(count))
        looks.append(len(looked))
        beacon.current.rest()
        pairs.append((watched, alone or steps(int(count))))
    beacon.current.resume()
    found = {
        "steps": int(count),
        "looks": looks,
        "cpu": [(watched[0], alone[0]) for watched, alone in pairs],
        "wall": [(watched[1], alone[1]) for watched, alone in pairs],
    }
    (folder / f"{dist.get_rank()}.json").write_text(json.dumps(found))


train(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
dist.destroy_process_group()
