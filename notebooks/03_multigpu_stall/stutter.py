"""Trains a tagger, and measures it on held-out texts after each step."""

import argparse

import torch
from lightning.fabric import Fabric
from results import Cost, write_result
from torch import Tensor, nn

STEPS, WORDS, TAGS = 90, 1000, 8


def accuracy(model: nn.Module, texts: Tensor) -> Tensor:
    with torch.no_grad():
        found = model(texts).argmax(-1)
    return (found == texts % TAGS).double().mean()


def measure(fabric: Fabric, model: nn.Module, texts: Tensor, who: str) -> Tensor | None:
    if who == "all":
        own = texts[fabric.global_rank :: fabric.world_size]
        return fabric.all_reduce(accuracy(model, own))
    return accuracy(model, texts) if fabric.is_global_zero else None


def main(who: str) -> None:
    fabric = Fabric(accelerator="cpu", devices=2, strategy="ddp")
    fabric.launch()
    torch.manual_seed(7)
    with Cost() as cost:
        tagger = nn.Sequential(
            nn.Embedding(WORDS, 256), nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, TAGS)
        )
    model = fabric.setup_module(tagger)
    optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=0.001))
    held_out = torch.randint(WORDS, (80, 64))
    source = torch.Generator().manual_seed(fabric.global_rank)
    for steps in range(1, STEPS + 1):
        texts = torch.randint(WORDS, (4, 64), generator=source)
        loss = nn.functional.cross_entropy(model(texts).flatten(0, 1), texts.flatten() % TAGS)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        right = measure(fabric, tagger, held_out, who)
        if right is not None:
            fabric.print(f"step {steps}: {100 * right.item():.0f} % right")
    write_result(fabric, steps, loss, model, cost)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--measures", choices=["zero", "all"], default="zero")
    main(parser.parse_args().measures)
    torch.distributed.destroy_process_group()
