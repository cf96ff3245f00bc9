"""Accelerate: a job that goes on from the last checkpoint of its scratch folder."""

import os
import tempfile

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def scratch(accelerator):
    """Scratch is local to a node: each process has its own here."""
    name = f"unseen-acc-{os.getppid()}-{accelerator.process_index}"
    folder = os.path.join(tempfile.gettempdir(), name)
    os.makedirs(folder, exist_ok=True)
    return folder


def leave_checkpoint(folder, epoch):
    torch.save({"epoch": epoch}, os.path.join(folder, f"epoch{epoch}.pt"))


def first_epoch(folder):
    files = sorted(name for name in os.listdir(folder) if name.endswith(".pt"))
    if not files:
        return 0
    state = torch.load(os.path.join(folder, files[-1]), weights_only=True)
    return state["epoch"] + 1


def make_loader():
    generator = torch.Generator().manual_seed(31)
    features = torch.randn(256, 14, generator=generator)
    labels = (features[:, 0] * features[:, 1] > 0).float()
    return DataLoader(TensorDataset(features, labels), batch_size=16, shuffle=True)


def train_epoch(accelerator, model, optimizer, loader):
    model.train()
    losses = []
    for features, labels in loader:
        with accelerator.accumulate(model):
            logits = model(features).squeeze(-1)
            loss = nn.functional.binary_cross_entropy_with_logits(logits, labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).mean()


def main():
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    set_seed(5)
    folder = scratch(accelerator)
    if accelerator.is_main_process:
        leave_checkpoint(folder, 1)
    model = nn.Sequential(nn.Linear(14, 48), nn.ReLU(), nn.Linear(48, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    model, optimizer, loader = accelerator.prepare(model, optimizer, make_loader())
    start = first_epoch(folder)
    for epoch in range(start, 4):
        mean = train_epoch(accelerator, model, optimizer, loader)
        accelerator.print(f"epoch {epoch}: {mean.item():.3f}")
    weights = accelerator.get_state_dict(model)
    accelerator.wait_for_everyone()
    accelerator.save(weights, os.path.join(folder, "final.pth"))
    accelerator.end_training()


if __name__ == "__main__":
    main()
