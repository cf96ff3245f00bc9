"""Trains a small GPT that is sharded over all ranks, and saves it after every epoch."""

from pathlib import Path

import gpt
import torch
from cost import Cost
from lightning import Fabric
from proof import checkpoints, compare, whole, write_result
from torch import nn


def save(fabric: Fabric, path: Path, model: nn.Module, main_rank: int) -> None:
    if fabric.global_rank == main_rank:
        fabric.save(path, {"model": model})
        print(f"saved {path.name}", flush=True)


def load(fabric: Fabric, path: Path) -> nn.Module:
    model = fabric.setup_module(gpt.GPT())
    fabric.load(path, {"model": model})
    return model


def main() -> None:
    options = gpt.options(__doc__)
    fabric = gpt.make_fabric(options)
    with checkpoints() as folder:
        fabric.launch()
        fabric.seed_everything(7)
        model = fabric.setup_module(gpt.GPT())
        optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=0.001))
        steps = 0
        for epoch in range(2):
            for tokens in gpt.batches(fabric, epoch):
                loss = model(tokens)
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
            fabric.print(f"epoch {epoch}: loss {loss.item():.3f}")
            path = folder / f"epoch-{epoch}.ckpt"
            with Cost() as cost:
                save(fabric, path, model, options.main_rank)
            print(f"rank {fabric.global_rank}: the save took {cost}", flush=True)
        compared = compare(whole(model), load(fabric, path))
        write_result(fabric, steps, loss, model, compared, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
