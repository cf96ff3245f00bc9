"""What one file tells of one process of a job, in the words of a beacon's record."""

from __future__ import annotations

import msgspec

from ..beacon.record import Error, Flight, Group, Thread
from ..model.facts import LockWait


class Account(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What one file tells of one process; what it does not tell is None or empty.

    Attributes:
        file: where it was found.
        kind: of the file, in words: `Flight Recorder dump`; written: when, in seconds of the Unix epoch.
        rank, local_rank, world_size: as for a process of the job.
        worker: True for a worker of a DataLoader; worker_id: its number, where that is known.
        master: `address:port` at which it looks for the store.
        threads: where they are; busy: True while the main one uses the processor.
        groups: the process groups in which it has issued something; flight: its Flight Recorder.
        error: the exception that has ended it.
        died: True where only that it has ended is told.
        ended_at: number of the line that tells how it has ended, 0 for none.
        timed_out: True for a process of which an operation has taken longer than its timeout.
        masked: failures that follow from what came first in the file, in words.
        absent: ranks for which others wait, as a library tells.
        doubled: ranks as which two processes have started, as their labels tell.
        lock: the one for which it waits, as a log tells.
        ended_by: who has ended the job from outside, in words; empty where nobody has.
        quotes: number of a line of the file, and the line, of those that tell something.
        memory_kills: how many processes the kernel has killed for memory, as a log tells.
        warned: what NCCL has warned of, with who says so.
        output: the newest lines that it has printed, of an account that tells nothing else.
    """

    file: str
    kind: str
    written: float | None = None
    rank: int | None = None
    worker: bool = False
    worker_id: int | None = None
    master: str | None = None
    local_rank: int | None = None
    world_size: int | None = None
    host: str = ""
    pid: int | None = None
    command: tuple[str, ...] = ()
    threads: tuple[Thread, ...] = ()
    busy: bool = False
    groups: tuple[Group, ...] = ()
    flight: Flight | None = None
    error: Error | None = None
    exit_code: int | None = None
    signal: int | None = None
    died: bool = False
    ended_at: int = 0
    timed_out: bool = False
    masked: tuple[str, ...] = ()
    absent: tuple[int, ...] = ()
    doubled: tuple[int, ...] = ()
    lock: LockWait | None = None
    ended_by: str = ""
    quotes: tuple[tuple[int, str], ...] = ()
    memory_kills: int = 0
    warned: tuple[str, ...] = ()
    output: tuple[str, ...] = ()

    @property
    def has_failed(self) -> bool:
        """True where a file tells that the process has ended badly."""
        return self.died or any(end is not None for end in (self.error, self.signal, self.exit_code))


class UnreadableError(Exception):
    """A file is not what it looks like, or holds more than can be read; the text says which."""
