"""Trains a small GPT, sharded over all ranks; rank 0 fails to write one of its checkpoints."""

import shutil
from pathlib import Path

import gpt
import torch
import torch.distributed.checkpoint as dcp
from lab_tools import checkpoint_folder, compare, failing_write, full_state, write_result
from lightning import Fabric
from torch import nn
from torch.distributed.checkpoint import CheckpointException
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

FULL = StateDictOptions(full_state_dict=True)


def save(fabric: Fabric, path: Path, model: nn.Module, layout: str) -> None:
    if layout == "sharded":
        dcp.save(model.state_dict(), checkpoint_id=path)
    else:
        state = get_model_state_dict(model, options=FULL)
        if fabric.global_rank == 0:
            torch.save({"model": state}, path)


def all_succeeded(fabric: Fabric, success: bool) -> bool:
    """True on every rank if every rank has succeeded."""
    count = fabric.all_reduce(torch.tensor(float(success), device=fabric.device), reduce_op="sum")
    return count.item() == fabric.world_size


def keep_or_remove(part: Path, path: Path, keep: bool) -> None:
    if keep:
        part.rename(path)
    elif part.is_dir():
        shutil.rmtree(part)
    else:
        part.unlink(missing_ok=True)


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
        good, compared = None, 0
        for epoch in range(3):
            for tokens in gpt.batches(fabric, epoch):
                loss = model(tokens)
                fabric.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            fabric.print(f"epoch {epoch}: loss {loss.item():.3f}")
            path = folder / f"epoch-{epoch}.ckpt"
            part, written = path.with_suffix(".part"), True
            try:
                with failing_write(fabric, epoch):
                    save(fabric, part, model, args.format)
            except (OSError, RuntimeError, CheckpointException) as error:
                print(f"rank {fabric.global_rank}: {path.name} is not saved: {error!r:.80}", flush=True)
                written = False
            saved = all_succeeded(fabric, written)
            if fabric.global_rank == 0:
                keep_or_remove(part, path, saved)
            fabric.barrier()
            if saved:
                good, good_state = path, full_state(model)
            if good is None:
                fabric.print(f"epoch {epoch}: there is no checkpoint yet")
                continue
            compared = compare(good_state, load(fabric, good, args.format))
            fabric.print(f"epoch {epoch}: {good.name} loads, {compared} parameters as saved")
        write_result(fabric, folder, model, loss, compared)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
