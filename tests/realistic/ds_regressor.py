"""ZeRO-2 regression with DeepSpeed on CPU and periodic checkpoints.

    torchrun --standalone --nproc-per-node=2 ds_regressor.py --steps 30
"""
import argparse
import os
import tempfile

import deepspeed
import torch
import torch.nn as nn
from deepspeed import comm as dist
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=30)
    p.add_argument("--save-every", type=int, default=10)
    p.add_argument("--micro-batch", type=int, default=8)
    p.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
    return p.parse_args()


def ds_config(args):
    return {
        "train_micro_batch_size_per_gpu": args.micro_batch,
        "gradient_accumulation_steps": 2,
        "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": 5e-3, "torch_adam": True}},
        "zero_optimization": {"stage": 2},
        "steps_per_print": 1000,
    }


class Regressor(nn.Module):
    def __init__(self, dim=12):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x, y):
        return nn.functional.mse_loss(self.layers(x), y)


class CheckpointKeeper:
    """Saves every `every` steps and keeps the latest `keep` tags."""

    def __init__(self, directory, every, keep=2):
        self.directory, self.every, self.keep = directory, every, keep
        self.tags = []

    def due(self, step):
        return step > 0 and step % self.every == 0

    def save(self, engine, step, loss):
        tag = f"step{step}"
        engine.save_checkpoint(self.directory, tag=tag, client_state={"step": step, "loss": loss})
        self.tags.append(tag)
        while len(self.tags) > self.keep:
            self.tags.pop(0)


def endless(loader, sampler):
    epoch = 0
    while True:
        sampler.set_epoch(epoch)
        yield from loader
        epoch += 1


def main():
    args = get_args()
    deepspeed.init_distributed(dist_backend="gloo")
    torch.manual_seed(0)
    g = torch.Generator().manual_seed(1)
    x = torch.randn(512, 12, generator=g)
    data = TensorDataset(x, x.pow(2).mean(1, keepdim=True))
    sampler = DistributedSampler(data, num_replicas=dist.get_world_size(), rank=dist.get_rank())
    loader = DataLoader(data, batch_size=args.micro_batch, sampler=sampler, drop_last=True)

    model = Regressor()
    engine, _, _, _ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=ds_config(args))
    keeper = CheckpointKeeper(os.path.join(tempfile.gettempdir(), "ds_regressor"), args.save_every)

    batches = endless(loader, sampler)
    for step in range(args.steps):
        loss = engine(*next(batches))
        engine.backward(loss)
        engine.step()
        if keeper.due(step) and dist.get_rank() == 0:
            keeper.save(engine, step, loss.item())
            print(f"step {step}: loss {loss.item():.4f}, saved {keeper.tags[-1]}", flush=True)

    dist.barrier()
    if dist.get_rank() == 0:
        print("finished", keeper.tags)


if __name__ == "__main__":
    main()
