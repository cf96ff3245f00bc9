"""NCCL's own account of its collectives, and the request for the rest of what its recorder holds.

How far each group is, a few numbers tell, which torch's watchdog refreshes every 0.1 s. They are read at
each look: that queries no event of CUDA. To read the entries does, so that is left to torch: it dumps
them into a file when something comes in a pipe (ProcessGroupNCCL.cpp, `DumpPipe`; torch 2.3 to 2.14).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from typing import TYPE_CHECKING, Any, Dict, Optional, Tuple

from . import torch_names

if TYPE_CHECKING:
    from .record import NcclAccount

PIPE = "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"
DUMPS = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")
"""What torch goes by: how the names of a pipe and of a dump begin, behind which it puts the rank. Where
the second of `DUMPS` is set although torch knows the first, each rank prints a warning."""

RENAMED, IN_CACHE = (2, 9), (2, 7)
"""The first versions of torch that know the first of `DUMPS`, and that dump into the user's cache."""

THREAD_NAMES = "NCCL_SET_THREAD_NAME"
"""With it, NCCL's threads have names; without, that of the thread that has started them."""

FOLDER = "nccl"

MOVES_TOLD = 1.0
"""Seconds between two accounts that are told while they change: what is new has to be written."""


def ask_for_dumps(run: str) -> None:
    """Set the variables by which torch dumps into the folder of the run, unless the user has set one.

    It is for a process that is about to join: torch ends one that cannot make its pipe, as a child of
    this one in a container might be.

    Args:
        run: the run's folder.
    """
    names = [name for name in (PIPE, *DUMPS) if os.environ.get(name)]
    folder = os.path.join(run, FOLDER)
    if not torch_names.has_nccl() or not os.access(folder, os.W_OK | os.X_OK):
        return
    os.environ.setdefault(THREAD_NAMES, "1")
    if all(_is_ours(os.environ[name], run) for name in names):
        for name in names:  # those of the process that has started this one
            del os.environ[name]
        begin = os.path.join(folder, f"{os.getpid()}.")
        os.environ[PIPE] = os.environ[DUMPS[_is_before(RENAMED)]] = begin


def _is_ours(begin: str, run: str) -> bool:
    return begin.startswith(os.path.join(run, FOLDER, ""))


def _is_before(version: Tuple[int, int]) -> bool:
    """True for a torch of an older version."""
    torch_version = tuple(map(int, re.findall(r"\d+", torch_names.version())[:2]))
    return bool(torch_version) and torch_version < version


class Nccl:
    """NCCL's account of the groups of this process, from look to look.

    Args:
        run: the run's folder.
    """

    def __init__(self, run: str) -> None:
        self._run = run
        self._groups: Dict[str, Tuple[int, int]] = {}
        self._since = self._account_at = 0.0
        self._account: Optional[NcclAccount] = None
        self._dump = ""

    def look(self, rank: int) -> Optional[NcclAccount]:
        """How far its groups are; None while NCCL serves none, and for a torch that does not tell."""
        tell = torch_names.nccl_status()
        if tell is None or not (uids := torch_names.nccl_groups()):
            return None
        status = json.loads(tell(False, False)).get("pg_status", {})
        groups = {name: _progress(status.get(str(uid), {})) for name, uid in uids.items()}
        now, moves = time.monotonic(), groups != self._groups
        if moves:
            self._groups, self._since = groups, now
        if self._account is None or not moves or now - self._account_at >= MOVES_TOLD:
            self._dump = self._dump or self._linked(rank)
            self._account = {"since": self._since, "groups": groups, "dump": self._dump}
            self._account_at = now
        return self._account

    def _linked(self, rank: int) -> str:
        """Where this rank dumps on request: until then, a link to where torch would dump by itself."""
        begin = os.environ.get(PIPE, "")
        if not _is_ours(begin, self._run):
            return ""
        dump = f"{begin}{rank}"
        with contextlib.suppress(OSError):
            os.symlink(f"{_usual_begin()}{rank}", dump)
        return dump


def _usual_begin() -> str:
    """Where torch dumps by itself (FlightRecorder.cpp, `DebugInfoWriter::getWriter`)."""
    if _is_before(IN_CACHE):
        return "/tmp/nccl_trace_rank_"
    home = os.environ.get("HOME", "/tmp")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache")
    return os.path.join(cache, "torch", "comm_lib_trace_rank_")


def _progress(status: Dict[str, Any]) -> Tuple[int, int]:
    """The number of the newest collective that was enqueued, and of the newest that is completed."""
    numbers = (status.get(f"last_{what}_collective", -1) for what in ("enqueued", "completed"))
    enqueued, completed = map(int, numbers)
    return enqueued, completed
