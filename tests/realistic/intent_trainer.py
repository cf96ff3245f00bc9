"""Fine-tune a small intent classifier with the Hugging Face Trainer (CPU, DDP)."""
import argparse
import logging
import os
import random
import tempfile
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

log = logging.getLogger("intent")

INTENTS = ["balance", "transfer", "card_lost", "card_limit", "greeting", "other"]
WORDS = ["how", "much", "money", "send", "to", "my", "lost", "the", "card", "hi", "raise", "limit"]


@dataclass
class RunConfig:
    max_steps: int = 30
    log_every: int = 5
    batch_size: int = 8
    seq_len: int = 12
    dim: int = 32
    lr: float = 5e-4
    seed: int = 11


class UtteranceDataset(Dataset):
    """Synthetic utterances, already numericalised."""

    def __init__(self, n, seq_len, seed):
        rng = random.Random(seed)
        self.items = []
        for _ in range(n):
            ids = [rng.randrange(1, len(WORDS) + 1) for _ in range(rng.randint(4, seq_len))]
            label = sum(ids) % len(INTENTS)
            ids = ids + [0] * (seq_len - len(ids))
            self.items.append((ids, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        ids, label = self.items[i]
        return {"input_ids": torch.tensor(ids), "labels": torch.tensor(label)}


class IntentModel(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.embed = nn.Embedding(len(WORDS) + 1, dim, padding_idx=0)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, len(INTENTS))

    def forward(self, input_ids, labels=None):
        hidden, _ = self.encoder(self.embed(input_ids))
        logits = self.head(hidden.mean(dim=1))
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = nn.functional.cross_entropy(logits, labels)
        return out


class StepPrinter(TrainerCallback):
    def __init__(self, every):
        self.every = every

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every == 0:
            log.info("step %d / %d done", state.global_step, state.max_steps)


def setup_logging(rank):
    level = logging.INFO if rank == 0 else logging.WARNING
    logging.basicConfig(level=level, format=f"[rank{rank}] %(levelname)s %(message)s")


def verbosity_options(cfg, rank):
    """What each worker prints; only the first one talks."""
    opts = {
        "logging_strategy": "steps",
        "logging_steps": cfg.log_every,
        "disable_tqdm": True,
        "report_to": "none",
    }
    if rank != 0:
        opts["logging_steps"] = 10 * cfg.max_steps
        opts["log_level"] = "error"
    return opts


def build_args(cfg, rank, out_dir):
    return TrainingArguments(
        output_dir=out_dir,
        max_steps=cfg.max_steps,
        per_device_train_batch_size=cfg.batch_size,
        learning_rate=cfg.lr,
        save_strategy="no",
        seed=cfg.seed,
        use_cpu=True,
        ddp_backend="gloo",
        dataloader_num_workers=0,
        **verbosity_options(cfg, rank),
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int, default=30)
    parser.add_argument("--log-every", type=int, default=5)
    ns = parser.parse_args()
    cfg = RunConfig(max_steps=ns.max_steps, log_every=ns.log_every)

    rank = int(os.environ.get("RANK", 0))
    torch.set_num_threads(1)
    setup_logging(rank)
    set_seed(cfg.seed)

    out_dir = os.path.join(tempfile.gettempdir(), "intent_trainer_out")
    train_set = UtteranceDataset(480, cfg.seq_len, cfg.seed)
    trainer = Trainer(
        model=IntentModel(cfg.dim),
        args=build_args(cfg, rank, out_dir),
        train_dataset=train_set,
        callbacks=[StepPrinter(cfg.log_every)],
    )
    log.info("training on %d utterances", len(train_set))
    result = trainer.train()
    log.info("finished, mean loss %.4f", result.training_loss)


if __name__ == "__main__":
    main()
