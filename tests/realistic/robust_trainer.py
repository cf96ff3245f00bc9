"""Training loop with an emergency checkpoint when something goes wrong in a step."""
import json
import os
import tempfile
import traceback
from dataclasses import asdict, dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, DistributedSampler


@dataclass
class Config:
    samples: int = 256
    batch_size: int = 8
    epochs: int = 2
    lr: float = 1e-2
    out_dir: str = os.path.join(tempfile.gettempdir(), "robust_trainer")


class Records(Dataset):
    """JSON lines with a feature vector and a class, as exported by the labelling tool."""

    def __init__(self, n):
        g = torch.Generator().manual_seed(1)
        x = torch.randn(n, 6, generator=g)
        y = (x.sum(1) > 0).long()
        self.lines = [json.dumps({"x": xi.tolist(), "y": int(yi)}) for xi, yi in zip(x, y)]
        # the export was cut in the middle of this line
        self.lines[135] = self.lines[135][:40]

    def __len__(self):
        return len(self.lines)

    def __getitem__(self, i):
        return self.lines[i]


def collate(lines):
    rows = [json.loads(line) for line in lines]
    return torch.tensor([r["x"] for r in rows]), torch.tensor([r["y"] for r in rows])


def emergency_save(model, cfg, step):
    """Collects the step of every worker and writes the weights once."""
    rank = dist.get_rank()
    steps = [None] * dist.get_world_size() if rank == 0 else None
    dist.gather_object(step, steps, dst=0)
    if rank == 0:
        os.makedirs(cfg.out_dir, exist_ok=True)
        torch.save({"model": model.module.state_dict(), "steps": steps, "cfg": asdict(cfg)},
                   os.path.join(cfg.out_dir, "emergency.pt"))
    dist.barrier()


def train_step(model, optimizer, batch):
    x, y = batch
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def train(model, optimizer, loader, sampler, cfg):
    step = 0
    history = []
    for epoch in range(cfg.epochs):
        sampler.set_epoch(epoch)
        batches = iter(loader)
        for _ in range(len(loader)):
            try:
                batch = next(batches)
                history.append(train_step(model, optimizer, batch))
                step += 1
            except (RuntimeError, ValueError) as err:
                traceback.print_exc()
                print(f"step {step} failed ({err}); saving what we have", flush=True)
                emergency_save(model, cfg, step)
                return history
        if dist.get_rank() == 0:
            print(f"epoch {epoch} loss {sum(history[-len(loader):]) / len(loader):.4f}", flush=True)
    return history


def main():
    cfg = Config()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = Records(cfg.samples)
    sampler = DistributedSampler(data, shuffle=False)
    loader = DataLoader(data, batch_size=cfg.batch_size, sampler=sampler, collate_fn=collate)
    model = DDP(nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)

    history = train(model, optimizer, loader, sampler, cfg)
    print(f"rank {dist.get_rank()} done after {len(history)} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
