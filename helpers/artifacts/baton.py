"""A traceback that ends in the wait for the lock under which torch builds an extension."""

from __future__ import annotations

import re
from collections.abc import Collection

from ..beacon.record import FrameEntry
from ..model.facts import CUT_OFF
from .log_rank import INTERRUPTED, LogRank, error

WAITS = re.compile(r"[\\/]torch[\\/]utils[\\/]file_baton\.py$")
BUILDS = re.compile(r"[\\/]torch[\\/]utils[\\/]cpp_extension\.py$")
CALL = "baton.wait()"
"""The line of `cpp_extension.py` that waits: torch 1.2 to 2.15, torch/utils/cpp_extension.py."""

AT_WORK = ("_run_ninja_build", "_write_ninja_file_and_build_library")
"""Functions of the process that has the lock, and builds."""


def waiting(log_ranks: Collection[LogRank]) -> list[LogRank]:
    """Those whose traceback shows that they were in the wait when somebody ended them.

    None where another one was building: a lock whose holder is at work is no hang.
    """
    builds = any(frame[2] in AT_WORK for log_rank in log_ranks for frame in _frames(log_rank))
    return [] if builds else [log_rank for log_rank in log_ranks if _waits(log_rank)]


def _frames(log_rank: LogRank) -> list[FrameEntry]:
    raised = error(log_rank)
    return raised["frames"] if raised is not None else []


def _waits(log_rank: LogRank) -> bool:
    raised, frames, death = error(log_rank), _frames(log_rank), log_rank.death
    if raised is None or death is None or not frames or raised["type"] not in (*INTERRUPTED, CUT_OFF):
        return False
    file, _, function, _ = frames[0]
    sources = [line.strip() for line in death.lines[-4:]]
    in_baton = function == "wait" and WAITS.search(file) is not None
    return in_baton or (BUILDS.search(file) is not None and CALL in sources)
