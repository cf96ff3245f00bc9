"""Monte-Carlo dropout evaluation with Accelerate: as many passes as fit in the time allowed."""
import argparse
import json
import logging
import os
import tempfile
import time
from dataclasses import asdict, dataclass

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("mcdropout")


@dataclass
class EvalConfig:
    samples: int = 256
    features: int = 40
    classes: int = 5
    batch_size: int = 32
    seconds: float = 4.0
    pause: float = 0.12
    seed: int = 4


class TimeBox:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    @property
    def left(self):
        return self.end - time.monotonic()

    def open(self):
        return self.left > 0


class DropoutNet(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(cfg.features, 64), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.3),
            nn.Linear(64, cfg.classes),
        )

    def forward(self, x):
        return self.net(x)


def make_loader(cfg):
    gen = torch.Generator().manual_seed(cfg.seed)
    x = torch.randn(cfg.samples, cfg.features, generator=gen)
    y = torch.randint(0, cfg.classes, (cfg.samples,), generator=gen)
    return DataLoader(TensorDataset(x, y), batch_size=cfg.batch_size)


def write_run_card(cfg, out_dir):
    """Settings next to the results, plus a listing of what is already there."""
    os.makedirs(out_dir, exist_ok=True)
    with open(os.path.join(out_dir, "run_card.json"), "w") as f:
        json.dump(asdict(cfg), f, indent=1)
    earlier = []
    for name in sorted(os.listdir(out_dir))[:20]:
        time.sleep(0.8)  # the result store is a slow network mount
        earlier.append(name)
    log.info("run card written, %d files in the store", len(earlier))


@torch.no_grad()
def one_pass(model, loader, cfg):
    probs, labels = [], []
    for x, y in loader:
        probs.append(model(x).softmax(-1))
        labels.append(y)
    time.sleep(cfg.pause)
    return torch.cat(probs), torch.cat(labels)


def evaluate(accelerator, model, loader, cfg):
    model.train()  # keeps dropout active
    box = TimeBox(cfg.seconds)
    total, passes, labels = None, 0, None
    while box.open():
        probs, local_labels = one_pass(model, loader, cfg)
        probs = accelerator.gather(probs)
        labels = accelerator.gather(local_labels)
        total = probs if total is None else total + probs
        passes += 1
        if passes % 10 == 0 and accelerator.is_main_process:
            log.info("%d passes, %.1f s left", passes, box.left)
    accelerator.wait_for_everyone()
    accuracy = (total.argmax(-1) == labels).float().mean().item()
    return passes, accuracy


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--seconds", type=float, default=4.0)
    p.add_argument("--out", default=os.path.join(tempfile.gettempdir(), "dropout_eval_store"))
    args = p.parse_args()
    cfg = EvalConfig(seconds=args.seconds)
    accelerator = Accelerator(cpu=True)
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.INFO, format=f"[rank{accelerator.process_index}] %(message)s")
    set_seed(cfg.seed, device_specific=True)
    model, loader = accelerator.prepare(DropoutNet(cfg), make_loader(cfg))
    if accelerator.is_main_process:
        write_run_card(cfg, args.out)
    passes, accuracy = evaluate(accelerator, model, loader, cfg)
    if accelerator.is_main_process:
        log.info("accuracy %.3f over %d passes", accuracy, passes)
    accelerator.end_training()


if __name__ == "__main__":
    main()
