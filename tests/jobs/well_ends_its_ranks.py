"""A healthy job: actors fill a queue until the learner has what it needs, ends them, and works on."""

import sys
import time
from multiprocessing.queues import Queue

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

LONGER_THAN_AN_ERROR_SETTLES = 12


def act(rank: int, port: str, experience: "Queue[int]") -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    dist.all_reduce(torch.ones(1))
    step = 0
    while True:
        experience.put(step)
        step += 1
        time.sleep(0.02)


if __name__ == "__main__":
    context = mp.get_context("spawn")
    experience = context.Queue(8)
    actors = [context.Process(target=act, args=(rank, sys.argv[1], experience)) for rank in range(2)]
    for actor in actors:
        actor.start()
    for _ in range(100):
        experience.get()
    actors[0].terminate()
    actors[1].kill()
    for actor in actors:
        actor.join()
    for _ in range(LONGER_THAN_AN_ERROR_SETTLES):
        time.sleep(1)
    print("evaluated", flush=True)
