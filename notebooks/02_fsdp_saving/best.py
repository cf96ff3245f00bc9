"""Trains a small GPT that is sharded over all ranks, and keeps the best of its epochs."""

from pathlib import Path

import gpt
import torch
from cost import Cost
from lightning import Fabric
from proof import checkpoints, compare, whole, write_result
from torch import Tensor, nn


def save(fabric: Fabric, path: Path, model: nn.Module, main_rank: int) -> None:
    fabric.save(path, {"model": model})
    if fabric.global_rank == main_rank:
        print(f"saved {path.name}", flush=True)


def load(fabric: Fabric, path: Path) -> nn.Module:
    model = fabric.setup_module(gpt.GPT())
    fabric.load(path, {"model": model})
    return model


def validate(fabric: Fabric, model: nn.Module) -> Tensor:
    model.eval()
    with torch.no_grad():
        loss = model(gpt.validation_batch(fabric))
    model.train()
    return loss


def main() -> None:
    options = gpt.options(__doc__)
    fabric = gpt.make_fabric(options)
    with checkpoints() as folder:
        fabric.launch()
        fabric.seed_everything(7)
        model = fabric.setup_module(gpt.GPT())
        optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=0.001))
        steps, best = 0, float("inf")
        for epoch in range(3):
            for tokens in gpt.batches(fabric, epoch):
                loss = model(tokens)
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
                steps += 1
            fabric.print(f"epoch {epoch}: loss {loss.item():.3f}")
            validation = validate(fabric, model)
            print(f"rank {fabric.global_rank}: validation loss {validation.item():.3f}", flush=True)
            parameters = whole(model)
            if validation < best:
                best, saved = validation, parameters
                with Cost() as cost:
                    save(fabric, folder / "best.ckpt", model, options.main_rank)
        compared = compare(saved, load(fabric, folder / "best.ckpt"))
        write_result(fabric, steps, loss, model, compared, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
