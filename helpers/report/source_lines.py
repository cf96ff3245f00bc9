"""The text of a source line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ..job_files import text
from ..model.frames import Frame
from ..model.redaction import Source
from ..model.wording import one_line

LONGEST = 200
"""Characters kept of a line."""


class Sources:
    """Lines of the user's files, each read once; one that does not answer is asked again each time.

    Args:
        folder: what relative paths are relative to: the job's working directory; None reads nothing.
        lines: lines that need no file, by `file:line`, as a recording holds them.
    """

    def __init__(self, folder: Path | None, lines: Mapping[str, str] | None = None) -> None:
        self._folder = folder
        self._lines: dict[str, str] = {name: Source(line) for name, line in (lines or {}).items()}
        self._files: dict[str, list[str]] = {}

    def line(self, frame: Frame) -> str:
        """The text of a frame's line; nothing where it cannot be read or is not the user's."""
        name = f"{frame.file}:{frame.line}"
        if frame.in_cell and frame.user and frame.text:
            self._lines[name] = _line(frame.text.splitlines(), frame.line)
        if name not in self._lines:
            try:
                self._lines[name] = self._read_line(frame) if frame.user else ""
            except TimeoutError:
                return ""
            except OSError:
                self._lines[name] = ""
        return self._lines[name]

    def lines(self) -> dict[str, str]:
        """Every line found so far, by `file:line`."""
        return {name: str(line) for name, line in self._lines.items() if line}

    def _read_line(self, frame: Frame) -> str:
        if self._folder is None or frame.in_cell:
            return ""
        if frame.file not in self._files:
            self._files[frame.file] = text(str(self._folder / frame.file))[0].splitlines()
        lines = self._files[frame.file]
        return _line(lines, frame.line)


def _line(lines: Sequence[str], number: int) -> str:
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    return Source(one_line(Source(line))[:LONGEST])
