"""The C functions in which a thread is, by `py-spy dump --native`, which stops it for a moment."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence

import msgspec

from .look import NativeStack
from .pyspy import find_tool

LIMIT = 10.0
"""Seconds after which py-spy is given up; on an idle machine it takes 0.2 s to 0.5 s."""


class _Frame(msgspec.Struct):
    name: str
    filename: str


class _Thread(msgspec.Struct):
    """A thread of a dump, innermost frame first."""

    os_thread_id: int | None
    frames: list[_Frame]


class NativeStacks:
    """What was read of each thread, once for each question."""

    def __init__(self) -> None:
        self._tool = find_tool()
        self._running: dict[NativeStack, tuple[subprocess.Popen[bytes], float]] = {}
        self._answers: dict[NativeStack, Sequence[str]] = {}

    def answer(self, question: NativeStack) -> Sequence[str] | None:
        """The functions of the main thread, innermost first; empty where unreadable, None so far."""
        if question not in self._answers and question not in self._running:
            self._begin(question)
        if question in self._running:
            process, start = self._running[question]
            if process.poll() is None and time.monotonic() - start < LIMIT:
                return None
            del self._running[question]
            process.kill()
            self._answers[question] = _functions(process.communicate()[0], question.pid)
        return self._answers[question]

    def _begin(self, question: NativeStack) -> None:
        if self._tool is None:
            self._answers[question] = ()
            return
        command = [str(self._tool), "dump", "--json", "--native", "--pid", str(question.pid)]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        process = subprocess.Popen(command, stdin=nothing, stdout=pipe, stderr=nothing)
        self._running[question] = process, time.monotonic()

    def close(self) -> None:
        """End what is being read."""
        for process, _ in self._running.values():
            process.kill()
            process.communicate()


def _functions(dump: bytes, thread_id: int) -> Sequence[str]:
    """The names of the native functions above the innermost frame of Python's."""
    try:
        threads = msgspec.json.decode(dump, type=list[_Thread])
    except msgspec.MsgspecError:
        return ()
    names = []
    for frame in next((thread.frames for thread in threads if thread.os_thread_id == thread_id), ()):
        if frame.filename.endswith(".py"):
            break
        names.append(frame.name)
    return tuple(names)
