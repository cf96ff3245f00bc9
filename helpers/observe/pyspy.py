"""Reads the stacks of processes that have no beacon, or whose beacon cannot run, with py-spy.

py-spy reads the memory of the process (`--nonblocking`) and neither writes to it nor stops it. For that
the kernel asks the same right as a debugger: the same user, and `kernel.yama.ptrace_scope` 0, or root; a
process that has a beacon names us, which is enough for 1.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil

from ..beacon import native
from ..beacon.record import Record, Thread
from . import pyspy_record as dumped
from .look import Program
from .movement import movements

EVERY = 0.4
"""Seconds between two looks."""

SHARE = 0.2
"""Share of the time that looking may take, with many processes."""

LIMIT = 5.0
"""Seconds that one look may take; a dump takes 0.02 s."""

AGAIN_AFTER = 3.0
"""Seconds after a look that failed before the next one."""

_DUMP = ("dump", "--json", "--locals", "--nonblocking", "--full-filenames", "--pid")

MOVING = "it moves too fast to be read"

NEVER_POLL = ("collective", "p2p", "store")
"""Calls in which a thread is not scheduled before they end; a thread in another one may poll."""


class _Thread(msgspec.Struct):
    """What a thread was doing at the last look, and since when.

    Attributes:
        switches: how often it had been scheduled, where it held the interpreter lock, else None;
            scheduled: since when that is so.
    """

    signature: object
    since: float
    switches: object = None
    scheduled: float = 0.0


class _Process(msgspec.Struct):
    """What is known of a process from the looks so far."""

    record: Record | None = None
    problem: str | None = None
    failed: float = float("-inf")
    threads: dict[int, _Thread] = msgspec.field(default_factory=dict)


class Dumps:
    """The newest record of each process that py-spy is to read."""

    def __init__(self) -> None:
        self.tool = find_tool()
        self._processes: dict[int, _Process] = {}
        self._next = 0.0

    def look(self, programs: Collection[Program]) -> None:
        """Read these processes, if a look is due, and forget all others."""
        previous = self._processes
        self._processes = {program.pid: previous.get(program.pid) or _Process() for program in programs}
        if self.tool is not None and time.monotonic() >= self._next:
            start = time.monotonic()
            running = [
                (program, self._start(program.pid))
                for program in programs
                if start - self._processes[program.pid].failed > AGAIN_AFTER
            ]
            for program, process in running:
                self._take_dump(program, process, start)
            ended = time.monotonic()
            self._next = max(start + EVERY, ended + (ended - start) * (1 / SHARE - 1))

    def answer(self, pid: int) -> Record | str | None:
        """The newest record of a process, or why there is none; None before the first look."""
        if self.tool is None:
            return "py-spy, which could read its stack, is not installed"
        entry = self._processes.get(pid)
        return None if entry is None else entry.record or entry.problem

    def _start(self, pid: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(self.tool), *_DUMP, str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def _take_dump(self, program: Program, process: subprocess.Popen[bytes], start: float) -> None:
        entry = self._processes[program.pid]
        try:
            out, problem = process.communicate(timeout=max(0.1, start + LIMIT - time.monotonic()))
            dump = msgspec.json.decode(out, type=list[dumped.DumpedThread])
        except (subprocess.TimeoutExpired, ValueError) as failure:
            timed_out = isinstance(failure, subprocess.TimeoutExpired)
            if timed_out:
                process.kill()
                process.communicate()
            entry.problem = (
                "py-spy does not answer" if timed_out else reason(problem.decode("utf-8", "replace"))
            )
            entry.failed = time.monotonic()
            return
        cwd = "/"
        with suppress(psutil.Error):
            cwd = psutil.Process(program.pid).cwd()
        now = time.monotonic()
        record = dumped.record(
            dump,
            pid=program.pid,
            parent=program.parent,
            started=program.started,
            argv=program.command,
            environment=program.environment or {},
            cwd=cwd,
        )
        record["read"], record["asked"] = now, start
        previous, entry.threads = entry.threads, {}
        for dumped_thread, thread in zip(dump, record["threads"], strict=True):
            native_id = thread.get("native_id")
            if native_id is not None:
                thread["native"] = native.blocking_call(native_id, str(program.pid))
                thread["schedule"] = native.schedule(native_id, str(program.pid))
            signature = _signature(program.pid, native_id, thread)
            newest = previous.get(dumped_thread["thread_id"])
            if newest is None or newest.signature != signature:
                newest = _Thread(signature, now)
            entry.threads[dumped_thread["thread_id"]] = newest
            thread["since"] = newest.since
            switches = _switches(program.pid, native_id) if thread["holds_gil"] else None
            if switches != newest.switches:
                newest.switches, newest.scheduled = switches, now
            if switches is not None:
                thread["scheduled"] = newest.scheduled
        entry.record, entry.problem = record, None


def find_tool() -> Path | None:
    """The `py-spy` beside this interpreter, else the first on PATH."""
    beside = Path(sys.executable).with_name("py-spy")
    path = str(beside) if beside.exists() else shutil.which("py-spy")
    return Path(path) if path else None


def reason(text: str) -> str:
    """Why py-spy could not read a process, from its own words."""
    if "ermission" in text or "not permitted" in text:
        return "py-spy may not read it: the kernel asks for root, or kernel.yama.ptrace_scope=0"
    if "python version" in text:
        return "py-spy finds no Python in it that it knows"
    if "stack trace" in text:
        return MOVING
    line = next((line.strip() for line in text.splitlines() if line.strip()), "it gave no reason")
    return f"py-spy cannot read it: {line.removeprefix('Error: ')}"


def _signature(pid: int, native_id: int | None, thread: Thread) -> object:
    """What stays equal from look to look while a thread does not move."""
    call = thread["call"]
    polls = call is None or call["kind"] not in NEVER_POLL
    return thread["frames"], None if polls else _switches(pid, native_id)


def _switches(pid: int, thread: int | None) -> object:
    """How often a thread has been scheduled: a blocked thread never is.

    For a thread whose kernel id is unknown, each look gives another answer.
    """
    if thread is None:
        return object()
    return [switches for _, _, switches in movements(pid, (thread,)) or ()]
