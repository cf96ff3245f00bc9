"""A small GPT, its data, and the checkpoint of an earlier run, which all these programs start from."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch import Tensor, nn
from torch.nn import functional

CONFIG = {"words": 8192, "length": 32, "width": 768, "heads": 12, "blocks": 6}


class Block(nn.Module):
    """Attention to the words before, then a small network for each word."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.Linear(width, 3 * width)
        self.merge = nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.attention(self.norm_1(x)).chunk(3, dim=-1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.merge(seen.transpose(1, 2).flatten(-2))
        return x + self.narrow(functional.gelu(self.wide(self.norm_2(x))))


class GPT(nn.Module):
    """Says how badly it guesses the next word of each text."""

    def __init__(self, words: int, length: int, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        nn.init.normal_(self.words.weight, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.words.weight.T
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def make_fabric() -> Fabric:
    """As many ranks as torchrun has started. All ranks read the same file, so DDP need not copy it."""
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return Fabric(accelerator="cpu", devices=ranks, strategy=DDPStrategy(init_sync=False))


def batches(fabric: Fabric) -> Iterator[Tensor]:
    """Three batches that differ from rank to rank: texts that count upwards."""
    source = torch.Generator().manual_seed(fabric.global_rank)
    for _ in range(3):
        starts = torch.randint(CONFIG["words"], (4, 1), generator=source)
        yield (starts + torch.arange(CONFIG["length"])) % CONFIG["words"]


def folder() -> Path:
    """Where the checkpoints are."""
    return Path(os.environ.get("CHECKPOINTS", ".runs"))


def last_checkpoint(fabric: Fabric) -> Path:
    """The checkpoint; where it is missing, a process of its own makes it first."""
    path = folder() / "last.ckpt"
    if fabric.local_rank == 0 and not path.exists():
        subprocess.run([sys.executable, __file__, str(path)], check=True)
    fabric.barrier()
    return path


def train(path: Path) -> None:
    """The earlier run: one step, and a checkpoint as trainers leave it, with Adam's two averages."""
    torch.manual_seed(7)
    model = GPT(**CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0001)
    model(torch.arange(CONFIG["length"])[None]).backward()
    optimizer.step()
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    state = {"config": CONFIG, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    try:
        torch.save(state, part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that `finally` is run
    train(Path(sys.argv[1]))
