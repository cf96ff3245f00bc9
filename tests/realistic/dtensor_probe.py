"""Column-parallel linear probe written with DTensor; power iteration for the step size."""
import argparse
import math

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--rows", type=int, default=48)
    p.add_argument("--cols", type=int, default=24)
    p.add_argument("--iters", type=int, default=40)
    p.add_argument("--ridge", type=float, default=0.1)
    return p.parse_args()


def make_problem(rows, cols):
    g = torch.Generator().manual_seed(12)
    a = torch.randn(rows, cols, generator=g) / math.sqrt(rows)
    a[:, : cols // 2] *= 3.0
    w = torch.randn(cols, generator=g)
    return a, a @ w


class ColumnParallelProbe:
    """The columns of the design matrix and the weights are sharded over the mesh."""

    def __init__(self, a, b, mesh, ridge):
        self.mesh = mesh
        self.a = distribute_tensor(a, mesh, [Shard(1)])
        self.b = distribute_tensor(b, mesh, [Replicate()])
        self.w = distribute_tensor(torch.zeros(a.shape[1]), mesh, [Shard(0)])
        self.ridge = ridge

    def predict(self, w):
        return (self.a @ w).redistribute(self.mesh, [Replicate()])

    def gradient(self, w):
        residual = self.predict(w) - self.b
        return self.a.t() @ residual + self.ridge * w, residual.to_local()

    def lipschitz(self, tries=30, tol=1e-3):
        """Largest eigenvalue of A'A by power iteration."""
        v = distribute_tensor(torch.ones(self.w.shape[0]), self.mesh, [Shard(0)])
        value = 0.0
        for i in range(tries):
            u = self.a.t() @ self.predict(v)
            norm = u.to_local().norm()
            previous, value = value, norm.item()
            if abs(value - previous) < tol * value:
                break
            scale = u.full_tensor().norm()
            v = DTensor.from_local(u.to_local() / scale, self.mesh, [Shard(0)])
        return value

    def step(self, rate):
        grad, residual = self.gradient(self.w)
        self.w = self.w - grad * rate
        return residual.pow(2).mean().item()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    a, b = make_problem(args.rows, args.cols)
    probe = ColumnParallelProbe(a, b, mesh, args.ridge)

    bound = torch.tensor(probe.lipschitz())
    dist.all_reduce(bound, op=dist.ReduceOp.MAX)
    rate = 1.0 / (bound.item() + args.ridge)
    for i in range(args.iters):
        mse = probe.step(rate)
        if i % 10 == 0 and rank == 0:
            print(f"iteration {i}: mse {mse:.5f}", flush=True)

    weights = probe.w.full_tensor()
    if rank == 0:
        print("weights", weights[:4].tolist())
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
