"""Trains a small GPT, sharded over all ranks; each rank saves its own shards."""

from pathlib import Path

import gpt
import torch
import torch.distributed.checkpoint as dcp
from lab_tools import Cost, checkpoint_folder, compare, full_state, write_result
from lightning import Fabric
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save


def save(fabric: Fabric, path: Path, model: nn.Module, layout: str) -> None:
    dcp.save({"model": model.state_dict()}, checkpoint_id=path)
    if layout == "full" and fabric.global_rank == 0:
        dcp_to_torch_save(path, path.with_suffix(".pt"))
    fabric.barrier()


def load(fabric: Fabric, path: Path, layout: str) -> nn.Module:
    model = fabric.setup_module(gpt.GPT())
    if layout == "sharded":
        dcp.load({"model": model.state_dict()}, checkpoint_id=path)
    else:
        fabric.load(path.with_suffix(".pt"), {"model": model})
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
            with Cost() as cost:
                save(fabric, path, model, args.format)
            print(f"rank {fabric.global_rank}: the save took {cost}", flush=True)
        compared = compare(full_state(model), load(fabric, path, args.format))
        write_result(fabric, folder, model, loss, compared, memory=cost.memory, received=cost.received)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
