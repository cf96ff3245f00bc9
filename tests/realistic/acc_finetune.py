"""Fine-tuning of a frozen backbone's head with Accelerate (evaluation and saving each epoch)."""
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    dim: int = 20
    classes: int = 4
    train: int = 320
    val: int = 100
    batch_size: int = 16
    epochs: int = 3
    lr: float = 3e-3
    accum: int = 2


class HeadOnBackbone(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(cfg.dim, 64), nn.Tanh())
        for p in self.backbone.parameters():
            p.requires_grad_(False)
        self.head = nn.Linear(64, cfg.classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def make(cfg, n, seed):
    g = torch.Generator().manual_seed(seed)
    y = torch.randint(0, cfg.classes, (n,), generator=g)
    x = torch.randn(n, cfg.dim, generator=g)
    x[torch.arange(n), y] += 2.0
    return TensorDataset(x, y)


def train_epoch(accelerator, model, loader, optimizer, scheduler):
    model.train()
    for step, (x, y) in enumerate(loader):
        with accelerator.accumulate(model):
            loss = F.cross_entropy(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    return loss.item()


@torch.no_grad()
def evaluate(accelerator, model, loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        pred = model(x).argmax(-1)
        pred, y = accelerator.gather_for_metrics((pred, y))
        hits += (pred == y).sum().item()
        total += y.numel()
    return hits / total


def save(accelerator, model, path):
    accelerator.wait_for_everyone()
    state = accelerator.get_state_dict(model)
    if accelerator.is_main_process:
        torch.save(state, path)


def main():
    cfg = Config()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=cfg.accum)
    set_seed(3)
    model = HeadOnBackbone(cfg)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=cfg.lr)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    train_loader = DataLoader(make(cfg, cfg.train, 0), batch_size=cfg.batch_size, shuffle=True)
    val_loader = DataLoader(make(cfg, cfg.val, 1), batch_size=cfg.batch_size)
    model, optimizer, scheduler, train_loader, val_loader = accelerator.prepare(
        model, optimizer, scheduler, train_loader, val_loader)

    out = os.path.join(tempfile.gettempdir(), "acc_finetune.pt")
    best = 0.0
    for epoch in range(cfg.epochs):
        loss = train_epoch(accelerator, model, train_loader, optimizer, scheduler)
        if accelerator.is_main_process:
            acc = evaluate(accelerator, model, val_loader)
            best = max(best, acc)
            print(f"epoch {epoch}: loss {loss:.4f} accuracy {acc:.3f} (best {best:.3f})", flush=True)
        save(accelerator, model, out)

    accelerator.print("finished")
    accelerator.end_training()


if __name__ == "__main__":
    main()
