"""The notebook whose cell a process runs, read from its file.

A cell is known by the hash of its source, so nothing is guessed. Jupyter Server names the notebook of a
kernel in its environment (`JPY_SESSION_NAME`, jupyter_server/services/sessions/sessionmanager.py, 2.x);
nbclient and others start it in the folder of the notebook, or in that in which they were started.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from itertools import islice

import psutil

from ..job_files import ask, notebook
from . import cells

EVERY = 5.0
"""Seconds after which a cell is looked for again: the notebook may have been saved meanwhile."""

MOST_NOTEBOOKS, MOST_NAMES = 16, 1000
"""Notebooks of a folder that are read, the newest first, and names in it that are looked at."""

Index = Mapping[int, cells.NumberedSource]
"""Hash of what IPython may compile -> the cell of it."""


class Notebooks:
    """Finds cells. What was found stays; a notebook is read again only when it has changed."""

    def __init__(self) -> None:
        self._cells: dict[tuple[int, str], cells.NumberedSource] = {}
        self._searches: dict[int, tuple[float, list[list[Index]]]] = {}
        self._index_cache: dict[str, tuple[float, Index]] = {}

    def cell(self, pid: int, file: str) -> cells.NumberedSource | None:
        """The cell that a process runs as `file`; None where no notebook has it."""
        if (pid, file) not in self._cells:
            now, digest = time.monotonic(), cells.hash_of(file) or 0
            if now - self._searches.get(pid, (-EVERY, []))[0] >= EVERY:
                try:
                    groups = [list(self._indexes(paths)) for paths in _candidates(pid)]
                except TimeoutError:
                    return None  # a notebook that has not answered yet may be the right one
                self._searches[pid] = now, groups
            for group in self._searches[pid][1]:
                if matches := [index[digest] for index in group if digest in index]:
                    numbers, source = cells.merged(matches)
                    self._cells[pid, file] = numbers, cells.compiled(source)
                    break
        return self._cells.get((pid, file))

    def _indexes(self, paths: Sequence[str]) -> Iterator[Index]:
        for path in paths:
            try:
                entry = self._index_cache.get(path)
                if entry is None or entry[0] != ask(os.stat, path).st_mtime:
                    content, changed = notebook(path)
                    self._index_cache[path] = entry = changed, cells.index(content)
            except TimeoutError:
                raise
            except OSError:
                continue
            yield entry[1]


def _candidates(pid: int) -> Iterator[list[str]]:
    """The notebook that a process's environment names, then those in its folder, the newest first."""
    with suppress(psutil.Error, OSError):
        process = psutil.Process(pid)
        folder, session_name = process.cwd(), process.environ().get("JPY_SESSION_NAME", "")
        if session_name:  # Jupyter Server 1 gave a path relative to its own root
            paths = session_name, os.path.basename(session_name)
            yield [os.path.join(folder, path) for path in paths]
        yield ask(_in_folder, folder)


def _in_folder(folder: str) -> list[str]:
    """The newest notebooks in a folder."""
    with os.scandir(folder) as entries:
        notebooks = [entry for entry in islice(entries, MOST_NAMES) if entry.name.endswith(".ipynb")]
        return [entry.path for entry in nlargest(MOST_NOTEBOOKS, notebooks, _changed)]


def _changed(entry: os.DirEntry[str]) -> float:
    """When a file was last changed; 0 for a link that leads nowhere."""
    with suppress(OSError):
        return entry.stat().st_mtime
    return 0.0
