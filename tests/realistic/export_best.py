"""Autoencoder run: fit, export a checkpoint under an alias, then evaluate on held-out data."""
import argparse
import logging
import os
import shutil
import tempfile
from pathlib import Path

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("autoencoder")

DEFAULTS = {
    "data": {"train": 256, "heldout": 64, "features": 20, "batch_size": 16},
    "model": {"latent": 5, "lr": 4e-3},
    "trainer": {"max_epochs": 3},
    "output": {"alias": "autoencoder.ckpt", "keep": True},
}


class Autoencoder(L.LightningModule):
    def __init__(self, features, latent, lr):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Linear(features, 32), nn.GELU(), nn.Linear(32, latent))
        self.decoder = nn.Sequential(nn.Linear(latent, 32), nn.GELU(), nn.Linear(32, features))

    def _loss(self, batch):
        (x,) = batch
        return nn.functional.mse_loss(self.decoder(self.encoder(x)), x)

    def training_step(self, batch, batch_idx):
        return self._loss(batch)

    def validation_step(self, batch, batch_idx):
        self.log("heldout_mse", self._loss(batch), sync_dist=True)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


def make_loaders(cfg):
    gen = torch.Generator().manual_seed(8)
    basis = torch.randn(4, cfg["features"], generator=gen)
    sets = []
    for size in (cfg["train"], cfg["heldout"]):
        codes = torch.randn(size, 4, generator=gen)
        sets.append(TensorDataset(codes @ basis + 0.05 * torch.randn(size, cfg["features"], generator=gen)))
    train, heldout = sets
    return (
        DataLoader(train, batch_size=cfg["batch_size"], shuffle=True),
        DataLoader(heldout, batch_size=cfg["batch_size"]),
    )


def resolve_output(cfg):
    run = os.environ.get("MASTER_PORT", "0")
    folder = Path(tempfile.gettempdir()) / f"autoencoder-{run}"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / cfg["alias"]


def write_card(path, trainer, cfg):
    lines = [f"epochs: {trainer.current_epoch}", f"steps: {trainer.global_step}", f"latent: {cfg['model']['latent']}"]
    path.with_suffix(".txt").write_text("\n".join(lines) + "\n")


def finalize(trainer, cfg):
    """Leave one checkpoint under a name that does not change from run to run."""
    target = resolve_output(cfg["output"])
    if trainer.is_global_zero:
        if target.exists():
            shutil.move(str(target), str(target) + ".previous")
        trainer.save_checkpoint(target)
        write_card(target, trainer, cfg)
        log.info("exported %s", target)
    return target


def build_trainer(cfg):
    return L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=cfg["max_epochs"], logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-epochs", type=int, default=DEFAULTS["trainer"]["max_epochs"])
    parser.add_argument("--skip-eval", action="store_true")
    args = parser.parse_args()
    cfg = {**DEFAULTS, "trainer": {"max_epochs": args.max_epochs}}
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    torch.set_num_threads(1)
    L.seed_everything(5, verbose=False)

    train, heldout = make_loaders(cfg["data"])
    model = Autoencoder(cfg["data"]["features"], cfg["model"]["latent"], cfg["model"]["lr"])
    trainer = build_trainer(cfg["trainer"])
    trainer.fit(model, train)
    target = finalize(trainer, cfg)
    if not args.skip_eval:
        results = trainer.validate(model, heldout, verbose=False)
        log.info("rank %d: %s on %s", trainer.global_rank, target.name, results)


if __name__ == "__main__":
    main()
