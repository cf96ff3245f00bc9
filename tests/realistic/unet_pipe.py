"""A small U-Net split over three processes; the encoder also feeds the decoder directly."""
import argparse
import logging
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("unet")

TAGS = {"act": 11, "skip": 12, "out": 13}


@dataclass
class Shape:
    batch: int
    channels: int
    size: int

    def empty(self):
        return torch.empty(self.batch, self.channels, self.size, self.size)


class Router:
    """Knows who talks to whom."""

    def __init__(self, rank, world):
        self.rank = rank
        self.world = world
        self.encoder, self.decoder = 0, world - 1

    def target(self, kind):
        if kind == "out":
            return self.encoder
        return self.rank + 1

    def source(self, kind):
        if kind == "skip":
            return self.encoder
        if kind == "out":
            return self.decoder
        return self.rank - 1

    def push(self, kind, tensor):
        dist.send(tensor.contiguous(), dst=self.target(kind), tag=TAGS[kind])

    def pull(self, kind, shape):
        buf = shape.empty()
        dist.recv(buf, src=self.source(kind), tag=TAGS[kind])
        return buf


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)

    def forward(self, x):
        skip = torch.relu(self.stem(x))
        return torch.relu(self.down(skip)), skip


class Bottleneck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.GELU())

    def forward(self, x):
        return x + self.body(x)


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.fuse = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x, skip):
        return torch.sigmoid(self.fuse(torch.cat([self.up(x), skip], 1)))


def encoder_loop(args, router):
    net = Encoder(args.width)
    mask_shape = Shape(args.batch, 1, args.size)
    for step in range(args.steps):
        gen = torch.Generator().manual_seed(step)
        images = torch.randn(args.batch, 3, args.size, args.size, generator=gen)
        act, skip = net(images)
        router.push("act", act)
        if args.skip_connection:
            router.push("skip", skip)
        mask = router.pull("out", mask_shape)
        log.info("step %d foreground %.4f", step, mask.mean().item())


def bottleneck_loop(args, router):
    net = Bottleneck(args.width)
    shape = Shape(args.batch, 2 * args.width, args.size // 2)
    for _ in range(args.steps):
        router.push("act", net(router.pull("act", shape)))


def decoder_loop(args, router):
    net = Decoder(args.width)
    act_shape = Shape(args.batch, 2 * args.width, args.size // 2)
    skip_shape = Shape(args.batch, args.width, args.size)
    for _ in range(args.steps):
        act = router.pull("act", act_shape)
        if args.skip_connection:
            skip = router.pull("skip", skip_shape)
        else:
            skip = torch.zeros(args.batch, args.width, args.size, args.size)
        router.push("out", net(act, skip))


LOOPS = [encoder_loop, bottleneck_loop, decoder_loop]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=8)
    p.add_argument("--batch", type=int, default=4)
    p.add_argument("--size", type=int, default=32)
    p.add_argument("--width", type=int, default=8)
    p.add_argument("--no-skip", dest="skip_connection", action="store_false")
    args = p.parse_args()
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if world != len(LOOPS):
        raise SystemExit(f"needs {len(LOOPS)} processes, got {world}")
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    logging.basicConfig(level=logging.INFO, format=f"[rank{rank}] %(message)s")
    with torch.no_grad():
        LOOPS[rank](args, Router(rank, world))
    dist.barrier()
    log.info("finished")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
