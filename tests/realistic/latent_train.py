"""Trains a small denoiser on precomputed latents, one text file per shard."""
import logging
import os
import shutil
import tempfile
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

from shard_index import get_files_and_lengths, split_by_rank

log = logging.getLogger("latents")

CONFIG = {
    "dim": 16,
    "shards": 12,
    "rows": 40,
    "batch": 8,
    "steps": 60,
    "lr": 1e-3,
    "prompts": {"negative": "blurry, low quality", "styles": ["photo", "ink", "oil", "pixel"]},
}


def data_root():
    run = os.environ.get("TORCHELASTIC_RUN_ID", "run") + os.environ.get("MASTER_PORT", "")
    return os.path.join(tempfile.gettempdir(), "latents-" + "".join(c for c in run if c.isalnum()))


def generate(root, cfg):
    os.makedirs(root, exist_ok=True)
    gen = torch.Generator().manual_seed(0)
    for shard in range(cfg["shards"]):
        rows = torch.randn(cfg["rows"] + shard, cfg["dim"], generator=gen)
        with open(os.path.join(root, f"part-{shard:03d}.latents"), "w") as handle:
            for row in rows.tolist():
                handle.write(" ".join(f"{v:.4f}" for v in row) + "\n")


def encode_prompts(rank, cfg):
    """Text embeddings: rank r encodes the r-th style of the list, and later ranks load a bigger encoder."""
    time.sleep(0.3 + 1.5 * rank)
    gen = torch.Generator().manual_seed(len(cfg["prompts"]["styles"][rank]))
    return torch.randn(cfg["dim"], generator=gen)


class Denoiser(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cond = nn.Linear(dim, dim)
        self.net = nn.Sequential(nn.Linear(2 * dim, 64), nn.SiLU(), nn.Linear(64, dim))

    def forward(self, noisy, prompt):
        cond = self.cond(prompt).expand_as(noisy)
        return self.net(torch.cat([noisy, cond], dim=-1))


def read_rows(root, names):
    rows = []
    for name in names:
        with open(os.path.join(root, name)) as handle:
            rows.extend([float(v) for v in line.split()] for line in handle)
    return torch.tensor(rows)


def train(model, rows, prompt, cfg):
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg["lr"])
    for step in range(cfg["steps"]):
        picked = rows[torch.randint(0, len(rows), (cfg["batch"],))]
        noise = torch.randn_like(picked)
        loss = nn.functional.mse_loss(model(picked + 0.3 * noise, prompt), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            log.info("step %d loss %.4f", step, loss.item())


def main():
    rank = int(os.environ["RANK"])
    logging.basicConfig(level=logging.INFO, format=f"[{rank}] %(name)s %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    root = data_root()
    if rank == 0:
        generate(root, CONFIG)
    dist.barrier()

    prompt = encode_prompts(rank, CONFIG)
    files = get_files_and_lengths(root)
    names, count = split_by_rank(files, rank, dist.get_world_size())
    counts = [None] * dist.get_world_size()
    dist.all_gather_object(counts, count)
    log.info("rows on each rank: %s", counts)

    model = DDP(Denoiser(CONFIG["dim"]))
    train(model, read_rows(root, names), prompt, CONFIG)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(root, ignore_errors=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
