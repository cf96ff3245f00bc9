"""Runs the broken and the fixed program of labs over and over in one kernel, and looks for growth.

The kernel is a real one, without a server; a cell opens the panels, and each turn is a cell that
awaits `lab.run`, as the cells of the notebooks do.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from jupyter_client.blocking import BlockingKernelClient
from jupyter_client.manager import start_new_kernel

from helpers.labs.progress import FOLDER

from .part import Part

WARM_UP = 0.2
"""The share of turns that fill caches and pools, and do not count."""
MEGABYTE = 2**20
SLACK = {"memory": 20 * MEGABYTE, "objects": 5000, "threads": 0, "descriptors": 0, "widgets": 0}
"""What the end may exceed the beginning by. The allocator keeps some memory that it will use again; some
of the objects that Python's garbage collector tracks are in caches."""
LIMIT = 1800.0
"""Seconds for one turn."""

OPEN = """
import ctypes, gc, json, os, threading
import psutil
from ipywidgets.widgets import widget
from helpers.panel import open_lab

libc = ctypes.CDLL(None)
labs = [open_lab(name) for name in {labs!r}]

async def turn():
    outcomes = []
    for lab in labs:
        for program in ("broken", "fixed"):
            result = await lab.run(program)
            outcomes.append(result.report.verdict.outcome)
        lab.reset()  # how much a panel keeps of its newest run depends on how long that took
    return outcomes

def sizes():
    gc.collect()
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)  # what glibc keeps for later is not in use
    me = psutil.Process()
    return {{
        "memory": me.memory_info().rss,
        "objects": len(gc.get_objects()),
        "threads": threading.active_count(),
        "descriptors": me.num_fds(),
        "widgets": len(widget._instances),
    }}
"""
TURN = "outcomes = await turn()\nprint(json.dumps([outcomes, sizes()]))"


def measure(turns: int, labs: Sequence[str]) -> Part:
    """Run each lab that many times, broken and fixed, all labs in turn.

    Args:
        labs: their names or numbers.
    """
    with tempfile.TemporaryDirectory() as state, _kernel({**os.environ, FOLDER: state}) as client:
        _cell(client, OPEN.format(labs=list(labs)))
        told = [json.loads(_cell(client, TURN).splitlines()[-1]) for _ in range(turns)]
    return judge([outcomes for outcomes, _ in told], [sizes for _, sizes in told], labs)


def judge(
    outcomes: Sequence[Sequence[str]], sizes: Sequence[Mapping[str, int]], labs: Sequence[str]
) -> Part:
    """Compare the first turns after the warm-up with the last, and the outcomes with those of turn 1.

    Args:
        outcomes: of each turn, of each program.
        sizes: at the end of each turn.
    """
    warm = max(1, int(WARM_UP * len(sizes)))
    few = max(1, (len(sizes) - warm) // 4)
    rows, faults = [], list(_changed(outcomes))
    for name, slack in SLACK.items():
        values = [one[name] for one in sizes]
        first = statistics.median(values[warm : warm + few] or values[-1:])
        last = statistics.median(values[-few:])
        rows.append(
            f"| {name} | {_shown(name, values[0])} | {_shown(name, first)} | {_shown(name, last)} |"
        )
        if last - first > slack:
            faults.append(f"{name} grew from {_shown(name, first)} to {_shown(name, last)}")
    lines = (
        f"{len(sizes) * len(labs)} rounds of broken and fixed in one kernel: {len(sizes)} of each of "
        f"the labs {', '.join(labs)}, in turn.",
        "",
        "| | after the first turn | after the warm-up | at the end |",
        "|---|---|---|---|",
        *rows,
    )
    return Part("Rounds in one kernel", lines, tuple(faults))


def _changed(outcomes: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, one in enumerate(outcomes, 1):
        if one != outcomes[0]:
            yield f"turn {number} ended {', '.join(one)}, and turn 1 {', '.join(outcomes[0])}"


def _shown(name: str, value: float) -> str:
    return f"{value / MEGABYTE:.1f} MB" if name == "memory" else f"{value:.0f}"


@contextmanager
def _kernel(environment: Mapping[str, str]) -> Iterator[BlockingKernelClient]:
    manager, client = start_new_kernel(startup_timeout=LIMIT, env=environment)
    try:
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def _cell(client: BlockingKernelClient, code: str) -> str:
    """What a cell prints. Raises RuntimeError with its traceback."""
    said: list[str] = []

    def hear(message: Mapping[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] == "stream" and content["name"] == "stdout":
            said.append(content["text"])
        elif message["msg_type"] == "error":
            said.append("\n".join(content["traceback"]))

    answer = client.execute_interactive(code, timeout=LIMIT, output_hook=hear)
    if answer["content"]["status"] != "ok":
        raise RuntimeError("".join(said))
    return "".join(said)
