"""Trains a small GPT, sharded over all ranks, and writes its checkpoints without Fabric."""

from pathlib import Path

import gpt
import torch
import torch.distributed.checkpoint as dcp
from lab_tools import checkpoint_folder, compare, full_state, write_result
from lightning import Fabric
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

FULL = StateDictOptions(full_state_dict=True)


def save(fabric: Fabric, path: Path, model: nn.Module, layout: str) -> None:
    if fabric.global_rank == 0:
        if layout == "sharded":
            dcp.save(model.state_dict(), checkpoint_id=path)
        else:
            state = get_model_state_dict(model, options=FULL)
            torch.save({"model": state}, path)
        print(f"saved {path.name}", flush=True)
    fabric.barrier()


def load(fabric: Fabric, path: Path, layout: str) -> nn.Module:
    model = fabric.setup_module(gpt.GPT())
    if layout == "sharded":
        dcp.load(model.state_dict(), checkpoint_id=path)
    else:
        fabric.load(path, {"model": model})
    return model


def main() -> None:
    args = gpt.parse_args(__doc__)
    fabric = gpt.make_fabric(args)
    with checkpoint_folder() as folder:
        fabric.launch()
        fabric.seed_everything(7)
        model = fabric.setup_module(gpt.GPT())
        optimizer = fabric.setup_optimizers(torch.optim.Adam(model.parameters(), lr=0.001))
        for epoch in range(2):
            for tokens in gpt.batches(fabric, epoch):
                loss = model(tokens)
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            fabric.print(f"epoch {epoch}: loss {loss.item():.3f}")
            path = folder / f"epoch-{epoch}.ckpt"
            save(fabric, path, model, args.format)
        compared = compare(full_state(model), load(fabric, path, args.format))
        write_result(fabric, folder, model, loss, compared)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
