"""Online learning on a stream with evaluation after every N samples seen."""
import argparse
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Options:
    features: int = 10
    rounds: int = 60
    eval_samples: int = 256
    lr: float = 0.05
    log_every: int = 10


class Stream:
    """A source with its own batch size: the fast source delivers larger chunks."""

    CHUNK = {"mobile": 24, "desktop": 32}

    def __init__(self, name, features, seed):
        self.name = name
        self.chunk = self.CHUNK[name]
        self.features = features
        self.gen = torch.Generator().manual_seed(seed)
        self.w = torch.linspace(-1, 1, features)

    def next_chunk(self):
        x = torch.randn(self.chunk, self.features, generator=self.gen)
        y = (x @ self.w > 0).float()
        return x, y


class OnlineModel(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 1)

    def forward(self, x):
        return self.linear(x).squeeze(1)


def average_gradients(model, weight):
    """Weighted gradient mean over the sources."""
    total = torch.tensor([float(weight)])
    dist.all_reduce(total)
    for p in model.parameters():
        p.grad.mul_(weight / total.item())
        dist.all_reduce(p.grad)


@torch.no_grad()
def evaluate(model, holdout):
    x, y = holdout
    acc = ((model(x) > 0).float() == y).float().mean()
    accs = [torch.zeros(()) for _ in range(dist.get_world_size())]
    dist.all_gather(accs, acc)
    return [round(a.item(), 4) for a in accs]


def train(model, stream, holdout, opt, rank):
    optimizer = torch.optim.SGD(model.parameters(), lr=opt.lr)
    seen, next_eval = 0, opt.eval_samples
    for step in range(opt.rounds):
        x, y = stream.next_chunk()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, len(y))
        optimizer.step()
        seen += len(y)
        if seen >= next_eval:
            accs = evaluate(model, holdout)
            next_eval += opt.eval_samples
            if rank == 0:
                print(f"after {seen} samples: accuracy {accs}", flush=True)
        if step % opt.log_every == 0 and rank == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=Options.rounds)
    parser.add_argument("--eval-samples", type=int, default=Options.eval_samples)
    args = parser.parse_args()
    opt = Options(rounds=args.rounds, eval_samples=args.eval_samples)

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    sources = list(Stream.CHUNK)
    torch.manual_seed(0)
    model = OnlineModel(opt.features)
    stream = Stream(sources[rank % len(sources)], opt.features, seed=rank)
    holdout = Stream(sources[rank % len(sources)], opt.features, seed=99).next_chunk()
    train(model, stream, holdout, opt, rank)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
