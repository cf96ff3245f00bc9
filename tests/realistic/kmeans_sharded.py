"""Distributed k-means with local refinement rounds between synchronisations.

    torchrun --standalone --nproc-per-node=3 kmeans_sharded.py --k 5
"""
import argparse

import torch
import torch.distributed as dist


def parse_args():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--k", type=int, default=5)
    p.add_argument("--dim", type=int, default=4)
    p.add_argument("--points", type=int, default=600)
    p.add_argument("--tol", type=float, default=1e-3)
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--max-iter", type=int, default=100)
    return p.parse_args()


def blobs(n, k, dim, seed, spread):
    g = torch.Generator().manual_seed(seed)
    centers = 4 * torch.randn(k, dim, generator=torch.Generator().manual_seed(0))
    which = torch.randint(0, k, (n,), generator=g)
    return centers[which] + spread * torch.randn(n, dim, generator=g)


class ShardedKMeans:
    def __init__(self, k, tol, max_iter):
        self.k, self.tol, self.max_iter = k, tol, max_iter
        self.centroids = None
        self.iterations = 0

    def init_centroids(self, x):
        self.centroids = x[: self.k].clone()
        dist.broadcast(self.centroids, src=0)

    def assign(self, x):
        return torch.cdist(x, self.centroids).argmin(1)

    def partial_sums(self, x, labels):
        sums = torch.zeros_like(self.centroids).index_add_(0, labels, x)
        counts = torch.bincount(labels, minlength=self.k).float()
        return sums, counts

    def update(self, x):
        """One Lloyd step over all shards; returns how far the points of this shard are off now."""
        labels = self.assign(x)
        sums, counts = self.partial_sums(x, labels)
        packed = torch.cat([sums.flatten(), counts])
        dist.all_reduce(packed)
        sums = packed[: sums.numel()].view_as(sums)
        counts = packed[sums.numel():]
        new = torch.where(counts[:, None] > 0, sums / counts.clamp(min=1)[:, None], self.centroids)
        before = self.inertia(x, labels)
        self.centroids = new
        return abs(before - self.inertia(x, self.assign(x)))

    def inertia(self, x, labels):
        return (x - self.centroids[labels]).pow(2).sum(1).mean().item()

    def fit(self, x):
        self.init_centroids(x)
        change = float("inf")
        while change > self.tol and self.iterations < self.max_iter:
            change = self.update(x)
            self.iterations += 1
        return self


def report(model, x, rank, world):
    score = torch.tensor([model.inertia(x, model.assign(x)), float(model.iterations)])
    scores = [torch.zeros(2) for _ in range(world)] if rank == 0 else None
    dist.gather(score, scores, dst=0)
    if rank == 0:
        for r, s in enumerate(scores):
            print(f"shard {r}: inertia {s[0]:.4f} after {int(s[1])} iterations")


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    x = blobs(args.points, args.k, args.dim, seed=10 + rank, spread=0.5 + 0.8 * rank)
    model = ShardedKMeans(args.k, args.tol, args.max_iter).fit(x)
    report(model, x, rank, world)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
