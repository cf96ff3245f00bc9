"""Trains a small GPT, sharded over all ranks, and keeps the best checkpoint."""

from pathlib import Path

import gpt
import torch
from lab_tools import checkpoint_folder, compare, full_state, write_result
from lightning import Fabric
from torch import Tensor, nn


def save(fabric: Fabric, path: Path, model: nn.Module) -> None:
    fabric.save(path, {"model": model})
    if fabric.global_rank == 0:
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
    args = gpt.parse_args(__doc__)
    fabric = gpt.make_fabric(args)
    with checkpoint_folder() as folder:
        fabric.launch()
        fabric.seed_everything(7)
        model = fabric.setup_module(gpt.GPT())
        optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=0.001))
        best = float("inf")
        for epoch in range(4):
            for tokens in gpt.batches(fabric, epoch):
                loss = model(tokens)
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            fabric.print(f"epoch {epoch}: loss {loss.item():.3f}")
            validation = validate(fabric, model)
            print(f"rank {fabric.global_rank}: validation loss {validation.item():.3f}", flush=True)
            state = full_state(model)
            if validation < best:
                best, best_epoch, best_state = validation, epoch, state
                save(fabric, folder / "best.ckpt", model)
        compared = compare(best_state, load(fabric, folder / "best.ckpt"))
        write_result(fabric, folder, model, loss, compared, best_epoch=best_epoch)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
