"""Files that a user has named: asked about before a run, written whole or not at all after it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TextIO


class UnwritableError(Exception):
    """A file cannot be written; the text says why in one sentence."""


def check_writable(path: str) -> None:
    """Try whether a file can be written at `path`, and leave nothing.

    Raises:
        UnwritableError: it cannot.
    """
    target = Path(path)
    try:
        if target.is_dir():
            raise UnwritableError(f"{path} is a folder, not a file")
        if not target.parent.is_dir():
            raise UnwritableError(f"{path} cannot be written: the folder {target.parent} does not exist")
        if target.exists() and not target.is_file():
            raise UnwritableError(f"{path} is no regular file; `--json -` writes to standard output")
        if target.exists():
            with target.open("ab"):
                return
        with tempfile.TemporaryFile(dir=target.parent):
            return
    except OSError as problem:
        raise UnwritableError(f"{path} cannot be written: {problem.strerror}") from None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file that its owner alone may read; what was there before stays until all is written.

    Raises:
        OSError: it cannot be written; what was there before stays.
    """
    staged = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.replace(staged, path)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise


def discard(stream: TextIO) -> None:
    """Discard what is still written to a stream whose reader has gone.

    Flushing its buffer would otherwise fail again at exit, and make Python's exit code 120.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
