"""A small GPT that is sharded over all ranks, its data, and the options of the scripts beside it."""

import argparse
from collections.abc import Iterator

import torch
from lightning import Fabric
from lightning.fabric.strategies import FSDPStrategy, ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

WORDS, LENGTH, WIDTH, LAYERS = 512, 32, 256, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.wide = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        y = self.first(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.wide(self.second(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens: Tensor) -> Tensor:
        """The loss of predicting each token from those before it."""
        places = torch.arange(LENGTH, device=tokens.device)
        x = self.blocks(self.words(tokens) + self.places(places))
        return nn.functional.cross_entropy(self.head(x[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def options(text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("--devices", type=int, default=3, help="number of ranks")
    parser.add_argument("--main-rank", type=int, default=0, help="the rank that speaks for all")
    parser.add_argument("--format", choices=["full", "sharded"], default="full", help="of checkpoints")
    parser.add_argument("--accelerator", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--strategy", choices=["fully_shard", "fsdp"], default="fully_shard")
    given = parser.parse_args()
    if (given.strategy, given.accelerator) == ("fsdp", "cpu"):
        parser.error("--strategy fsdp needs --accelerator cuda")
    if not 0 <= given.main_rank < given.devices:
        parser.error(f"--main-rank {given.main_rank} is no rank of {given.devices}")
    return given


def shard(model: GPT, mesh: torch.distributed.DeviceMesh) -> GPT:
    for block in model.blocks:
        fully_shard(block, mesh=mesh["data_parallel"])
    return fully_shard(model, mesh=mesh["data_parallel"])


def make_fabric(given: argparse.Namespace) -> Fabric:
    if given.strategy == "fsdp":
        strategy = FSDPStrategy(auto_wrap_policy={Block}, state_dict_type=given.format)
    else:
        strategy = ModelParallelStrategy(
            shard,
            data_parallel_size=given.devices,
            tensor_parallel_size=1,
            save_distributed_checkpoint=given.format == "sharded",
        )
    return Fabric(accelerator=given.accelerator, devices=given.devices, strategy=strategy)


def batches(fabric: Fabric, epoch: int) -> Iterator[Tensor]:
    """Four batches that differ from rank to rank: sentences that count upwards."""
    source = torch.Generator().manual_seed(100 * epoch + fabric.global_rank)
    for _ in range(4):
        starts = torch.randint(WORDS, (8, 1), generator=source)
        yield ((starts + torch.arange(LENGTH)) % WORDS).to(fabric.device)


def validation_batch(fabric: Fabric) -> Tensor:
    """Sentences that count upwards too, but on the last rank downwards: its share is another text."""
    last = fabric.global_rank == fabric.world_size - 1
    words = torch.arange(LENGTH).flip(0) if last else torch.arange(LENGTH)
    return ((torch.arange(0, WORDS, 64)[:, None] + words) % WORDS).to(fabric.device)
