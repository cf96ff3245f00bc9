"""A small GPT, its data, and the checkpoint of an earlier run, which all these programs start from."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from lightning.fabric import Fabric
from lightning.fabric.strategies import DDPStrategy
from torch import Tensor, nn
from torch.nn import functional

CONFIG = {"words": 8192, "length": 32, "width": 768, "heads": 12, "blocks": 6}


class Block(nn.Module):
    """Attention to the tokens before, then an MLP for each token."""

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
    """Returns its loss on the next token of each text."""

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
    """DDP over the ranks that a launcher has started.

    All of them read the same file, so DDP neither compares nor copies their weights (`init_sync`).
    """
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return Fabric(accelerator="cpu", devices=ranks, strategy=DDPStrategy(init_sync=False))


def batches(fabric: Fabric) -> Iterator[Tensor]:
    """Three batches that differ from rank to rank: texts that count upwards."""
    source = torch.Generator().manual_seed(fabric.global_rank)
    for _ in range(3):
        starts = torch.randint(CONFIG["words"], (4, 1), generator=source)
        yield (starts + torch.arange(CONFIG["length"])) % CONFIG["words"]


def folder() -> Path:
    """Where the files of earlier jobs are."""
    return Path(os.environ.get("CHECKPOINTS", ".runs"))


def last_checkpoint() -> Path:
    """The checkpoint of the earlier run."""
    return from_earlier(folder() / "last.ckpt", __file__)


def from_earlier(path: Path, script: str) -> Path:
    """A file of an earlier job; where it is missing, local rank 0 runs the script that creates it."""
    if os.environ.get("LOCAL_RANK", "0") == "0" and not path.exists():
        create(path, script)
    while not path.exists():
        time.sleep(0.1)
    return path


def create(path: Path, script: str) -> None:
    """The file gets its name when the script has ended and its memory is free again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    try:
        subprocess.run([sys.executable, script, str(part)], check=True)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def train(path: Path) -> None:
    """The earlier run: one step, and a checkpoint as trainers leave it, with Adam's two averages."""
    torch.manual_seed(7)
    model = GPT(**CONFIG)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.0001)
    model(torch.arange(CONFIG["length"])[None]).backward()
    optimizer.step()
    state = {"config": CONFIG, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, path)


if __name__ == "__main__":
    train(Path(sys.argv[1]))
