"""A model sharded by FSDP2; one rank reads samples that must be unpacked first."""

import zlib

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

STEPS = 60


class Samples:
    """Batches; packed ones are unpacked when read."""

    def __init__(self, packed):
        self.blob = torch.randn(1_500_000).numpy().tobytes()
        self.packed = zlib.compress(self.blob, 1) if packed else None

    def batch(self):
        blob = self.blob
        if self.packed:
            blob = zlib.decompress(self.packed)  # <- slow
        return torch.frombuffer(bytearray(blob[: 64 * 128 * 4]), dtype=torch.float32).view(64, 128)


def main():
    dist.init_process_group("gloo")
    samples = Samples(packed=dist.get_rank() == 1)
    ledger.joined()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = nn.Sequential(nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8))
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        batch = samples.batch()
        with ledger.around():  # the first thing that it does is to gather the parameters
            loss = model(batch).pow(2).mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


main()
