"""What the programs of this folder note of their own collectives, for tools/slow_truth.py.

A line is written for each call: who takes part in it, its number among the calls of the same ranks, and
when the rank was there for it, began to wait and went on, by the clock that all processes share.
Nothing is written unless the environment names a folder.
"""

import json
import os
import time
from collections import Counter
from contextlib import contextmanager

import torch._dynamo  # noqa: F401 - DDP and optimizers import it at first use, for seconds after joining
import torch.distributed as dist

_FOLDER = os.environ.get("SLOW_LEDGER")
_numbers = Counter()
_file = None


def _write(**line):
    global _file
    if _FOLDER and dist.is_initialized():
        if _file is None:
            _file = open(os.path.join(_FOLDER, f"{dist.get_rank()}.jsonl"), "a", buffering=1)  # noqa: SIM115
        _file.write(json.dumps({"rank": dist.get_rank(), **line}) + "\n")


def joined():
    """The process group is there."""
    _write(joined=time.monotonic(), size=dist.get_world_size())


def posted(ranks=None):
    """Note that a call is begun that is waited for later; give what it returns to `around`."""
    ranks = list(range(dist.get_world_size())) if ranks is None else list(ranks)
    channel = "-".join(map(str, ranks))
    _numbers[channel] += 1
    return {"channel": channel, "ranks": ranks, "number": _numbers[channel], "there": time.monotonic()}


@contextmanager
def around(call=None, ranks=None):
    """Note a call that waits for other ranks: all of them, or `ranks`."""
    call = call or posted(ranks)
    before = time.monotonic()
    try:
        yield
    finally:
        _write(**call, before=before, after=time.monotonic())


@contextmanager
def message(source, target):
    """Note a send or receive of the next message from one rank to another."""
    channel = f"{source}>{target}"
    _numbers[channel] += 1
    call = {"channel": channel, "ranks": [source, target], "number": _numbers[channel]}
    before = time.monotonic()
    try:
        yield
    finally:
        _write(**call, there=before, before=before, after=time.monotonic())


def note(name):
    """Note the calls of a function of torch.distributed, by whichever library: all ranks take part."""
    call = getattr(dist, name)

    def noted(*given, **named):
        with around():
            return call(*given, **named)

    setattr(dist, name, noted)


class Backward:
    """Note the backward passes of a model whose gradients DDP averages.

    A rank is there when its last gradient is; what is left of the pass is waiting.
    """

    def __init__(self, model):
        self._last = None
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(self._ready)

    def _ready(self, _):
        self._last = time.monotonic()

    def done(self):
        """The pass is over, and all gradients are averaged."""
        call = posted()
        there = self._last or call["there"]
        _write(**{**call, "there": there}, before=there, after=time.monotonic())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.done()
