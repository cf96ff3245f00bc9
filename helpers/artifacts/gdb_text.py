"""What gdb prints of threads (`bt`, `thread apply all bt`, `info threads`) -> where a process is.

`Thread 1 (Thread 0x7f.. (LWP 4242) "python"):` and below it the frames, innermost first:
`#0  0x00007f.. in poll () from /lib/libc.so.6`, `#1  main (argc=1) at main.c:3`; `info threads` has
`* 1    Thread 0x7f.. (LWP 4242) "python" 0x00007f.. in poll () at poll.c:29` (gdb 7 to 16, gdb/stack.c
and gdb/thread.c). A Python built with its symbols shows frames of Python in the arguments:
`f=Frame 0x7f.., for file /app/train.py, line 5, in train (...)`.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable

from msgspec.structs import replace

from ..observe.account import Account
from . import pyspy_dump

KIND = "gdb backtrace"

_FRAME = re.compile(r"^#(?P<number>\d+) +(?:0x[0-9a-f]+ in (?P<at>.+?) ?\(|(?P<inlined>[^\s(].*?) \()")
_THREAD = re.compile(
    r"^(?:\[Switching to t|T)hread (?P<number>\d+) \((?:Thread 0x[0-9a-f]+ \()?"
    r'LWP (?P<lwp>\d+)\)?(?: ".*")?\)'
)
_LISTED = re.compile(
    r'^[* ] +(?P<number>\d+) +(?:Thread 0x[0-9a-f]+ \()?LWP (?P<lwp>\d+)\)? +(?:"(?P<name>[^"]*)" +)?'
    r"(?:0x[0-9a-f]+ in )?(?P<function>[^\s(].*?) *(?:\(|$)"
)
_PYTHON = re.compile(
    r"\bFrame 0x[0-9a-f]+, for file (?P<file>.+?), line (?P<line>\d+), in (?P<function>\S+) \("
)
_SIGNAL = re.compile(
    r"(?:terminated with|received) signal (?P<name>SIG(?!INT|STOP|TRAP|CONT|USR)[A-Z]+)\b"
)

HEADING = re.compile(r"^[\W_]*rank[\s_=:#-]*(?P<rank>\d+)\b(?!.*Error)[^\]]*$", re.IGNORECASE)
"""A line that somebody has written above the stacks of a rank."""

BEGINS = re.compile(
    r"^(?:\(gdb\) )?#0 +(?:0x[0-9a-f]+ in .+ \(|[^\s(].* \(.*\) (?:at|from) \S)"
    r"|^Thread \d+ \((?:Thread 0x[0-9a-f]+ \()?LWP \d+|^[* ] +\d+ +(?:Thread 0x[0-9a-f]+ \()?LWP \d+"
    r"|^(?:Program terminated with|(?:Program|Thread .*) received) signal SIG[A-Z]+, "
)
"""How the stack of a thread begins, and what gdb says before it of a process that a signal has ended."""

PART = re.compile(
    r"^#\d+ |^Thread \d+ \(|^ +(?:from|at) /|^[* ] +\d+ +Thread |^\(gdb\)|^\[(?:New|Switching)"
)
"""How lines of a dump begin."""

FIRST = 1
"""gdb's number of the thread that has started the process."""


def account(lines: Iterable[str], path: str) -> Account | None:
    """What a dump tells of one process; None where it has no frame.

    The main thread is gdb's first one. A stack below no thread's heading is that of the thread which gdb
    has chosen: the first one, of a process to which it was attached.
    """
    threads, crashed = _threads(lines)
    with_frames = [thread for thread in threads if thread.frames]
    if not with_frames:
        return None
    first = [thread for thread in with_frames if thread.thread_id == FIRST]
    main = max(first, key=lambda thread: len(thread.frames), default=None)
    pid = next((thread.os_thread_id for thread in first if thread.os_thread_id), 0)
    for thread in with_frames:
        thread.pid = pid
    if main is not None:
        main.thread_name, main.os_thread_id = "MainThread", main.pid
    process = pyspy_dump.of_threads(with_frames, (), path, KIND)
    return process if crashed is None else replace(process, signal=int(crashed))


def _threads(lines: Iterable[str]) -> tuple[list[pyspy_dump.DumpedText], int | None]:
    """The threads, and the signal that has ended their process; None where none has."""
    threads: list[pyspy_dump.DumpedText] = []
    crashed: int | None = None
    for line in (line.removeprefix("(gdb) ") for line in lines):
        frame, heading = _FRAME.match(line), _THREAD.match(line) or _LISTED.match(line)
        if ended := _SIGNAL.search(line):
            crashed = getattr(signal, ended["name"], crashed)
        elif heading is not None:
            number, lwp = int(heading["number"]), int(heading["lwp"])
            threads.append(pyspy_dump.DumpedText(0, number, f"thread {number}", lwp))
            if function := heading.groupdict().get("function"):
                threads[-1].add(function, "", 0)
        elif frame is not None:
            if frame["number"] == "0" and (not threads or threads[-1].frames):
                threads.append(pyspy_dump.DumpedText(0, FIRST, f"thread {FIRST}"))
            if threads:
                _add(threads[-1], frame["at"] or frame["inlined"], line)
    return threads, crashed


def _add(thread: pyspy_dump.DumpedText, function: str, line: str) -> None:
    """One more frame, with that of Python which it carries out."""
    thread.add(function, "", 0)
    if python := _PYTHON.search(line):
        thread.add(python["function"], python["file"], int(python["line"]))
