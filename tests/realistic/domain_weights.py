"""Multi-domain classifier whose loss is re-weighted by class frequency in each domain."""
import argparse
import logging
import random

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from caching import memoize, timed

log = logging.getLogger("domains")

DOMAINS = ["reviews", "news", "forum", "legal"]
N_CLASSES = 6
DIM = 24


class DomainCorpus:
    """In-memory corpus; every process holds its own part of each domain."""

    def __init__(self, rank, per_domain):
        self.data = {}
        for d, name in enumerate(DOMAINS):
            gen = torch.Generator().manual_seed(97 * d + rank)
            x = torch.randn(per_domain, DIM, generator=gen) + 0.1 * d
            y = torch.randint(0, N_CLASSES - d % 2, (per_domain,), generator=gen)
            self.data[name] = (x, y)

    def labels(self, domain):
        return self.data[domain][1]

    def batch(self, domain, size, rng):
        x, y = self.data[domain]
        rows = torch.tensor([rng.randrange(len(x)) for _ in range(size)])
        return x[rows], y[rows]


class Curriculum:
    """Starts with one domain and mixes in the others."""

    def __init__(self, seed, warmup):
        self.rng = random.Random(seed)
        self.warmup = warmup

    def __iter__(self):
        step = 0
        while True:
            yield DOMAINS[0] if step < self.warmup else self.rng.choice(DOMAINS)
            step += 1


@memoize(key="domain")
@timed
def class_weights(domain, labels):
    """Inverse class frequencies of a domain over all processes."""
    counts = torch.bincount(labels, minlength=N_CLASSES).float()
    dist.all_reduce(counts)
    log.info("class counts for %s: %s", domain, counts.int().tolist())
    return counts.sum() / (N_CLASSES * counts.clamp(min=1))


def build_model():
    return nn.Sequential(nn.Linear(DIM, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, N_CLASSES))


def train(args, rank):
    corpus = DomainCorpus(rank, args.per_domain)
    rng = random.Random(1000 + rank)
    domains = iter(Curriculum(seed=args.seed + rank, warmup=args.warmup))
    model = DDP(build_model())
    optim = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for step in range(args.steps):
        domain = next(domains)
        weight = class_weights(domain=domain, labels=corpus.labels(domain))
        x, y = corpus.batch(domain, args.batch_size, rng)
        loss = nn.functional.cross_entropy(model(x), y, weight=weight)
        optim.zero_grad()
        loss.backward()
        optim.step()
        if step % 5 == 0:
            log.info("step %d domain %s loss %.4f", step, domain, loss.item())
    return model


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--warmup", type=int, default=6)
    p.add_argument("--batch-size", type=int, default=16)
    p.add_argument("--per-domain", type=int, default=400)
    p.add_argument("--lr", type=float, default=0.05)
    p.add_argument("--seed", type=int, default=21)
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")
    train(args, rank)
    dist.barrier()
    if rank == 0:
        log.info("done, cached weights for %d domains", len(class_weights.cache))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
