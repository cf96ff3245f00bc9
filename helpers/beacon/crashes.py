"""Where `faulthandler` writes the stacks of this process when it crashes."""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import os
from typing import Optional

OUT_OF_THE_WAY = 200
"""Lowest number of the file's descriptor: a job may count on the lowest free ones."""


class CrashFile:
    """The file for the stacks of a crash (SIGSEGV, SIGABRT, ...), unless the job has them elsewhere.

    `faulthandler` is asked for nothing else. Its `dump_traceback_later` would answer while a C call
    holds the interpreter lock, but it reads frames that other threads change: a process that has only
    been starved or stopped, and runs on, may then end by SIGSEGV.
    """

    def __init__(self) -> None:
        self._path = ""
        self._fd = -1
        self._stat: Optional[os.stat_result] = None

    def keep(self, path: str) -> None:
        """Have the file at `path` open, and empty: this process runs on.

        In a forked child, whose `faulthandler` has the parent's descriptor, the file takes that number.
        """
        with contextlib.suppress(OSError):
            facts = self._file_facts()
            if facts is None or path != self._path:
                self._open(path, inherited=facts is not None)
            elif facts.st_size:
                os.ftruncate(self._fd, 0)

    def _open(self, path: str, inherited: bool) -> None:
        low = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if inherited:
                os.dup2(low, self._fd, inheritable=False)
            else:
                self._fd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, OUT_OF_THE_WAY)
        finally:
            os.close(low)
        self._path, self._stat = path, os.fstat(self._fd)
        if not faulthandler.is_enabled():
            faulthandler.enable(file=self._fd)

    def _file_facts(self) -> Optional[os.stat_result]:
        """The file as it is now; None where the descriptor is not ours: a job may have closed it."""
        with contextlib.suppress(OSError):
            facts = os.fstat(self._fd)
            if self._stat is not None and os.path.samestat(facts, self._stat):
                return facts
        return None
