"""What several processes print -> one stream, each line behind the name of its process. No I/O."""

from __future__ import annotations

NO_PROCESS = -1
"""The process whose line is open, where there is none."""

QUIET = 0.2
"""Seconds without output after which a line is shown although it has not ended: a prompt."""

LONGEST = 1 << 16
"""Bytes of a line after which it is shown, ended or not."""


class LineStream:
    """Joins the output of processes, in which no byte is lost or moved within one process.

    A name stands before each line. A line is written once it is whole, or once its process has been
    quiet for a while; another process then ends it, and its rest comes behind the name again.

    Args:
        newest: write of a line that returns to its beginning (a progress bar) what it shows last.
    """

    def __init__(self, *, newest: bool = False) -> None:
        self._newest = newest
        self._begun: dict[int | None, tuple[str, float, bytes]] = {}
        self._open: int | None = NO_PROCESS

    def add(self, pid: int | None, label: str, data: bytes, now: float) -> bytes:
        """What is to be written, once a process has printed something.

        Args:
            pid: of the process; None is the command.
            label: its name; several may have the same.
            now: seconds of any clock that never goes back.
        """
        _, _, begun = self._begun.pop(pid, (label, now, b""))
        lines, end, rest = (begun + data).rpartition(b"\n")
        written = b""
        if end:
            if self._newest and b"\r" in lines:
                lines = b"\n".join(map(last_shown, lines.split(b"\n")))
            written = self._mark(pid, label) + lines.replace(b"\n", b"\n" + _name(label)) + end
            self._open = NO_PROCESS
        if rest:
            self._begun[pid] = (label, now, rest)
        return written + self._show(pid) if len(rest) >= LONGEST else written

    def quiet(self, now: float) -> bytes:
        """The lines without an end whose processes have been quiet, to be written."""
        waiting = [pid for pid, (_, since, _) in self._begun.items() if now - since >= QUIET]
        return b"".join(map(self._show, waiting))

    def note(self, text: str) -> bytes:
        """A line of our own, to be written."""
        return self._break() + text.encode("utf-8", "replace") + b"\n"

    def end(self) -> bytes:
        """What is left, to be written, with an end to its line."""
        return b"".join(map(self._show, list(self._begun))) + self._break()

    def answered(self) -> None:
        """A person has ended the open line by typing."""
        self._open = NO_PROCESS

    def unfinished(self) -> list[tuple[str, bytes]]:
        """Name and text of the lines that have no end and are not written yet."""
        return [(label, text) for label, _, text in self._begun.values()]

    def _show(self, pid: int | None) -> bytes:
        label, _, text = self._begun.pop(pid)
        written = self._mark(pid, label) + (last_shown(text) if self._newest else text)
        self._open = pid
        return written

    def _mark(self, pid: int | None, label: str) -> bytes:
        """What stands before the output of a process: nothing where it goes on with the open line."""
        return b"" if self._open == pid else self._break() + _name(label)

    def _break(self) -> bytes:
        is_open, self._open = self._open != NO_PROCESS, NO_PROCESS
        return b"\n" if is_open else b""


def last_shown(line: bytes) -> bytes:
    """What a terminal shows last of a line that returns to its beginning."""
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _name(label: str) -> bytes:
    return f"[{label}] ".encode()
