import torch
import torch.distributed as dist


def decode(sample: bytes) -> torch.Tensor:
    if not sample:
        raise ValueError("empty image")
    return torch.tensor(list(sample), dtype=torch.float32)


def train(samples: list[bytes]) -> None:
    weight = torch.zeros(4)
    for sample in samples:
        try:
            batch = decode(sample)
        except ValueError as problem:
            print(f"skipped a sample: {problem}")
            batch = torch.zeros(4)
        dist.all_reduce(batch)
        weight += batch
    epoch = torch.tensor([len(samples)])
    dist.broadcast(epoch, src=0)


dist.init_process_group("gloo")
good = [b"abcd"] * 5
train(good if dist.get_rank() != 1 else [*good[:3], b"", good[0]])
dist.destroy_process_group()
