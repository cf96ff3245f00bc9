"""The text of a source line, read with care: a path may lead to a file of any kind and size."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from ..model.frames import Frame
from ..model.redaction import Source
from ..model.wording import one_line

LARGEST = 1 << 20
"""Bytes above which a file is not read."""

LONGEST = 200
"""Characters kept of a line."""


class Sources:
    """Lines of the user's files, each read once, when it is first asked for.

    Args:
        folder: what relative paths are relative to: the job's working directory; None reads nothing.
        known: lines that need no file, by `file:line`, as a recording holds them.
    """

    def __init__(self, folder: Path | None, known: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._known: dict[str, str] = {name: Source(line) for name, line in (known or {}).items()}
        self._files: dict[str, list[str]] = {}

    def line(self, frame: Frame) -> str:
        """The text of a frame's line; nothing where it cannot be read or is not the user's."""
        name = f"{frame.file}:{frame.line}"
        if name not in self._known:
            self._known[name] = self._read_line(frame) if frame.user else ""
        return self._known[name]

    def known(self) -> dict[str, str]:
        """Every line found so far, by `file:line`."""
        return {name: str(line) for name, line in self._known.items() if line}

    def _read_line(self, frame: Frame) -> str:
        if self._folder is None:
            return ""
        if frame.file not in self._files:
            self._files[frame.file] = _lines(self._folder / frame.file)
        lines = self._files[frame.file]
        line = lines[frame.line - 1] if 0 < frame.line <= len(lines) else ""
        return Source(one_line(Source(line))[:LONGEST])


def _lines(path: Path) -> list[str]:
    """The lines of a regular file of a fair size; nothing of anything else, such as a pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            facts = os.fstat(fd)
            if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
                return []
            return file.read(LARGEST).decode("utf-8", "replace").splitlines()
    except (OSError, ValueError):
        return []
