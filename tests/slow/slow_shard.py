"""The records of one rank's shard carry long annotations, which are parsed in the main process."""

import json
import tempfile
from pathlib import Path

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Records(Dataset):
    def __init__(self, folder, boxes):
        self.path = Path(folder) / "records.json"
        record = {"pixels": list(range(64)), "boxes": [[i, i / 2, i / 3, i / 5] for i in range(boxes)]}
        self.path.write_text(json.dumps(record))

    def __len__(self):
        return 500

    def __getitem__(self, index):
        record = json.loads(self.path.read_text())  # <- slow
        return torch.tensor(record["pixels"], dtype=torch.float32)


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    with ledger.around():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 512), nn.Linear(512, 1)))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    with tempfile.TemporaryDirectory() as folder:
        boxes = 10000 if dist.get_rank() == 0 else 300
        for batch in DataLoader(Records(folder, boxes), batch_size=2):
            loss = model(batch).mean()
            with backward:
                loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    dist.destroy_process_group()


main()
