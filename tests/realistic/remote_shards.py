"""Downloads feature shards from (simulated) object storage, with retries, and fits a linear probe."""
import io
import logging
import time
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("remote_shards")


@dataclass
class Config:
    shards: int = 8
    rows: int = 64
    dim: int = 16
    max_retries: int = 3
    backoff_s: float = 0.2
    lr: float = 0.05


class StorageError(IOError):
    pass


class ObjectStore:
    """In-memory stand-in for the bucket; some keys answer with 503 on the first request."""

    def __init__(self, cfg, flaky):
        self.flaky = set(flaky)
        self.blobs = {}
        for i in range(cfg.shards):
            g = torch.Generator().manual_seed(i)
            x = torch.randn(cfg.rows, cfg.dim, generator=g)
            buf = io.BytesIO()
            torch.save({"x": x, "y": (x[:, 0] > 0).long()}, buf)
            self.blobs[f"features/{i:04d}.pt"] = buf.getvalue()

    def get(self, key):
        if key in self.flaky:
            self.flaky.discard(key)
            raise StorageError(f"503 Slow Down: {key}")
        return self.blobs[key]


class ShardReader:
    def __init__(self, store, cfg):
        self.store, self.cfg = store, cfg

    def load(self, key):
        for attempt in range(1, self.cfg.max_retries + 1):
            # all workers start a download together, the bucket is throttled per job
            dist.barrier()
            try:
                raw = self.store.get(key)
                return torch.load(io.BytesIO(raw), weights_only=True)
            except StorageError as err:
                log.info("attempt %d for %s: %s", attempt, key, err)
                time.sleep(self.cfg.backoff_s * attempt)
        raise RuntimeError(f"could not read {key}")


def fit_shard(model, optimizer, shard, batch_size=16):
    losses = []
    for x, y in zip(shard["x"].split(batch_size), shard["y"].split(batch_size)):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    store = ObjectStore(cfg, flaky=["features/0005.pt"])
    reader = ShardReader(store, cfg)
    model = DDP(nn.Linear(cfg.dim, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)

    keys = sorted(store.blobs)[rank::world]
    for i, key in enumerate(keys):
        shard = reader.load(key)
        loss = fit_shard(model, optimizer, shard)
        if rank == 0:
            log.info("shard %d/%d loss %.4f", i + 1, len(keys), loss)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
