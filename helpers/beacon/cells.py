"""The cells of a notebook whose code this process runs, as IPython knows them; nothing of it is called.

IPython gives the code of a cell a file name of its own, keeps the number of each (`_filename_map` of
`IPython/core/compilerop.py`, IPython 8 and newer) and has `linecache` keep the source that was compiled.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Dict, Sequence

if TYPE_CHECKING:
    from .record import Cell, FrameEntry


MOST, LONGEST = 64, 1 << 16
"""Cells that are told, and characters of a source."""


def cells(*stacks: Sequence[FrameEntry]) -> Dict[str, Cell]:
    """The cells in some stacks, by the file names that their code has."""
    numbers = _numbers()
    files = dict.fromkeys(file for stack in stacks for file, _, _, user in stack if user)
    cell_files = [file for file in files if file in numbers][:MOST]
    return {file: (numbers[file], _source(file)) for file in cell_files}


def outlives(error: BaseException, ended: bool) -> bool:
    """True in a process that runs cells, for an exception that one of them has raised before others ran.

    IPython sets `sys.last_value` to it, as Python does to one that ends the process.

    Args:
        ended: True at the end of the process: then there is no other cell.
    """
    shell = _shell()
    if shell is None or not ended:
        return shell is not None
    numbers, traceback, failed = _numbers(), error.__traceback__, 0
    while traceback is not None:
        failed = max(failed, numbers.get(traceback.tb_frame.f_code.co_filename, 0))
        traceback = traceback.tb_next
    following = (_attribute(shell, "_trait_values") or {}).get("execution_count", 1)
    return failed > 0 and failed + 1 < following


def _numbers() -> Dict[str, int]:
    """File name -> execution count, of each cell that was run."""
    numbers = _attribute(_shell(), "compile", "_filename_map")
    return numbers if type(numbers) is dict else {}


def _shell() -> Any:
    """The shell that runs cells in this process, None without one."""
    return _attribute(sys.modules.get("IPython.core.interactiveshell"), "InteractiveShell", "_instance")


def _attribute(value: Any, *names: str) -> Any:
    """What attributes of attributes hold, None where one is missing; no descriptor is called."""
    for name in names:
        value = getattr(value, "__dict__", {}).get(name)
    return value


def _source(file: str) -> str:
    """What was compiled; empty where `linecache` does not have it, or it is too long."""
    entry = getattr(sys.modules.get("linecache"), "cache", {}).get(file, ())
    lines = entry[2] if len(entry) > 2 else ()
    return "".join(lines) if sum(map(len, lines)) <= LONGEST else ""
