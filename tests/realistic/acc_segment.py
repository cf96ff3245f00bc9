"""Segmentation of 1-D signals with Accelerate and automatic checkpoint naming."""
import argparse
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import ProjectConfiguration, set_seed
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    length: int = 48
    train: int = 192
    batch_size: int = 8
    epochs: int = 8
    lr: float = 5e-3
    keep: int = 2


class Signals(Dataset):
    def __init__(self, cfg, seed):
        self.cfg, self.seed = cfg, seed

    def __len__(self):
        return self.cfg.train

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(self.seed * 100003 + i)
        mask = torch.zeros(self.cfg.length)
        start = int(torch.randint(0, self.cfg.length - 12, (1,), generator=g))
        mask[start:start + 12] = 1.0
        # batches alternate between the two instruments, the second has the poor amplifier
        noise = 0.3 if (i // self.cfg.batch_size) % 2 == 0 else 2.5
        return (mask + noise * torch.randn(self.cfg.length, generator=g))[None], mask


class UNet1d(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.down = nn.Conv1d(1, width, 5, padding=2)
        self.mid = nn.Conv1d(width, width, 5, padding=2)
        self.up = nn.Conv1d(2 * width, 1, 5, padding=2)

    def forward(self, x):
        a = F.relu(self.down(x))
        b = F.relu(self.mid(F.max_pool1d(a, 2)))
        b = F.interpolate(b, scale_factor=2)
        return self.up(torch.cat([a, b], 1)).squeeze(1)


class BestTracker:
    def __init__(self, min_delta=0.01):
        self.best = None
        self.min_delta = min_delta

    def improved(self, value):
        if self.best is None or value < self.best - self.min_delta:
            self.best = value
            return True
        return False


def run_epoch(accelerator, model, loader, optimizer):
    total = torch.zeros(())
    for x, mask in loader:
        loss = F.binary_cross_entropy_with_logits(model(x), mask)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        total += loss.detach()
    return total / len(loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Config.epochs)
    args = parser.parse_args()
    cfg = Config(epochs=args.epochs)

    with tempfile.TemporaryDirectory() as tmp:
        project = ProjectConfiguration(project_dir=tmp, automatic_checkpoint_naming=True, total_limit=cfg.keep)
        accelerator = Accelerator(cpu=True, project_config=project)
        set_seed(0)
        model = UNet1d()
        optimizer = torch.optim.Adam(model.parameters(), lr=cfg.lr)
        loader = DataLoader(Signals(cfg, 1), batch_size=cfg.batch_size, shuffle=False)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        tracker = BestTracker()

        for epoch in range(cfg.epochs):
            mean = run_epoch(accelerator, model, loader, optimizer)
            if tracker.improved(mean.item()):
                accelerator.save_state()
            accelerator.print(f"epoch {epoch}: loss {mean.item():.4f} best {tracker.best:.4f}")

        everyone = accelerator.gather(torch.tensor([tracker.best]))
        if accelerator.is_main_process:
            print("best per process", [round(v, 4) for v in everyone.tolist()])
        accelerator.end_training()


if __name__ == "__main__":
    main()
