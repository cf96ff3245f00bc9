"""Causal toy language model with transformers.Trainer and an operator-controlled stop."""
import argparse
import os
import tempfile
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments


class Blocks(Dataset):
    def __init__(self, n=400, length=16, vocab=32):
        g = torch.Generator().manual_seed(6)
        start = torch.randint(0, vocab, (n, 1), generator=g)
        self.data = (start + torch.arange(length)) % vocab

    def __len__(self):
        return len(self.data)

    def __getitem__(self, i):
        return {"input_ids": self.data[i]}


class TinyLM(nn.Module):
    def __init__(self, vocab=32, dim=24):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        h, _ = self.rnn(self.emb(input_ids[:, :-1]))
        logits = self.out(h)
        return {"loss": F.cross_entropy(logits.flatten(0, 1), input_ids[:, 1:].flatten()), "logits": logits}


class OperatorStop(TrainerCallback):
    """Ends the run when the operator puts a STOP file into the working directory of the node."""

    def __init__(self, workdir: Path, every=5):
        self.stop_file = workdir / "STOP"
        self.every = every

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step % self.every:
            return
        if self.stop_file.exists():
            print(f"stop requested at step {state.global_step}", flush=True)
            control.should_training_stop = True


class Operator(TrainerCallback):
    """Stands for the person at the console of one node."""

    def __init__(self, workdir: Path, at_step):
        self.workdir, self.at_step = workdir, at_step

    def on_step_begin(self, args, state, control, **kwargs):
        if state.global_step == self.at_step:
            (self.workdir / "STOP").touch()


class LossTable(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and logs and "loss" in logs:
            print(f"step {state.global_step:4d} loss {float(logs['loss']):.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=float, default=3)
    cli = parser.parse_args()
    rank = int(os.environ["RANK"])
    with tempfile.TemporaryDirectory(prefix=f"node{rank}_") as tmp:
        workdir = Path(tmp)
        args = TrainingArguments(
            output_dir=str(workdir / "out"), use_cpu=True, ddp_backend="gloo", num_train_epochs=cli.epochs,
            per_device_train_batch_size=8, learning_rate=5e-3, logging_steps=5, save_strategy="no",
            report_to=[], disable_tqdm=True, dataloader_pin_memory=False, remove_unused_columns=False,
        )
        callbacks = [OperatorStop(workdir), LossTable()]
        if rank == 1:
            callbacks.append(Operator(workdir, at_step=22))
        trainer = Trainer(model=TinyLM(), args=args, train_dataset=Blocks(), callbacks=callbacks)
        trainer.train()
        steps = trainer.accelerator.gather(torch.tensor([trainer.state.global_step]))
        if trainer.is_world_process_zero():
            print("steps", steps.tolist())


if __name__ == "__main__":
    main()
