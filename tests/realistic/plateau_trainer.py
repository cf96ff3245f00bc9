"""Transformers Trainer with an own callback that ends training when the loss has stopped improving."""
import logging
import os
import tempfile
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import Dataset, SequentialSampler
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed

logger = logging.getLogger("plateau")

BATCH = 8


class Reviews(Dataset):
    """Bags of words; the crawled half (every second block) has unreliable stars."""

    def __init__(self, size, vocab=120, length=10, seed=0):
        gen = torch.Generator().manual_seed(seed)
        self.tokens = torch.randint(2, vocab, (size, length), generator=gen)
        self.stars = (self.tokens.float().mean(dim=1) > vocab / 2).long()
        crawled = (torch.arange(size) // BATCH) % 2 == 1
        self.stars[crawled] = torch.randint(0, 2, (int(crawled.sum()),), generator=gen)
        clean = ~crawled
        self.tokens[clean, 0] = self.stars[clean]

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, i):
        return {"input_ids": self.tokens[i], "labels": self.stars[i]}


class StarModel(nn.Module):
    def __init__(self, vocab=120, dim=24):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.first = nn.Linear(dim, dim)
        self.out = nn.Linear(2 * dim, 2)

    def forward(self, input_ids, labels=None):
        vectors = self.embed(input_ids)
        features = torch.cat([self.first(vectors[:, 0]), vectors.mean(dim=1)], dim=-1)
        logits = self.out(torch.relu(features))
        loss = nn.functional.cross_entropy(logits, labels) if labels is not None else None
        return {"loss": loss, "logits": logits}


@dataclass
class LossBoard:
    """Where the trainer leaves the newest loss for the callbacks."""
    value: float = 0.0
    smoothed: float = None

    def post(self, value, momentum=0.8):
        self.value = value
        self.smoothed = value if self.smoothed is None else momentum * self.smoothed + (1 - momentum) * value


class BoardTrainer(Trainer):
    def __init__(self, *args, board, **kwargs):
        super().__init__(*args, **kwargs)
        self.board = board

    def _get_train_sampler(self, train_dataset=None):
        return SequentialSampler(train_dataset if train_dataset is not None else self.train_dataset)

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        outputs = model(**inputs)
        self.board.post(float(outputs["loss"].detach()))
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]


class PlateauStop(TrainerCallback):
    def __init__(self, board, patience=12, min_delta=0.002, warmup=10):
        self.board, self.patience, self.min_delta, self.warmup = board, patience, min_delta, warmup
        self.best = float("inf")
        self.stale = 0

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step <= self.warmup:
            return control
        if self.board.smoothed < self.best - self.min_delta:
            self.best, self.stale = self.board.smoothed, 0
        else:
            self.stale += 1
        if self.stale >= self.patience:
            logger.info("no better loss than %.3f for %d steps", self.best, self.stale)
            control.should_training_stop = True
        return control


def training_arguments(steps):
    return TrainingArguments(
        output_dir=os.path.join(tempfile.gettempdir(), "plateau"), use_cpu=True, max_steps=steps,
        per_device_train_batch_size=BATCH, per_device_eval_batch_size=BATCH, learning_rate=2e-2,
        logging_steps=200, save_strategy="no", report_to=[], disable_tqdm=True, ddp_find_unused_parameters=False,
        remove_unused_columns=False, lr_scheduler_type="constant",
    )


def main():
    logging.basicConfig(level=logging.INFO, format=f"[{os.environ['RANK']}] %(message)s")
    torch.set_num_threads(1)
    set_seed(31)
    board = LossBoard()
    trainer = BoardTrainer(
        model=StarModel(), args=training_arguments(steps=900), train_dataset=Reviews(1600, seed=1),
        eval_dataset=Reviews(160, seed=2), callbacks=[PlateauStop(board)], board=board,
    )
    result = trainer.train()
    logger.info("trained for %d steps", result.global_step)
    metrics = trainer.evaluate()
    logger.info("evaluation: %s", metrics)


if __name__ == "__main__":
    main()
