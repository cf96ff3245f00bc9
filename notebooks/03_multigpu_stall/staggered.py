"""Fine-tunes the last block of a GPT; the ranks load its checkpoint one after the other."""

import argparse
import time
from pathlib import Path

import torch
from gpt import GPT, batches, last_checkpoint, make_fabric
from lightning.fabric import Fabric
from results import Cost, write_result
from torch import nn


def load(path: Path) -> nn.Module:
    checkpoint = torch.load(path, map_location="cpu")
    model = GPT(**checkpoint["config"])
    model.load_state_dict(checkpoint["model"])
    return model


def in_turn(fabric: Fabric, path: Path, pause: float) -> nn.Module:
    """Load when it is this rank's turn: after a pause for each rank before it, or when they are done."""
    if pause:
        time.sleep(fabric.local_rank * pause)
        return load(path)
    for turn in range(fabric.world_size):
        if turn == fabric.local_rank:
            model = load(path)
        fabric.barrier()
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pause", type=float, default=0, help="seconds a rank; 0 takes turns")
    options = parser.parse_args()
    fabric = make_fabric()
    fabric.launch()
    path = last_checkpoint()
    with Cost() as cost:
        model = in_turn(fabric, path, options.pause)
    model.requires_grad_(False)
    model.blocks[-1].requires_grad_(True)
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.Adam(model.blocks[-1].parameters(), lr=0.0001))
    for steps, tokens in enumerate(batches(fabric), start=1):
        loss = model(tokens)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(f"step {steps}: loss {loss.item():.3f}")
    write_result(fabric, steps, loss, model, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
