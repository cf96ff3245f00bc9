"""Scores of a class, over all ranks."""

import torch
import torch.distributed as dist


def confusion(predicted, labels, cls):
    positive = predicted == cls
    true = labels == cls
    return torch.tensor(
        [
            float((positive & true).sum()),
            float((positive & ~true).sum()),
            float((~positive & true).sum()),
        ]
    )


def f1(counts):
    hit, wrong, missed = counts.tolist()
    if hit == 0:
        return 0.0
    return 2 * hit / (2 * hit + wrong + missed)


def reduced(counts):
    parts = [torch.zeros_like(counts) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, counts)
    return torch.stack(parts).sum(0)


def class_score(predicted, labels, cls):
    counts = confusion(predicted, labels, cls)
    if counts[0] + counts[2] == 0:
        return None
    return f1(reduced(counts))
