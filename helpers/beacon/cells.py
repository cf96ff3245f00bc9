"""The cells of a notebook whose code this process runs, as IPython knows them; nothing of it is called.

IPython gives the code of a cell a file name of its own, keeps the number of each (`_filename_map` of
`IPython/core/compilerop.py`, IPython 8 and newer) and has `linecache` keep the source that was compiled.
"""

from __future__ import annotations

import sys
from typing import Any, Dict, Iterable

from .record import Cell, Thread

MOST, LONGEST = 64, 1 << 16
"""Cells that are told, and characters of a source."""


def cells(threads: Iterable[Thread]) -> Dict[str, Cell]:
    """The cells on the stacks of some threads, by the file names that their code has."""
    numbers = _numbers()
    if not numbers:
        return {}
    files = {file: None for thread in threads for file, _, _, user in thread["frames"] if user}
    here = [file for file in files if file in numbers][:MOST]
    return {file: (int(numbers[file]), _source(file)) for file in here}


def _numbers() -> Dict[str, int]:
    """File name -> execution count, of each cell that was run."""
    shells = sys.modules.get("IPython.core.interactiveshell")
    known: Any = getattr(shells, "InteractiveShell", None)
    for name in ("_instance", "compile", "_filename_map"):
        known = getattr(known, "__dict__", {}).get(name)
    return known if type(known) is dict else {}


def _source(file: str) -> str:
    """What was compiled; empty where `linecache` does not have it, or it is too long."""
    known = getattr(sys.modules.get("linecache"), "cache", {}).get(file, ())
    lines = known[2] if len(known) > 2 else ()
    return "".join(lines) if sum(map(len, lines)) <= LONGEST else ""
