"""Compiles kernels into tables and keeps them on disk, for all processes of a machine."""

import logging
import os
import shutil
import time
from pathlib import Path

import torch

log = logging.getLogger("kernels")


class KernelError(Exception):
    """A kernel cannot be compiled."""


class Baton:
    """Whoever makes the file compiles; others wait until it is gone."""

    def __init__(self, path: Path, poll: float = 0.1) -> None:
        self.path, self.poll = path, poll

    def try_acquire(self) -> bool:
        try:
            file = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return False
        os.write(file, str(os.getpid()).encode())
        os.close(file)
        return True

    def wait(self) -> None:
        while self.path.exists():
            time.sleep(self.poll)

    def release(self) -> None:
        self.path.unlink()


class KernelCache:
    """Compiled kernels of one version."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder / f"v{version}"

    def prepare(self) -> None:
        """Begin with an empty cache."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    def load(self, name: str, size: int) -> torch.Tensor:
        """The table of a kernel, compiled by whoever comes first. Raises KernelError."""
        table = self.folder / f"{name}-{size}.pt"
        baton = Baton(self.folder / f"{name}.lock")
        while not table.exists():
            if not baton.try_acquire():
                log.info("waiting for %s", name)
                baton.wait()
                continue
            log.info("compiling %s", name)
            try:
                compiled = self._compile(name, size)
                torch.save(compiled, table.with_suffix(".tmp"))
                table.with_suffix(".tmp").rename(table)
            finally:
                baton.release()
        return torch.load(table)

    def _compile(self, name: str, size: int) -> torch.Tensor:
        if name == "identity":
            return torch.eye(size)
        if name == "blur":
            return sum(torch.diag(torch.ones(size - abs(k)), k) for k in (-1, 0, 1)) / 3
        if name == "haar":
            half, rest = divmod(size, 2)
            if rest:
                raise KernelError(f"haar needs an even size, not {size}")
            return torch.eye(2 * half).unflatten(0, (half, 2)).sum(1).repeat(2, 1)
        if name == "flip":
            return torch.eye(size).flip(0)
        raise KernelError(f"there is no kernel {name!r}")
