"""Speech recognition with utterances in buckets, accumulation and a limit of frames."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset

MAX_FRAMES = 900


class Utterances(Dataset):
    def __init__(self, rank, size=96):
        generator = torch.Generator().manual_seed(7 + rank)
        self.lengths = torch.randint(40, 110, (size,), generator=generator).tolist()
        if rank == 1:
            self.lengths[40:48] = [150] * 8
        self.generator = generator

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, index):
        frames = torch.randn(self.lengths[index], 16, generator=self.generator)
        return frames, index % 12


def collate(rows):
    lengths = torch.tensor([len(frames) for frames, _ in rows])
    padded = nn.utils.rnn.pad_sequence([frames for frames, _ in rows], batch_first=True)
    return padded, lengths, torch.tensor([label for _, label in rows])


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(16, 32, 5, stride=2)
        self.head = nn.Linear(32, 12)

    def forward(self, frames):
        hidden = torch.relu(self.conv(frames.transpose(1, 2)))
        return self.head(hidden.mean(-1))


def fit(model, loader, optimizer, args, rank):
    updates = 0
    for step, (frames, lengths, labels) in enumerate(loader):
        if labels.numel() == 0:
            continue
        if frames.isnan().any():
            print(f"rank {rank}: NaN in batch {step}", flush=True)
            continue
        if int(lengths.max()) * len(lengths) > MAX_FRAMES:
            continue
        loss = nn.functional.cross_entropy(model(frames), labels) / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            updates += 1
        if updates >= args.max_updates:
            break
    return updates


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--max-updates", type=int, default=50)
    args = parser.parse_args()
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(0)
    model = DDP(Encoder())
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(Utterances(rank), batch_size=8, collate_fn=collate)
    for epoch in range(3):
        updates = fit(model, loader, optimizer, args, rank)
        gathered = [None, None]
        dist.all_gather_object(gathered, updates)
        if rank == 0:
            print(f"epoch {epoch}: updates {gathered}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
