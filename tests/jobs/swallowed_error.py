"""Rank 1 catches the error of a broken sample and goes on, without the gradients of that step."""

import torch
import torch.distributed as dist
from marks import about_to_block


def decode(sample: bytes) -> torch.Tensor:
    if not sample:
        raise ValueError("empty image")
    return torch.tensor(list(sample), dtype=torch.float32)


def train(samples: list[bytes]) -> None:
    weight = torch.zeros(4)
    for sample in samples:
        try:  # <- parted
            batch = decode(sample)
            about_to_block()
            dist.all_reduce(batch)  # <- rank 0, rank 2
            weight += batch
        except ValueError as problem:
            print(f"skipped a sample: {problem}")
    epoch = torch.tensor([len(samples)])
    about_to_block()
    dist.broadcast(epoch, src=0)  # <- culprit, rank 1


dist.init_process_group("gloo")
good = [b"abcd"] * 5
train(good if dist.get_rank() != 1 else [*good[:3], b"", good[0]])
dist.destroy_process_group()
