"""A small GAN on 2-D points with Lightning Fabric."""
import argparse
import os
import tempfile
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric import Fabric
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Options:
    latent: int = 4
    points: int = 1024
    batch_size: int = 64
    epochs: int = 4
    lr_g: float = 1e-3
    lr_d: float = 2e-3
    sample_every: int = 4


def ring(n, seed=0):
    g = torch.Generator().manual_seed(seed)
    angle = torch.rand(n, generator=g) * 6.2832
    return TensorDataset(torch.stack([angle.cos(), angle.sin()], 1) + 0.05 * torch.randn(n, 2, generator=g))


def mlp(i, o, h=32):
    return nn.Sequential(nn.Linear(i, h), nn.LeakyReLU(0.2), nn.Linear(h, h), nn.LeakyReLU(0.2), nn.Linear(h, o))


class GanTrainer:
    def __init__(self, fabric: Fabric, opt: Options):
        self.fabric, self.opt = fabric, opt
        g, d = mlp(opt.latent, 2), mlp(2, 1)
        self.g, self.opt_g = fabric.setup(g, torch.optim.Adam(g.parameters(), lr=opt.lr_g, betas=(0.5, 0.99)))
        self.d, self.opt_d = fabric.setup(d, torch.optim.Adam(d.parameters(), lr=opt.lr_d, betas=(0.5, 0.99)))
        self.loader = fabric.setup_dataloaders(DataLoader(ring(opt.points), batch_size=opt.batch_size, shuffle=True))
        self.step = 0

    def noise(self, n):
        return torch.randn(n, self.opt.latent)

    def d_step(self, real):
        fake = self.g(self.noise(len(real))).detach()
        logits = self.d(torch.cat([real, fake]))
        target = torch.cat([torch.ones(len(real), 1), torch.zeros(len(fake), 1)])
        loss = F.binary_cross_entropy_with_logits(logits, target)
        self.opt_d.zero_grad()
        self.fabric.backward(loss)
        self.opt_d.step()
        return loss.item()

    def g_step(self, n):
        logits = self.d(self.g(self.noise(n)))
        loss = F.binary_cross_entropy_with_logits(logits, torch.ones(n, 1))
        self.opt_g.zero_grad()
        self.fabric.backward(loss)
        self.opt_g.step()
        return loss.item()

    @torch.no_grad()
    def coverage(self):
        """Share of the ring's sectors that are hit by samples of all processes."""
        points = self.fabric.all_gather(self.g(self.noise(256))).reshape(-1, 2)
        sector = ((torch.atan2(points[:, 1], points[:, 0]) + 3.1416) / 6.2832 * 16).long().clamp(0, 15)
        return len(sector.unique()) / 16

    def due(self):
        return self.step % self.opt.sample_every == 0

    def fit(self):
        for epoch in range(self.opt.epochs):
            for (real,) in self.loader:
                loss_d = self.d_step(real)
                loss_g = self.g_step(len(real))
                self.step += 1
                status = {"step": self.step, "d": round(loss_d, 4), "g": round(loss_g, 4)}
                status.update(coverage=self.coverage()) if self.due() and self.fabric.is_global_zero else None
                if self.due():
                    self.fabric.print(status)
            self.fabric.save(os.path.join(tempfile.gettempdir(), "fabric_gan.ckpt"), {"g": self.g, "d": self.d, "epoch": epoch})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=Options.epochs)
    args = parser.parse_args()
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp_find_unused_parameters_true")
    fabric.launch()
    fabric.seed_everything(0 + fabric.global_rank)
    GanTrainer(fabric, Options(epochs=args.epochs)).fit()


if __name__ == "__main__":
    main()
