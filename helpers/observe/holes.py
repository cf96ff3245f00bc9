"""Give back the disk space of the part of a file that nobody needs any more (Linux)."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

_KEEP_SIZE, _PUNCH_HOLE = 1, 2
"""FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE of linux/falloc.h."""


def punch(path: Path, start: int, end: int) -> bool:
    """Free the bytes from `start` to `end` of a file that others may be appending to.

    Its size stays what it is, and so do all offsets; what is freed reads as zeros.

    Returns:
        False where the system or its file system cannot do that, or the file is gone.
    """
    with suppress(OSError, AttributeError):
        call = ctypes.CDLL(None, use_errno=True).fallocate
        call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)
        fd = os.open(path, os.O_WRONLY)
        try:
            return bool(call(fd, _KEEP_SIZE | _PUNCH_HOLE, start, end - start) == 0)
        finally:
            os.close(fd)
    return False
