"""Looks at a healthy job from inside: the threads of each rank, and the ports that it listens on."""

import os
import sys
import threading
import traceback

import lightning
import psutil
import torch
import torch.distributed as dist


def show(fabric: lightning.Fabric, when: str) -> None:
    """Prints one rank after the other, so that lines do not mix."""
    for rank in range(fabric.world_size):
        if rank == fabric.global_rank:
            listening = [c for c in psutil.Process().net_connections("tcp") if c.status == "LISTEN"]
            ports = "1 port" if len(listening) == 1 else f"{len(listening)} ports"
            print(f"{when}: rank {rank} listens on {ports}", flush=True)
        fabric.barrier()


def show_threads(fabric: lightning.Fabric) -> None:
    """Prints where every Python thread of rank 0 is, as a stack dump does."""
    for thread in threading.enumerate() if fabric.global_rank == 0 else ():
        stack = traceback.extract_stack(sys._current_frames()[thread.ident or 0])
        frame = next(f for f in reversed(stack) if "/threading.py" not in f.filename)
        file = os.path.basename(frame.filename)
        print(f"rank 0: {thread.name} is in {file}, {frame.name}", flush=True)


def main() -> None:
    fabric = lightning.Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    fabric.setup_module(torch.nn.Linear(10, 1))
    show(fabric, "one process group")
    dist.new_group([0, 1])
    show(fabric, "two process groups")
    show_threads(fabric)


if __name__ == "__main__":
    main()
