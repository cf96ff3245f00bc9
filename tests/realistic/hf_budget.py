"""transformers Trainer with a callback that stops before the queue's wall clock ends."""

import os
import tempfile
import time

import torch
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments, set_seed


class WallClock(TrainerCallback):
    """Stop when the slot of this node is nearly over."""

    def __init__(self, seconds, reserve):
        self.seconds = seconds
        self.reserve = reserve
        self.began = time.monotonic()

    def remaining(self):
        return self.seconds - (time.monotonic() - self.began)

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step < 5:
            return control
        if self.remaining() < self.reserve:
            control.should_training_stop = True
        return control


class Rows(Dataset):
    def __init__(self, size):
        generator = torch.Generator().manual_seed(2)
        self.features = torch.randn(size, 6, generator=generator)
        self.labels = (self.features.sum(-1) > 0).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return {"features": self.features[index], "labels": self.labels[index]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))

    def forward(self, features, labels=None):
        logits = self.body(features)
        time.sleep(0.02)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def main():
    set_seed(6)
    rank = int(os.environ["RANK"])
    slot = 4.0 if rank == 0 else 6.0
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        ddp_backend="gloo",
        per_device_train_batch_size=4,
        num_train_epochs=50,
        logging_steps=1000,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
    )
    trainer = Trainer(
        model=Classifier(),
        args=arguments,
        train_dataset=Rows(400),
        callbacks=[WallClock(slot, reserve=1.0)],
    )
    trainer.train()
    trainer.accelerator.wait_for_everyone()
    if trainer.is_world_process_zero():
        print("done", trainer.state.global_step, flush=True)


if __name__ == "__main__":
    main()
