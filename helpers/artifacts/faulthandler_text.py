"""What `faulthandler`, pystack and gdb's `py-bt` print -> where the threads of a process are.

`Thread 0x... [NAME] (most recent call first):` or `Current thread 0x...`, and below it the frames:
`  File "F", line N in NAME` (Python's Python/traceback.c; the name of the thread since 3.14). gdb has
`Traceback (most recent call first):` and a comma before `in` (Python's Tools/gdb/libpython.py). pystack
1.0 to 1.5 has `Traceback for thread ID (NAME) [] (most recent call last):` and
`    (Python) File "F", line N, in NAME`, the outermost frame first (pystack/traceback_formatter.py).
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable

from ..observe.account import Account
from ..observe.tracebacks import TRACEBACK
from . import pyspy_dump

KIND = "faulthandler dump"

MULTIPROCESSING = os.path.join("multiprocessing", "process.py")
"""The file in which the children of Python's `multiprocessing` begin."""

BEGINS = re.compile(
    r"(?:(?P<current>Current )?[Tt]hread 0x[0-9a-f]+(?: \[(?P<name>.*)\])? |Traceback )"
    r"\(most recent call first\):$"
    r"|Traceback for thread (?P<id>\d+) .*\((?P<last>most recent call last)\):$"
)
_FRAME = re.compile(
    r' +(?:\((?P<kind>Python|C)\) )?File "(?P<file>.+?)", line (?P<line>\d+),? in (?P<function>.+)$'
)


def account(lines: Iterable[str], path: str) -> Account | None:
    """What a dump tells; None where it has no frame.

    The main thread is the one that is marked as current, which a crash was in, unless `threading` has
    started it; else the one that runs the top level of a module, or the function of a child of
    `multiprocessing`. Where there is neither, it is not in the text.
    """
    threads: list[pyspy_dump.DumpedText] = []
    current: set[int] = set()
    backwards: set[int] = set()
    for line in itertools.takewhile(lambda line: not line.endswith(TRACEBACK), lines):
        frame = _FRAME.match(line)
        if begun := BEGINS.match(line):
            number = len(threads) + 1
            threads.append(pyspy_dump.DumpedText(0, number, begun["name"] or f"thread {number}"))
            current |= {number} if begun["current"] else set()
            backwards |= {number} if begun["last"] else set()
        elif threads and frame and frame["kind"] != "C":
            threads[-1].add(frame["function"], frame["file"], int(frame["line"]))
    for thread in threads:
        if thread.thread_id in backwards:
            thread.frames.reverse()
    with_frames = [thread for thread in threads if thread.frames]
    if not with_frames:
        return None
    main = _main(with_frames, current)
    if main is not None:
        main.thread_name = "MainThread"
    return pyspy_dump.of_threads(with_frames, (), path, KIND)


def _main(threads: list[pyspy_dump.DumpedText], current: set[int]) -> pyspy_dump.DumpedText | None:
    """The main thread: the current one, unless another one has started it, else the outermost one."""
    outermost = [thread for thread in threads if _is_main(thread)]
    crashed = [thread for thread in threads if thread.thread_id in current]
    if outermost and all(map(_is_started, crashed)):
        crashed = []
    return next(iter(crashed or outermost), None)


def _is_main(thread: pyspy_dump.DumpedText) -> bool:
    """True for a thread that runs the top level of a module, or the function of a child."""
    return thread.frames[-1]["name"] == "<module>" or any(
        frame["filename"].endswith(MULTIPROCESSING) for frame in thread.frames
    )


def _is_started(thread: pyspy_dump.DumpedText) -> bool:
    """True for a thread that another one has started."""
    return thread.frames[-1]["filename"].endswith("threading.py")
