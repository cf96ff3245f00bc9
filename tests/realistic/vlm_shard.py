"""Vision-language toy model under FSDP2, on a mixture of captioned images and plain text."""
import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

log = logging.getLogger("vlm")


class VisionTower(nn.Module):
    def __init__(self, patch=48, dim=40, layers=2):
        super().__init__()
        self.embed = nn.Linear(patch, dim)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, dim), nn.GELU()) for _ in range(layers))

    def forward(self, pixels):
        hidden = self.embed(pixels)
        for block in self.blocks:
            hidden = hidden + block(hidden)
        return hidden.mean(dim=1)


class TextDecoder(nn.Module):
    def __init__(self, vocab=96, dim=40):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, tokens, context=None):
        hidden, _ = self.rnn(self.embed(tokens))
        if context is not None:
            hidden = hidden + context[:, None]
        return self.head(hidden)


class CaptionModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.vision = VisionTower()
        self.bridge = nn.Linear(40, 40)
        self.text = TextDecoder()

    def forward(self, tokens, pixels=None):
        context = None
        if pixels is not None:
            context = self.bridge(self.vision(pixels))
        logits = self.text(tokens, context)
        return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


class Mixture:
    """Yields examples of two sources; `text_share` of them have no picture."""

    def __init__(self, rank, text_share, batch):
        self.gen = torch.Generator().manual_seed(40 + rank)
        self.text_share, self.batch = text_share, batch

    def example(self):
        tokens = torch.randint(0, 96, (12,), generator=self.gen)
        if torch.rand(1, generator=self.gen).item() < self.text_share:
            return {"tokens": tokens, "pixels": None}
        return {"tokens": tokens, "pixels": torch.randn(4, 48, generator=self.gen)}

    def __iter__(self):
        while True:
            yield [self.example() for _ in range(self.batch)]


def collate(examples):
    tokens = torch.stack([e["tokens"] for e in examples])
    pictures = [e["pixels"] for e in examples]
    if all(p is None for p in pictures):
        return {"tokens": tokens}
    blank = torch.zeros(4, 48)
    return {"tokens": tokens, "pixels": torch.stack([blank if p is None else p for p in pictures])}


def shard(model, mesh):
    for block in model.vision.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model.vision, mesh=mesh)
    fully_shard(model.text, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch", type=int, default=3)
    parser.add_argument("--text-share", type=float, default=0.45)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"[{os.environ['RANK']}] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(2)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("shard",))
    model = shard(CaptionModel(), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    for step, examples in enumerate(Mixture(dist.get_rank(), args.text_share, args.batch)):
        if step == args.steps:
            break
        loss = model(**collate(examples))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            log.info("step %d loss %.3f", step, loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
