"""A small GPT, sharded over all ranks, its data, and the options of the scripts beside it."""

import argparse
from collections.abc import Iterator

import torch
from lightning import Fabric
from lightning.fabric.strategies import FSDPStrategy, ModelParallelStrategy
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard

VOCAB, CONTEXT, DIM, LAYERS, HEADS = 512, 32, 256, 4, 4


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.attn = nn.MultiheadAttention(DIM, HEADS, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        y = self.ln_1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tok_emb, self.pos_emb = nn.Embedding(VOCAB, DIM), nn.Embedding(CONTEXT, DIM)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.head = nn.Linear(DIM, VOCAB)

    def forward(self, tokens: Tensor) -> Tensor:
        """The loss of predicting each token from those before it."""
        positions = torch.arange(CONTEXT, device=tokens.device)
        x = self.blocks(self.tok_emb(tokens) + self.pos_emb(positions))
        return nn.functional.cross_entropy(self.head(x[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


def parse_args(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--devices", type=int, default=3, help="number of ranks")
    parser.add_argument("--format", choices=["full", "sharded"], default="full", help="of checkpoints")
    parser.add_argument("--accelerator", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--strategy", choices=["fully_shard", "fsdp"], default="fully_shard")
    args = parser.parse_args()
    if (args.strategy, args.accelerator) == ("fsdp", "cpu"):
        parser.error("--strategy fsdp needs --accelerator cuda")
    return args


def parallelize(model: GPT, mesh: torch.distributed.DeviceMesh) -> GPT:
    for block in model.blocks:
        fully_shard(block, mesh=mesh["data_parallel"])
    return fully_shard(model, mesh=mesh["data_parallel"])


def make_fabric(args: argparse.Namespace) -> Fabric:
    if args.strategy == "fsdp":
        strategy = FSDPStrategy(auto_wrap_policy={Block}, state_dict_type=args.format)
    else:
        strategy = ModelParallelStrategy(
            parallelize,
            data_parallel_size=args.devices,
            tensor_parallel_size=1,
            save_distributed_checkpoint=args.format == "sharded",
        )
    return Fabric(accelerator=args.accelerator, devices=args.devices, strategy=strategy)


def batches(fabric: Fabric, epoch: int) -> Iterator[Tensor]:
    """Four batches, different on each rank: sequences that count upwards."""
    generator = torch.Generator().manual_seed(100 * epoch + fabric.global_rank)
    for _ in range(4):
        starts = torch.randint(VOCAB, (8, 1), generator=generator)
        yield ((starts + torch.arange(CONTEXT)) % VOCAB).to(fabric.device)


def validation_batch(fabric: Fabric) -> Tensor:
    """This rank's shard of the validation set, which is not shuffled: the last one counts downwards."""
    last = fabric.global_rank == fabric.world_size - 1
    steps = torch.arange(CONTEXT).flip(0) if last else torch.arange(CONTEXT)
    return ((torch.arange(0, VOCAB, 64)[:, None] + steps) % VOCAB).to(fabric.device)
