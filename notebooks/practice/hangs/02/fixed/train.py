import torch
import torch.distributed as dist


def exchange(tokens: torch.Tensor) -> torch.Tensor:
    received = torch.empty_like(tokens)
    dist.all_to_all_single(received, tokens)
    return received


def train() -> None:
    for _ in range(4):
        tokens = torch.randn(6, 4)
        tokens = exchange(tokens)
        loss = tokens.pow(2).mean().reshape(1)
        dist.all_reduce(loss)


dist.init_process_group("gloo")
train()
dist.destroy_process_group()
