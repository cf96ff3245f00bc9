"""Heat equation on a ring of ranks; each exchanges the borders of its strip with both neighbours."""

import os

import torch
import torch.distributed as dist

ROWS, COLUMNS = 24, 32


class Strip:
    def __init__(self, rank, world):
        self.up = (rank - 1) % world
        self.down = (rank + 1) % world
        generator = torch.Generator().manual_seed(rank)
        self.cells = torch.rand(ROWS + 2, COLUMNS, generator=generator)

    def exchange(self):
        top = torch.empty(COLUMNS)
        bottom = torch.empty(COLUMNS)
        dist.recv(top, src=self.up)
        dist.recv(bottom, src=self.down)
        dist.send(self.cells[-2].contiguous(), dst=self.down)
        dist.send(self.cells[1].contiguous(), dst=self.up)
        self.cells[0] = top
        self.cells[-1] = bottom

    def relax(self):
        inner = self.cells[1:-1]
        left = inner.roll(1, dims=1)
        right = inner.roll(-1, dims=1)
        mean = (self.cells[:-2] + self.cells[2:] + left + right) / 4
        change = (mean - inner).abs().max()
        self.cells[1:-1] = mean
        return change


def converge(strip, tolerance, limit):
    for step in range(limit):
        strip.exchange()
        change = strip.relax()
        dist.all_reduce(change, op=dist.ReduceOp.MAX)
        if change < tolerance:
            return step
    return limit


def total_heat(strip):
    heat = strip.cells[1:-1].sum()
    dist.all_reduce(heat)
    return float(heat)


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    strip = Strip(rank, world)
    before = total_heat(strip)
    steps = converge(strip, tolerance=1e-3, limit=int(os.environ.get("STEPS", "200")))
    after = total_heat(strip)
    if rank == 0:
        print(f"{steps} steps, heat {before:.2f} to {after:.2f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
