"""The threads of a process that have ended."""

from __future__ import annotations

from typing import Any

from support.beacon_records import record, thread

from helpers.observe.process_table import Row
from helpers.observe.thread_ends import MOST_ENDED, ended_threads

CWD = "/job"
MAIN = thread(native_id=1, frames=[("/job/train.py", 9, "main", True)])


def beside(number: int, line: int = 5, *, user: bool = True) -> Any:
    """A thread beside the main one, with the kernel's id of it."""
    frames = [("/lib/queue.py", 140, "put", False), ("/job/data.py", line, "produce", user)]
    return thread(name=f"Thread-{number}", main=False, native_id=number, frames=frames)


def test_a_thread_has_ended_once_it_is_there_no_more() -> None:
    row = Row(1, 0, 0.0, ("python",), look_time=0.0)
    looks = [[], [beside(2, 5)], [beside(2, 7), beside(3)], [beside(3)], [beside(4, user=False)]]
    told = [ended_threads(record(MAIN, *threads), row, CWD) for threads in looks]
    assert told[:4] == [(), (), (), ()], "while one is left, it may do what is waited for"
    assert [(name, at.file, at.line) for name, at in told[4]] == [
        ("Thread-2", "data.py", 7),
        ("Thread-3", "data.py", 5),
    ]


def test_the_last_ones_are_told() -> None:
    row = Row(1, 0, 0.0, ("python",), look_time=0.0)
    for number in range(2, 20):
        ended_threads(record(MAIN, beside(number)), row, CWD)
    told = ended_threads(record(MAIN), row, CWD)
    assert [name for name, _ in told] == [f"Thread-{n}" for n in range(20 - MOST_ENDED, 20)]
