"""How busy the first GPU is while a run lasts, as NVML says it through `nvidia-smi`."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

QUERY = (
    *("nvidia-smi", "--id=0", "--query-gpu=utilization.gpu,memory.used"),
    *("--format=csv,noheader,nounits", "--loop-ms=500"),
)

FULL = 99
"""Percent from which a GPU counts as busy all the time. A kernel of NCCL that waits keeps it there."""


class Use:
    """Asks twice a second while the `with` block lasts; asks nothing where there is no `nvidia-smi`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._asking: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self._file.open("wb") as out, suppress(FileNotFoundError):
            self._asking = subprocess.Popen(QUERY, stdout=out, stderr=subprocess.DEVNULL)
        return self

    def words(self) -> str:
        """`100 % in 12 of 20 samples, 1543 MB`; "" when nothing was answered."""
        return told(self._file.read_text().splitlines())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        raised: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._asking is not None:
            self._asking.terminate()
            self._asking.wait()


def told(lines: Iterable[str]) -> str:
    """The same of lines such as `100, 1543`; others are left out, such as `[N/A], 1543`."""
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
