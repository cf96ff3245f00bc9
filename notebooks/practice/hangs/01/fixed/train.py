import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


class Samples(Dataset):
    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((4,), float(index))


def train() -> None:
    dist.init_process_group("gloo")
    for batch in DataLoader(Samples(), batch_size=4, num_workers=1):
        loss = batch.sum()
        dist.all_reduce(loss)
    dist.destroy_process_group()


if __name__ == "__main__":
    train()
