"""What the lab adds to its programs: a folder, the cost of a save, a comparison, a result."""

import ctypes
import json
import os
import resource
import socket
import struct
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import torch
from lightning import Fabric
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


@contextmanager
def checkpoint_folder() -> Iterator[Path]:
    """The folder of the checkpoints: RESULTS_DIR, else a new one that is removed at the end.

    Enter it before `launch()`: the other ranks are started with its name in their environment.
    """
    given = os.environ.get("RESULTS_DIR") or os.environ.get("CHECKPOINTS")
    if given:
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="gpt-") as folder:
        os.environ["CHECKPOINTS"] = folder
        yield Path(folder)


def full_state(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all parameters, gathered from the shards of all ranks."""
    inner = model._forward_module  # FSDPStrategy's own module, which Fabric has wrapped once more
    state = get_model_state_dict(inner, options=StateDictOptions(full_state_dict=True))
    return {name: part.clone() for name, part in state.items()}


def compare(saved: Mapping[str, Tensor], loaded: nn.Module) -> int:
    """Compare each parameter of a model with what was saved; returns how many there are.

    Raises:
        RuntimeError: one of them differs.
    """
    found = full_state(loaded)
    wrong = [name for name in saved | found if not torch.equal(saved[name], found[name])]
    if wrong:
        raise RuntimeError(f"the checkpoint differs in {', '.join(wrong)}")
    return len(saved)


def write_result(
    fabric: Fabric, folder: Path, model: nn.Module, loss: Tensor, compared: int, **more: int
) -> None:
    """Write what this rank ended with, where RESULTS_DIR says.

    Args:
        folder: the folder of the checkpoints, which are counted.
        compared: how many parameters of a loaded checkpoint were compared.
        more: anything else.
    """
    result = {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "loss": fabric.all_reduce(loss.detach()).item(),
        "parameters": sum(p.double().sum().item() for p in full_state(model).values()),
        "compared": compared,
        "checkpoints": len(list(folder.glob("*.ckpt"))),
        **more,
    }
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{fabric.global_rank}.json"
        path.write_text(json.dumps(result))
    print(
        f"rank {fabric.global_rank} of {fabric.world_size} is done, {compared} parameters compared",
        flush=True,
    )


@contextmanager
def failing_write(fabric: Fabric, epoch: int) -> Iterator[None]:
    """Make rank 0's write fail in one epoch: no file of that process may grow beyond 100 kB.

    The epoch is FAILING_EPOCH, by default 1. A larger write ends with EFBIG, "File too large".
    """
    fails = fabric.global_rank == 0 and epoch == int(os.environ.get("FAILING_EPOCH", "1"))
    with file_size_limit(100_000 if fails else None):
        yield


@contextmanager
def file_size_limit(limit: int | None) -> Iterator[None]:
    """Limit the size of the files that this process writes; None sets no limit."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if limit is None else limit, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


if sys.platform == "linux":
    # M_ARENA_MAX, before there are threads: one heap for all. malloc_trim, below, leaves the free end of
    # a thread's own heap resident, and a save that gives it back seems to take that much less.
    ctypes.CDLL(None).mallopt(-8, 1)


class Cost:
    """Memory and traffic of a block of code. The kernel counts them, on Linux; elsewhere they are 0.

    Attributes:
        memory: bytes of resident memory at the peak, above those at the start.
        received: bytes that have come in over TCP, which is how gloo talks.
    """

    memory = received = 0

    def __enter__(self) -> "Cost":
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)  # memory freed earlier would hide what is taken now
            Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
            self._memory, self._received = _status("VmRSS"), _received()
        return self

    def __exit__(self, *_: object) -> None:
        if sys.platform == "linux":
            self.memory = _status("VmHWM") - self._memory
            self.received = _received() - self._received

    def __str__(self) -> str:
        return f"{self.memory / 1e6:.1f} MB of memory at the peak, {self.received / 1e6:.2f} MB received"


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))


def _received() -> int:
    """The sum of `tcpi_bytes_received`, at byte 128 of the kernel's `struct tcp_info`."""
    total = 0
    for connection in psutil.Process().net_connections("tcp"):
        if connection.status == psutil.CONN_ESTABLISHED:
            with socket.socket(fileno=os.dup(connection.fd)) as end:
                info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)
            total += struct.unpack_from("=Q", info, 128)[0]
    return total
