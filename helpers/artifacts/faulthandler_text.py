"""What `faulthandler` prints -> where the threads of a process are.

`Thread 0x... [NAME] (most recent call first):` or `Current thread 0x...`, and below it the frames:
`  File "F", line N in NAME` (Python's Python/traceback.c; the name of the thread since 3.14).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..beacon.record import FrameEntry, Thread
from ..observe import pyspy_record as dumped
from ..observe.account import Account

KIND = "faulthandler dump"

BEGINS = re.compile(r"(Current thread|Thread) 0x[0-9a-f]+(?: \[(.*)\])? \(most recent call first\):$")
_FRAME = re.compile(r'  File "(.+?)", line (\d+) in (.+)$')


def account(lines: Iterable[str], path: str) -> Account | None:
    """What a dump tells; None where it has no frame."""
    threads: list[Thread] = []
    for line in lines:
        begun = BEGINS.match(line)
        frame = _FRAME.match(line)
        if begun:
            name = begun[2] or f"thread {len(threads) + 1}"
            thread: Thread = {
                "name": name,
                "main": False,
                "since": 0.0,
                "frames": [],
                "call": None,
                "native": None,
                "site": None,
            }
            threads.append(thread)
        elif threads and frame:
            file = frame[1]
            entry: FrameEntry = (file, int(frame[2]), frame[3], dumped.is_user(file, ()))
            threads[-1]["frames"].append(entry)
    if not any(thread["frames"] for thread in threads):
        return None
    # The main thread comes last; the one that has been dumped for its crash is marked as current.
    main = next((one for one in threads if _is_main(one)), threads[-1])
    main["name"], main["main"] = "MainThread", True
    return Account(file=path, kind=KIND, threads=tuple(threads))


def _is_main(thread: Thread) -> bool:
    return bool(thread["frames"]) and thread["frames"][-1][2] == "<module>"
