"""Toy acoustic model with length-bucketed batches and a frame budget per epoch."""
import argparse
import logging
import random
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

log = logging.getLogger("asr")

N_MELS = 20
N_PHONES = 12


@dataclass
class Utterance:
    uid: str
    frames: int
    seed: int

    def features(self):
        gen = torch.Generator().manual_seed(self.seed)
        return torch.randn(self.frames, N_MELS, generator=gen)

    def targets(self):
        gen = torch.Generator().manual_seed(self.seed + 1)
        return torch.randint(0, N_PHONES, (self.frames,), generator=gen)


def load_manifest(n, seed):
    rng = random.Random(seed)
    return [Utterance(f"utt-{i:04d}", rng.randint(40, 220), 1000 + i) for i in range(n)]


def split_manifest(manifest, rank, world_size):
    """Longest first, then one block per process, to keep padding low."""
    ordered = sorted(manifest, key=lambda u: -u.frames)
    per_rank = len(ordered) // world_size
    return ordered[rank * per_rank:(rank + 1) * per_rank]


def collate(utts):
    width = max(u.frames for u in utts)
    feats = torch.zeros(len(utts), width, N_MELS)
    labels = torch.full((len(utts), width), -100)
    for row, utt in enumerate(utts):
        feats[row, :utt.frames] = utt.features()
        labels[row, :utt.frames] = utt.targets()
    return feats, labels


class BudgetedBatches:
    """Yields padded batches until the epoch's frame budget is used up."""

    def __init__(self, utterances, per_batch, frame_budget):
        self.utterances = utterances
        self.per_batch = per_batch
        self.frame_budget = frame_budget

    def __iter__(self):
        spent = 0
        pending = []
        for utt in self.utterances:
            pending.append(utt)
            if len(pending) < self.per_batch:
                continue
            padded = self.per_batch * max(u.frames for u in pending)
            if spent + padded > self.frame_budget:
                return
            spent += padded
            yield collate(pending)
            pending = []


class PhoneNet(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.conv = nn.Conv1d(N_MELS, hidden, 5, padding=2)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, N_PHONES)

    def forward(self, feats):
        x = torch.relu(self.conv(feats.transpose(1, 2))).transpose(1, 2)
        x, _ = self.rnn(x)
        return self.out(x)


def run_epoch(model, batches, optim, rank, epoch):
    total, steps = 0.0, 0
    for feats, labels in batches:
        logits = model(feats)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        total += loss.item()
        steps += 1
        if steps % 4 == 0:
            log.info("epoch %d step %d loss %.4f", epoch, steps, loss.item())
    return total / max(steps, 1), steps


def collect_report(mean_loss, steps):
    rows = [None] * dist.get_world_size()
    dist.all_gather_object(rows, {"loss": mean_loss, "steps": steps})
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--utterances", type=int, default=160)
    p.add_argument("--per-batch", type=int, default=4)
    p.add_argument("--frame-budget", type=int, default=7000)
    p.add_argument("--epochs", type=int, default=3)
    p.add_argument("--hidden", type=int, default=24)
    args = p.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.set_num_threads(1)
    torch.manual_seed(5)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")

    shard = split_manifest(load_manifest(args.utterances, seed=5), rank, world)
    model = DDP(PhoneNet(args.hidden))
    optim = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        batches = BudgetedBatches(shard, args.per_batch, args.frame_budget)
        mean_loss, steps = run_epoch(model, batches, optim, rank, epoch)
        report = collect_report(mean_loss, steps)
        if rank == 0:
            log.info("epoch %d report %s", epoch, report)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
