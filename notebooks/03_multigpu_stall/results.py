"""What a rank ends with, and how much memory and time it took to load the model."""

import ctypes
import json
import os
import sys
import time
from pathlib import Path

from lightning.fabric import Fabric
from torch import Tensor, nn


class Cost:
    """Memory and time of a block of code. The kernel counts the memory, on Linux; elsewhere it is 0.

    Attributes:
        peak: bytes of this rank's own at the peak, above those at the start.
        mapped: bytes of files that are mapped; ranks share them, and the kernel may drop them.
        seconds: from the start to the end.
    """

    peak = mapped = 0

    def __enter__(self) -> "Cost":
        if sys.platform == "linux":
            ctypes.CDLL(None).malloc_trim(0)  # memory freed earlier would hide what is taken now
            Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew
            self._all, self._files = _status("VmRSS"), _status("RssFile")
        self._start = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self._start
        if sys.platform == "linux":
            self.mapped = _status("RssFile") - self._files
            self.peak = _status("VmHWM") - self._all - self.mapped


def write_result(
    fabric: Fabric, steps: int, loss: Tensor, model: nn.Module, cost: Cost, table: Tensor | None = None
) -> None:
    """Writes what this rank ended with, where RESULTS_DIR says.

    Args:
        table: what it has loaded, if not the model.
    """
    loaded = [*model.parameters()] if table is None else [table]
    size = sum(tensor.numel() * tensor.element_size() for tensor in loaded)
    result = {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "steps": steps,
        "loss": fabric.all_reduce(loss.detach()).item(),
        "parameters": sum(p.double().sum().item() for p in model.parameters()),
        "memory": in_copies(cost.peak, size, "model" if table is None else "table"),
        "peak_bytes": cost.peak,
        "mapped_bytes": cost.mapped,
        "seconds": cost.seconds,
    }
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{fabric.global_rank}.json"
        path.write_text(json.dumps(result))
    print(
        f"rank {fabric.global_rank} of {fabric.world_size} is done; loading took {cost.seconds:.1f} s "
        f"and {cost.peak / 1e6:.0f} MB at the peak, {result['memory']}",
        flush=True,
    )


def in_copies(peak: int, size: int, what: str) -> str:
    """A peak of memory against the size of what is loaded, in words."""
    times = round(peak / size)
    return f"about {times} x the {what}" if times else f"less than half the {what}"


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))
