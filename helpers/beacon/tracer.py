"""Lets the instrument read the memory of this process, where Yama allows that to ancestors alone.

With `kernel.yama.ptrace_scope` 1, as Ubuntu has it, a process may be read by its ancestors, and by the
descendants of the one that it names: https://docs.kernel.org/admin-guide/LSM/Yama.html. py-spy, which
reads the stack while a C call holds the interpreter lock, is a child of the instrument.
"""

from __future__ import annotations

import sys

PR_SET_PTRACER = 0x59616D61

SCOPE = "/proc/sys/kernel/yama/ptrace_scope"


class Tracer:
    """The instrument, as the process that may read this one.

    Args:
        guardian: pid of its child, under which the job runs; 0 for none.
    """

    def __init__(self, guardian: int) -> None:
        self._guardian = guardian
        self._admitted = not guardian or _content(SCOPE).strip() != "1"

    def admit(self) -> None:
        """Name the instrument, once, as soon as the job itself has imported `ctypes`."""
        if self._admitted:
            return
        ctypes = sys.modules.get("ctypes")
        if hasattr(ctypes, "pythonapi"):  # one of the last things that the module defines
            assert ctypes is not None
            self._admitted = True
            parent = _content(f"/proc/{self._guardian}/stat").rpartition(")")[2].split()[1:2]
            if parent:
                ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(int(parent[0])), 0, 0, 0)


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
