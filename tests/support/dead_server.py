"""A folder on a server that no longer answers: `stat` of what is there does not return."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from unittest.mock import patch

from waiting import until

from helpers import job_files


class Server:
    """A server, dead from the start.

    Args:
        folder: the beginning of all names that are there.

    Attributes:
        asked: every name about which somebody has asked it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.asked: list[str] = []
        self._answers = Event()
        self._stat = os.stat

    def file(self, name: str) -> str:
        """A name that is there."""
        return f"{self.folder}/{name}"

    def stat(self, path: str | Path, **options: bool) -> os.stat_result:
        """As `os.stat`."""
        if str(path).startswith(self.folder):
            self.asked.append(str(path))
            self._answers.wait()
        return self._stat(path, **options)

    def die(self) -> None:
        """Answer nobody."""
        self._answers.clear()

    def come_back(self) -> None:
        """Answer, also those that have waited; return when all of them have their answers."""
        self._answers.set()
        until(lambda: all(one.done() for one in job_files._pending.values()))


@contextmanager
def dead_server(folder: Path) -> Iterator[Server]:
    """Put a folder on a server that does not answer."""
    server = Server(folder)
    with patch("os.stat", server.stat):
        try:
            yield server
        finally:
            server.come_back()
            job_files._pending.clear()
