"""How busy the first GPU is while a run lasts, as NVML says it through `nvidia-smi`."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

QUERY = (
    *("nvidia-smi", "--id=0", "--query-gpu=utilization.gpu,memory.used"),
    *("--format=csv,noheader,nounits", "--loop-ms=500"),
)

FULL = 99
"""Percent from which a GPU counts as busy all the time. A kernel of NCCL that waits keeps it there."""


@contextmanager
def watched(file: Path) -> Iterator[Callable[[], str]]:
    """Ask twice a second while the block lasts; nothing where there is no `nvidia-smi`.

    Yields:
        What `told` says of the answers so far.
    """
    asking = None
    with file.open("wb") as out, suppress(FileNotFoundError):
        asking = subprocess.Popen(QUERY, stdout=out, stderr=subprocess.DEVNULL)
    try:
        yield lambda: told(file.read_text().splitlines())
    finally:
        if asking is not None:
            asking.terminate()
            asking.wait()


def told(lines: Iterable[str]) -> str:
    """`100 % in 12 of 20 samples, 1543 MB`; "" when nothing was answered.

    Args:
        lines: such as `100, 1543`; others are left out, such as `[N/A], 1543`.
    """
    samples = []
    for line in lines:
        with suppress(ValueError):
            percent, memory = line.split(",")
            samples.append((int(percent), int(memory)))
    if not samples:
        return ""
    full = sum(percent >= FULL for percent, _ in samples)
    most = max(memory for _, memory in samples)
    return f"100 % in {full} of {len(samples)} samples, {most} MB"
