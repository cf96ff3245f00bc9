"""Local SGD over uneven nodes: average within a node every step, over all nodes now and then."""
import argparse
import logging
import os

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("localsgd")

# which ranks run on which host; the third worker has a machine of its own
HOSTS = {"alpha": [0, 1], "beta": [2]}


def host_of(rank):
    for host, members in HOSTS.items():
        if rank in members:
            return host, members
    raise KeyError(f"rank {rank} is on no host")


def create_host_groups():
    """All ranks take part in making each group, as new_group demands."""
    return {host: dist.new_group(members) for host, members in HOSTS.items()}


class Communicator:
    def __init__(self):
        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self.host, self.members = host_of(self.rank)
        self.groups = create_host_groups()

    def host_group(self):
        if len(self.members) == 1:
            return None  # nothing to share with
        return self.groups[self.host]

    def average_on_host(self, tensors):
        flat = torch.cat([t.reshape(-1) for t in tensors])
        dist.all_reduce(flat, group=self.host_group())
        self._scatter_back(flat / len(self.members), tensors)

    def average_everywhere(self, tensors):
        dist.barrier()  # the hosts drift apart between two of these
        flat = torch.cat([t.reshape(-1) for t in tensors])
        dist.all_reduce(flat)
        self._scatter_back(flat / self.world, tensors)

    @staticmethod
    def _scatter_back(flat, tensors):
        offset = 0
        for tensor in tensors:
            tensor.copy_(flat[offset:offset + tensor.numel()].view_as(tensor))
            offset += tensor.numel()


class Regressor(nn.Module):
    def __init__(self, features=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x).squeeze(-1)


def stream(rank, features=12, batch=16):
    weight = torch.randn(features, generator=torch.Generator().manual_seed(0))
    gen = torch.Generator().manual_seed(1000 + rank)
    while True:
        x = torch.randn(batch, features, generator=gen)
        yield x, x @ weight + 0.1 * torch.randn(batch, generator=gen)


def global_loss(value, world):
    total = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(total)
    return total.item() / world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--global-every", type=int, default=8)
    parser.add_argument("--log-every", type=int, default=20)
    parser.add_argument("--lr", type=float, default=0.02)
    args = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"[{os.environ['RANK']}] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(11)
    comm = Communicator()
    model = Regressor()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    data = stream(comm.rank)
    log.info("host %s with ranks %s", comm.host, comm.members)

    for step in range(1, args.steps + 1):
        x, y = next(data)
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        comm.average_on_host([p.grad for p in model.parameters()])
        optimizer.step()
        if step % args.global_every == 0:
            with torch.no_grad():
                comm.average_everywhere(list(model.parameters()))
        if step % args.log_every == 0:
            log.info("step %d loss %.4f", step, global_loss(loss.item(), comm.world))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
