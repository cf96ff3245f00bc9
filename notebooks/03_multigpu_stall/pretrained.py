"""Fine-tunes the last block of a GPT-2 that transformers loads from a folder with a safetensors file."""

import subprocess
import sys
from pathlib import Path

import torch
from gpt import CONFIG, batches, folder, make_fabric
from lightning.fabric import Fabric
from results import Cost, write_result
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel


def load(path: Path) -> nn.Module:
    return GPT2LMHeadModel.from_pretrained(path)


def pretrained(fabric: Fabric) -> Path:
    """The model's folder; where it is missing, a process of its own makes it first."""
    path = folder() / "gpt2"
    if fabric.local_rank == 0 and not path.exists():
        subprocess.run([sys.executable, __file__, str(path)], check=True)
    fabric.barrier()
    return path


def save(path: Path) -> None:
    config = GPT2Config(
        vocab_size=CONFIG["words"],
        n_positions=CONFIG["length"],
        n_embd=CONFIG["width"],
        n_head=CONFIG["heads"],
        n_layer=CONFIG["blocks"],
        bos_token_id=0,
        eos_token_id=0,
    )
    torch.manual_seed(7)
    part = path.with_suffix(".part")
    GPT2LMHeadModel(config).save_pretrained(part)
    part.rename(path)


def main() -> None:
    fabric = make_fabric()
    fabric.launch()
    path = pretrained(fabric)
    with Cost() as cost:
        model = load(path)
    model.requires_grad_(False)
    model.transformer.h[-1].requires_grad_(True)
    part = model.transformer.h[-1].parameters()
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.Adam(part, lr=0.0001))
    for steps, tokens in enumerate(batches(fabric), start=1):
        loss = model(tokens, labels=tokens).loss
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(f"step {steps}: loss {loss.item():.3f}")
    write_result(fabric, steps, loss, model, cost)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        save(Path(sys.argv[1]))
    else:
        main()
        torch.distributed.destroy_process_group()
