"""Train a small decoder with FSDP2 and export a consolidated checkpoint at the end."""
import argparse
import logging
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

log = logging.getLogger("export")


@dataclass
class ExportSpec:
    path: str
    consolidate: bool
    dtype: torch.dtype = torch.float32


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class TinyDecoder(nn.Module):
    def __init__(self, vocab, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def shard(model, mesh):
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return model


def token_stream(vocab, batch, seq, seed):
    gen = torch.Generator().manual_seed(seed)
    while True:
        yield torch.randint(0, vocab, (batch, seq + 1), generator=gen)


def train(model, args, rank):
    optim = torch.optim.AdamW(model.parameters(), lr=args.lr)
    stream = token_stream(args.vocab, args.batch, args.seq, seed=rank)
    for step in range(1, args.steps + 1):
        ids = next(stream)
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
        loss.backward()
        optim.step()
        optim.zero_grad()
        if step % args.log_every == 0 and rank == 0:
            log.info("step %d loss %.4f", step, loss.item())


def make_export_spec(args, rank):
    path = os.path.join(args.out, f"decoder-step{args.steps}.pt")
    return ExportSpec(path=path, consolidate=(rank == 0))


def collect_weights(model, spec):
    options = StateDictOptions(
        full_state_dict=spec.consolidate,
        cpu_offload=spec.consolidate,
    )
    return get_model_state_dict(model, options=options)


def export(model, spec):
    weights = collect_weights(model, spec)
    if spec.consolidate:
        os.makedirs(os.path.dirname(spec.path), exist_ok=True)
        torch.save({k: v.to(spec.dtype) for k, v in weights.items()}, spec.path)
        log.info("wrote %s (%d tensors)", spec.path, len(weights))
    dist.barrier()


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--log-every", type=int, default=4)
    p.add_argument("--vocab", type=int, default=96)
    p.add_argument("--dim", type=int, default=32)
    p.add_argument("--depth", type=int, default=3)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--seq", type=int, default=16)
    p.add_argument("--lr", type=float, default=1e-3)
    p.add_argument("--out", default=os.path.join(tempfile.gettempdir(), "fsdp2_export"))
    return p.parse_args()


def main():
    args = parse_args()
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")

    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    model = shard(TinyDecoder(args.vocab, args.dim, args.depth), mesh)
    train(model, args, rank)
    spec = make_export_spec(args, rank)
    log.info("exporting")
    export(model, spec)
    if rank == 0:
        log.info("done")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
