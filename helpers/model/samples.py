"""What a rank did at one moment: the facts of which it is told who is waited for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from .frames import Frame
from .slow import SlowKind

Doing = Literal["waits", "child", "works", "device"]
"""It waits for other ranks, for a child that loads data, for neither, or perhaps for its device."""

SLEEPS = "nanosleep"

READS = frozenset(
    (
        *(
            "read",
            "write",
            "pread",
            "readv",
            "writev",
            "fsync",
            "open",
            "lseek",
            "ioctl",
            "flock",
            "fcntl",
        ),
        *("connect", "accept", "sendto", "recvfrom", "sendmsg", "recvmsg"),
        *("poll", "select", "epoll_wait"),
    )
)
"""System calls that read, write, or wait for what is outside."""

Line = tuple[Frame, SlowKind, bool]
"""A line, what takes the time there as far as a single sample shows it, and whether it is a sleep."""


class Sample(msgspec.Struct, frozen=True):
    """What a rank did at one tick, one of the moments at which all processes of a machine are sampled.

    Attributes:
        tick: number of it; due: of the one at which the sample was to be taken. Where that is an earlier
            one, the process could not run in between. Of what is read from outside, a number of its own.
        at: seconds since the command was started.
        where: the user's innermost line, or that of the child that loads data.
        within: `loader` while it fetches data, `compiler` while torch compiles, `storage` while it saves
            or loads, else empty.
        call: the system call that blocks it; empty while it could run.
        issued: torch's own name of a group -> the number of the newest collective that it has issued.
        ran, wanted: seconds for which its thread has had a processor, and has waited for one, so far.
        used: seconds of processor time that the whole process has used so far.
        collections: how often all its objects have been searched for garbage so far.
        load: threads of the whole machine that run or could run, for each core, in the last minute.
    """

    tick: int
    due: int
    at: float
    doing: Doing
    where: Frame | None = None
    within: str = ""
    call: str = ""
    issued: Mapping[str, int] = msgspec.field(default_factory=dict)
    ran: float = 0.0
    wanted: float = 0.0
    used: float = 0.0
    collections: int = 0
    load: float = 0.0

    @property
    def kind(self) -> SlowKind:
        """What takes the time, as far as a single sample shows it."""
        if self.doing == "child" or self.within == "loader":
            return "input"
        if self.within == "compiler":
            return "compile"
        if self.within == "storage" or self.call in READS:
            return "io"
        return "unknown" if self.call else "compute"

    @property
    def line(self) -> Line | None:
        """Where it was; None where that is not known."""
        return None if self.where is None else (self.where, self.kind, self.call == SLEEPS)
