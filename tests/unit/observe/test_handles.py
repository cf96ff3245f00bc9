"""Which handles a rank has not waited for, by what its source says."""

from __future__ import annotations

from typing import Any

import pytest
from beacon_records import record, thread

from helpers.observe.handles import open_handles
from helpers.observe.source import Sources

SOURCE = """\
def train(loss):
    handle = all_reduce(gradient, async_op=True)
    first = loss.item()
    handle.wait()
    return loss.item()

def reduce(gradients):
    handles = [all_reduce(one, async_op=True) for one in gradients]
    torch.futures.wait_all(handles)

def forget():
    all_reduce(metric, async_op=True)
"""

ROWS = [
    ("before the wait", "train", 2, 3, True),
    ("behind the wait", "train", 2, 5, False),
    ("a function that waits, and has returned", "reduce", 8, None, False),
    ("a function that does not wait", "forget", 12, None, True),
]


@pytest.mark.parametrize(
    ("function", "line", "reached", "is_open"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
@pytest.mark.parametrize("handle", [True, False])
def test_whether_a_handle_is_open(
    function: str, line: int, reached: int | None, is_open: bool, handle: bool
) -> None:
    call: Any = {"op": "all_reduce", "group": "default", "number": 3, "place": 0, "handle": handle}
    frames = [] if reached is None else [("/job/train.py", reached, function, True)]
    history: Any = {"newest": [call], "places": [[("/job/train.py", line, function, True)]]}
    seen = record(thread(frames=frames), call_history=history)
    found = open_handles(seen, Sources("/job", lambda _: SOURCE))
    assert found == ({("default", 3)} if is_open and handle else set())


def test_a_process_that_calls_nothing_has_none() -> None:
    assert open_handles(record(), Sources("/job", lambda _: SOURCE)) == frozenset()
