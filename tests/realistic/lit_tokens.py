"""Masked-token model in Lightning with manual optimization and a token mask."""
import os
from dataclasses import dataclass

import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset, DistributedSampler

PAD, MASK = 0, 1


@dataclass
class Config:
    vocab: int = 40
    dim: int = 24
    seq: int = 16
    docs: int = 256
    batch_size: int = 4
    lr: float = 2e-3
    mask_prob: float = 0.15
    epochs: int = 2


class Docs(Dataset):
    def __init__(self, cfg):
        g = torch.Generator().manual_seed(8)
        self.items = []
        for i in range(cfg.docs):
            doc = torch.randint(2, cfg.vocab, (cfg.seq,), generator=g)
            length = int(torch.randint(6, cfg.seq + 1, (1,), generator=g))
            mask = torch.rand(cfg.seq, generator=g) < cfg.mask_prob
            # scanned pages have no text that can be masked
            if i in (41, 43, 45, 47):
                mask[:] = False
            else:
                mask[0] = True
            doc[length:] = PAD
            self.items.append((doc, mask & (doc != PAD)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class TinyEncoder(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.tok = nn.Embedding(cfg.vocab, cfg.dim, padding_idx=PAD)
        self.pos = nn.Parameter(torch.zeros(cfg.seq, cfg.dim))
        layer = nn.TransformerEncoderLayer(cfg.dim, 2, 48, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(cfg.dim, cfg.vocab)

    def forward(self, ids):
        h = self.tok(ids) + self.pos
        return self.out(self.enc(h, src_key_padding_mask=ids == PAD))


class MaskedLM(L.LightningModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.automatic_optimization = False
        self.model = TinyEncoder(cfg)
        self.tokens_seen = 0

    def masked_loss(self, ids, mask):
        if not mask.any():
            return None
        corrupted = torch.where(mask, torch.full_like(ids, MASK), ids)
        logits = self.model(corrupted)
        return F.cross_entropy(logits[mask], ids[mask])

    def training_step(self, batch, batch_idx):
        ids, mask = batch
        loss = self.masked_loss(ids, mask)
        if loss is None:
            return
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(loss)
        self.clip_gradients(optimizer, gradient_clip_val=1.0, gradient_clip_algorithm="norm")
        optimizer.step()
        self.tokens_seen += int(mask.sum())
        self.log("loss", loss)

    def on_train_epoch_end(self):
        seen = self.all_gather(torch.tensor(self.tokens_seen))
        self.print(f"epoch {self.current_epoch}: {int(seen.sum())} masked tokens")

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.cfg.lr)


class DocsModule(L.LightningDataModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg

    def train_dataloader(self):
        docs = Docs(self.cfg)
        # documents are stored in reading order, keep it
        sampler = DistributedSampler(docs, self.trainer.world_size, self.trainer.global_rank, shuffle=False)
        return DataLoader(docs, batch_size=self.cfg.batch_size, sampler=sampler)


def main():
    cfg = Config()
    L.seed_everything(2, verbose=False)
    trainer = L.Trainer(max_epochs=cfg.epochs, accelerator="cpu", devices=2, strategy="ddp", logger=False,
                        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
    trainer.fit(MaskedLM(cfg), datamodule=DocsModule(cfg))


if __name__ == "__main__":
    main()
