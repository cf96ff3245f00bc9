"""Imitation learning from demonstrations with DeepSpeed (each worker plays its own recordings)."""
import itertools
import os
import tempfile
from dataclasses import dataclass

import deepspeed
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    obs: int = 6
    actions: int = 4
    demos: int = 10
    chunk: int = 16
    passes: int = 2


class Demonstration:
    def __init__(self, cfg, gen):
        self.length = int(torch.randint(40, 90, (1,), generator=gen))
        self.obs = torch.randn(self.length, cfg.obs, generator=gen)
        self.act = self.obs[:, : cfg.actions].argmax(1)
        self.reward = torch.rand(self.length, generator=gen) - 0.02

    def useful(self):
        """Part of the demonstration before the first penalty."""
        steps = zip(self.obs, self.act, self.reward)
        return list(itertools.takewhile(lambda s: s[2] > 0, steps))


class Policy(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(cfg.obs, 32), nn.ReLU(), nn.Linear(32, cfg.actions))

    def forward(self, obs, act):
        return F.cross_entropy(self.net(obs), act)


class Replay:
    def __init__(self, cfg, rank):
        gen = torch.Generator().manual_seed(20 + rank)
        self.cfg = cfg
        self.demos = [Demonstration(cfg, gen) for _ in range(cfg.demos)]

    def chunks(self):
        steps = [s for d in self.demos for s in d.useful()]
        for i in range(0, len(steps) - self.cfg.chunk + 1, self.cfg.chunk):
            part = steps[i:i + self.cfg.chunk]
            yield torch.stack([s[0] for s in part]), torch.stack([s[1] for s in part])


def build_engine(cfg):
    model = Policy(cfg)
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config={
        "train_micro_batch_size_per_gpu": cfg.chunk,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 5}},
        "zero_optimization": {"stage": 2, "overlap_comm": False},
        "steps_per_print": 10000,
    })
    return engine


def run_pass(engine, replay, number):
    total, n = 0.0, 0
    for obs, act in replay.chunks():
        loss = engine(obs, act)
        engine.backward(loss)
        engine.step()
        total, n = total + loss.item(), n + 1
    if engine.global_rank == 0:
        print(f"pass {number}: {n} chunks, loss {total / max(1, n):.4f}", flush=True)


def main():
    cfg = Config()
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    engine = build_engine(cfg)
    replay = Replay(cfg, engine.global_rank)
    out = os.path.join(tempfile.gettempdir(), "ds_imitation")
    for number in range(cfg.passes):
        run_pass(engine, replay, number)
        engine.save_checkpoint(out, tag=f"pass{number}")


if __name__ == "__main__":
    main()
