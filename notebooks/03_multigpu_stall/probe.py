"""Trains a linear classifier on saved embeddings; each rank takes its own rows."""

import itertools

import torch
from embeddings import CLASSES, WIDTH, saved_embeddings
from gpt import make_fabric
from results import Cost, write_result
from torch import nn

BATCH = 256


def main() -> None:
    path = saved_embeddings()
    with Cost() as cost:
        table = torch.load(path, map_location="cpu")
        embeddings = table["embeddings"].float()
    labels = table["labels"]

    fabric = make_fabric()
    fabric.launch()
    torch.manual_seed(7)
    probe = fabric.setup_module(nn.Linear(WIDTH, CLASSES))
    optimizer = fabric.setup_optimizers(torch.optim.Adam(probe.parameters(), lr=0.01))
    own = slice(fabric.global_rank, None, fabric.world_size)
    batches = zip(embeddings[own].split(BATCH), labels[own].split(BATCH), strict=True)
    for steps, (inputs, targets) in enumerate(itertools.islice(batches, 5), start=1):
        loss = nn.functional.cross_entropy(probe(inputs), targets)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(f"step {steps}: loss {loss.item():.3f}")
    write_result(fabric, steps, loss, probe, cost, table["embeddings"])


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
