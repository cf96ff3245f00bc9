"""A DataLoader whose workers ask a feature service over a socket."""

import os
import socket
import threading

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset


class FeatureService:
    """Answers four numbers for a key; stops answering after a number of requests."""

    def __init__(self, limit):
        self.limit = limit
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        for number in range(10**6):
            connection, _ = self.listener.accept()
            self.open.append(connection)
            key = int(connection.recv(64))
            if self.limit is not None and number >= self.limit:
                continue
            connection.sendall(" ".join(str((key * k) % 7) for k in range(1, 5)).encode())
            connection.close()


class RemoteFeatures(Dataset):
    def __init__(self, address, size=160):
        self.address = address
        self.size = size

    def __len__(self):
        return self.size

    def fetch(self, key):
        with socket.create_connection(self.address) as connection:
            connection.sendall(str(key).encode())
            answer = connection.recv(256)
        return [float(part) for part in answer.split()]

    def __getitem__(self, index):
        return torch.tensor(self.fetch(index + 1)), index % 3


def main():
    dist.init_process_group("gloo")
    rank = int(os.environ["RANK"])
    torch.manual_seed(1)
    service = FeatureService(limit=70 if rank == 0 else None)
    loader = DataLoader(RemoteFeatures(service.address), batch_size=8, num_workers=2)
    model = DDP(nn.Sequential(nn.Linear(4, 12), nn.ReLU(), nn.Linear(12, 3)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            print(f"epoch {epoch}: {loss.item():.3f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
