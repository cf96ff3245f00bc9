"""Trains a small GPT that is sharded over all ranks; all gather its state, one rank writes it."""

from argparse import Namespace
from pathlib import Path

import gpt
import torch
import torch.distributed.checkpoint as dcp
from cost import Cost
from lightning import Fabric
from proof import checkpoints, compare, whole, write_result
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

FULL = StateDictOptions(full_state_dict=True)


def save(fabric: Fabric, path: Path, model: nn.Module, options: Namespace) -> None:
    if options.format == "sharded":
        dcp.save(model.state_dict(), checkpoint_id=path)
    else:
        state = get_model_state_dict(model, options=FULL)
    if fabric.global_rank != options.main_rank:
        return
    if options.format == "full":
        torch.save({"model": state}, path)
    path.with_name("latest").write_text(path.name)
    print(f"saved {path.name}", flush=True)
    fabric.barrier()


def load(fabric: Fabric, path: Path, options: Namespace) -> nn.Module:
    model = fabric.setup_module(gpt.GPT())
    if options.format == "sharded":
        dcp.load(model.state_dict(), checkpoint_id=path)
    else:
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
                save(fabric, path, model, options)
            print(f"rank {fabric.global_rank}: the save took {cost}", flush=True)
            fabric.barrier()
        compared = compare(whole(model), load(fabric, path, options))
        write_result(fabric, steps, loss, model, compared, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
