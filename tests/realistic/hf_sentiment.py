"""Sentiment head trained with transformers.Trainer; evaluation is triggered by a callback."""
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments


class Sentences(Dataset):
    """Token ids with a label; labels of the crowd-sourced half are noisy."""

    def __init__(self, n, seed, vocab=60, length=10):
        g = torch.Generator().manual_seed(seed)
        self.ids = torch.randint(0, vocab, (n, length), generator=g)
        self.labels = (self.ids.float().mean(1) > vocab / 2).long()
        flip = torch.rand(n, generator=g) < 0.4
        odd = (torch.arange(n) // 8) % 2 == 1
        self.labels[flip & odd] = 1 - self.labels[flip & odd]

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return {"input_ids": self.ids[i], "labels": self.labels[i]}


class BagModel(nn.Module):
    def __init__(self, vocab=60, dim=16):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.fc = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 2))
        self.last_loss = None

    def forward(self, input_ids, labels=None):
        logits = self.fc(self.emb(input_ids).mean(1))
        out = {"logits": logits}
        if labels is not None:
            out["loss"] = F.cross_entropy(logits, labels)
            if self.training:
                self.last_loss = out["loss"].detach()
        return out


class EvaluateOnProgress(TrainerCallback):
    """Evaluation is expensive: run it only after the training loss fell by another 10 percent."""

    def __init__(self, model, factor=0.9):
        self.model = model
        self.factor = factor
        self.mark = None

    def on_step_end(self, args, state, control, **kwargs):
        loss = self.model.last_loss.item()
        if self.mark is None:
            self.mark = 0.7
        if loss < self.mark * self.factor:
            self.mark = loss
            control.should_evaluate = True
        return control


class Progress(TrainerCallback):
    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        if state.is_world_process_zero:
            print(f"step {state.global_step}: {metrics}", flush=True)


def compute_metrics(pred):
    logits, labels = pred
    return {"accuracy": float((logits.argmax(-1) == labels).mean())}


def main():
    with tempfile.TemporaryDirectory() as out:
        args = TrainingArguments(
            output_dir=out,
            use_cpu=True,
            ddp_backend="gloo",
            per_device_train_batch_size=8,
            per_device_eval_batch_size=16,
            num_train_epochs=3,
            learning_rate=1e-2,
            logging_steps=10,
            eval_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
            seed=3,
        )
        model = BagModel()
        trainer = Trainer(model=model, args=args, train_dataset=Sentences(480, 0), eval_dataset=Sentences(160, 1),
                          compute_metrics=compute_metrics, callbacks=[EvaluateOnProgress(model), Progress()])
        result = trainer.train()
        trainer.accelerator.wait_for_everyone()
        if trainer.is_world_process_zero():
            print("training loss", round(result.training_loss, 4))


if __name__ == "__main__":
    main()
