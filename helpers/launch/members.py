"""The processes of a run, found at each look by what is new on the machine since the look before."""

from __future__ import annotations

import time
from contextlib import suppress

import psutil

from .guardian import below, parents
from .processes import carriers, is_alive

RESCAN = 5.0
"""Seconds between two searches of the environment of every process."""

ELSEWHERE = 0
"""What the kernel names as the parent of a process whose parent is in no namespace of ours."""


class Members:
    """What descends from the guardian of a run, or carries the run's id in its environment.

    A process whose ancestors have no part in the run never gets one: the kernel gives an orphan to one
    of its ancestors (PR_SET_CHILD_SUBREAPER of prctl(2)). So each is read once, and a look costs what is
    new since the look before, however many processes the machine has.

    Args:
        guardian: its pid.
        run_id: that of the run.
    """

    def __init__(self, guardian: int, run_id: str) -> None:
        self._guardian = guardian
        self._run_id = run_id
        self._members: dict[int, psutil.Process] = {}
        self._strangers: set[int] = set()
        self._searched = -RESCAN

    def look(self) -> list[psutil.Process]:
        """Those that are alive: descendants as of now, others as of at most `RESCAN` seconds ago."""
        members = {pid: process for pid, process in self._members.items() if is_alive(process)}
        present = set(psutil.pids())
        self._strangers &= present
        new = present - self._strangers - members.keys() - {self._guardian}
        place = dict.fromkeys(self._strangers, ELSEWHERE) | dict.fromkeys(members, self._guardian)
        parent_of = {pid: place.get(parent, parent) for pid, parent in parents(new).items()}
        self._strangers |= below(ELSEWHERE, parent_of)
        new_members = []
        for pid in below(self._guardian, parent_of):
            with suppress(psutil.NoSuchProcess):
                new_members.append(psutil.Process(pid))
        now = time.monotonic()
        if now - self._searched >= RESCAN:
            self._searched = now
            new_members += carriers(self._run_id)
        self._members = {process.pid: process for process in new_members if is_alive(process)} | members
        return list(self._members.values())
