"""Three-stage pipeline for a toy translation model (forward scoring of a corpus)."""
import argparse
import logging
import math
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("pipe")

VOCAB = 64


@dataclass
class PipeConfig:
    sentences: int = 122
    batch: int = 32
    micro: int = 8
    seq: int = 10
    dim: int = 24

    def batch_sizes(self):
        full, rest = divmod(self.sentences, self.batch)
        return [self.batch] * full + ([rest] if rest else [])


class Embed(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, cfg.dim)
        self.pos = nn.Parameter(0.02 * torch.randn(cfg.seq, cfg.dim))

    def forward(self, ids):
        return self.tok(ids) + self.pos


class Middle(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(cfg.dim, 4, 2 * cfg.dim, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(x)


class Scorer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.head = nn.Linear(cfg.dim, VOCAB)

    def forward(self, x):
        return self.head(x).log_softmax(-1).max(-1).values.mean(-1)


class Stage:
    """One process of the pipeline."""

    def __init__(self, cfg, rank, world):
        self.cfg, self.rank, self.world = cfg, rank, world
        self.module = [Embed, Middle, Scorer][rank](cfg).eval()

    def n_micro(self, batch_size):
        return math.ceil(batch_size / self.cfg.micro)

    def micro_sizes(self, batch_size):
        left = batch_size
        for _ in range(self.n_micro(batch_size)):
            yield min(self.cfg.micro, left)
            left -= self.cfg.micro

    def receive(self, size):
        buf = torch.empty(size, self.cfg.seq, self.cfg.dim)
        dist.recv(buf, src=self.rank - 1)
        return buf


class FirstStage(Stage):
    def run_batch(self, ids):
        for chunk in ids.split(self.cfg.micro):
            if len(chunk) < self.cfg.micro:
                log.debug("ragged chunk of %d", len(chunk))
                continue
            dist.send(self.module(chunk), dst=self.rank + 1)
        score = torch.zeros(1)
        dist.recv(score, src=self.world - 1)
        return score.item()


class InnerStage(Stage):
    def run_batch(self, batch_size):
        for size in self.micro_sizes(batch_size):
            dist.send(self.module(self.receive(size)), dst=self.rank + 1)


class LastStage(Stage):
    def run_batch(self, batch_size):
        scores = [self.module(self.receive(size)) for size in self.micro_sizes(batch_size)]
        dist.send(torch.cat(scores).mean().reshape(1), dst=0)


def build_stage(cfg, rank, world):
    if rank == 0:
        return FirstStage(cfg, rank, world)
    if rank == world - 1:
        return LastStage(cfg, rank, world)
    return InnerStage(cfg, rank, world)


@torch.no_grad()
def score_corpus(stage, cfg):
    gen = torch.Generator().manual_seed(1)
    for i, size in enumerate(cfg.batch_sizes()):
        if stage.rank == 0:
            ids = torch.randint(0, VOCAB, (size, cfg.seq), generator=gen)
            log.info("batch %d: score %.4f", i, stage.run_batch(ids))
        else:
            stage.run_batch(size)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--sentences", type=int, default=122)
    p.add_argument("--micro", type=int, default=8)
    args = p.parse_args()
    cfg = PipeConfig(sentences=args.sentences, micro=args.micro)
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    logging.basicConfig(level=logging.INFO, format=f"[stage{rank}] %(message)s")
    score_corpus(build_stage(cfg, rank, world), cfg)
    dist.barrier()
    if rank == 0:
        log.info("corpus scored")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
