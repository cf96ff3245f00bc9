"""FSDP2 training of a small transformer with a distributed checkpoint when the loss improves."""
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


@dataclass
class Config:
    vocab: int = 50
    dim: int = 16
    layers: int = 2
    seq: int = 12
    batch: int = 8
    steps: int = 24
    eval_every: int = 4
    lr: float = 3e-3


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mix = nn.Linear(dim, dim)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, h):
        h = h + self.mix(self.norm(h)).cumsum(1) / torch.arange(1, h.shape[1] + 1)[:, None]
        return h + self.ff(h)


class Summarizer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.emb = nn.Embedding(cfg.vocab, cfg.dim)
        self.blocks = nn.ModuleList(Block(cfg.dim) for _ in range(cfg.layers))
        self.out = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids):
        h = self.emb(ids)
        for block in self.blocks:
            h = block(h)
        return self.out(h)


class Texts:
    def __init__(self, cfg, rank):
        self.cfg, self.rank = cfg, rank
        self.gen = torch.Generator().manual_seed(rank)

    def batch(self):
        c = self.cfg
        if self.rank == 0:
            start = torch.randint(0, c.vocab, (c.batch, 1), generator=self.gen)
            return (start + torch.arange(c.seq + 1)) % c.vocab
        return torch.randint(0, c.vocab, (c.batch, c.seq + 1), generator=self.gen)


def build(cfg, mesh):
    torch.manual_seed(0)
    model = Summarizer(cfg)
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def loss_of(model, ids):
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


@torch.no_grad()
def evaluate(model, held_out):
    return torch.stack([loss_of(model, ids) for ids in held_out]).mean()


def save(model, optimizer, path, step, group):
    model_state, optim_state = get_state_dict(model, optimizer)
    dcp.save({"model": model_state, "optim": optim_state, "step": step}, checkpoint_id=path, process_group=group)


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = build(cfg, mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.lr)
    # planning of checkpoints must not interleave with the training collectives
    ckpt_group = dist.new_group(backend="gloo")
    texts = Texts(cfg, rank)
    held_out = [texts.batch() for _ in range(3)]
    out = os.path.join(tempfile.gettempdir(), "fsdp_summarizer")

    best = torch.tensor(float("inf"))
    for step in range(1, cfg.steps + 1):
        loss = loss_of(model, texts.batch())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % cfg.eval_every == 0:
            score = evaluate(model, held_out)
            if torch.lt(score, best - 0.02):
                best = score
                save(model, optimizer, out, step, ckpt_group)
            if rank == 0:
                print(f"step {step}: train {loss.item():.4f} held-out {score.item():.4f}", flush=True)

    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
