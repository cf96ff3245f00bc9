"""Loops that only look around: from the text of programs, and from stacks of libraries."""

from __future__ import annotations

import math
import textwrap

import pytest
from beacon_records import call, thread

from helpers.beacon.record import Call, FrameEntry
from helpers.observe import polling
from helpers.observe.source import Sources

FILE = "train.py"
HERE = "# <-"
"""Marks the line at which the program is."""


def condition(program: str) -> str | None:
    """What the loop around the marked line of a program tests."""
    text = textwrap.dedent(program)
    (line,) = [number for number, said in enumerate(text.splitlines(), 1) if HERE in said]
    return polling.condition(FILE, line, Sources("/job", lambda _: text))


WAITS = [
    pytest.param(
        """
        while not p.exists():
            time.sleep(1)  # <-
        """,
        "not p.exists()",
        id="while the condition does not hold",
    ),
    pytest.param(
        """
        def wait_for(p):
            while not p.exists():
                print("not yet", flush=True)
                time.sleep(1)  # <-
        """,
        "not p.exists()",
        id="in a function, saying something",
    ),
    pytest.param(
        """
        while True:
            if ready:
                break
            time.sleep(1)  # <-
        """,
        "ready",
        id="left once the condition holds",
    ),
    pytest.param(
        """
        def wait():
            while True:
                if path.exists():
                    return
                elif stopped:
                    raise SystemExit
                time.sleep(1)  # <-
        """,
        "path.exists() or stopped",
        id="left in one of two ways",
    ),
    pytest.param(
        """
        while not a.exists():
            if b.exists():
                break
            time.sleep(1)  # <-
        """,
        "not a.exists() or b.exists()",
        id="ended by one of two conditions",
    ),
    pytest.param(
        """
        while True:
            try:
                item = q.get(timeout=1)  # <-
                break
            except Empty:
                continue
        """,
        "q.get(timeout=1)",
        id="an attempt for some time, made again where it fails",
    ),
    pytest.param(
        """
        while True:
            try:
                f = open(path)
                break
            except OSError:
                time.sleep(1)  # <-
        """,
        "open(path)",
        id="an attempt, made again after a sleep where it fails",
    ),
    pytest.param(
        """
        while not ready:
            time.sleep(1)  # <-
            ready = p.exists()
        """,
        "not ready",
        id="a name that is looked up anew",
    ),
    pytest.param(
        """
        while True:
            time.sleep(1)  # <-
        """,
        "True",
        id="nothing is tested",
    ),
    pytest.param(
        """
        for name in names:
            while not done(name):
                time.sleep(1)  # <-
        """,
        "not done(name)",
        id="for each of several",
    ),
]


@pytest.mark.parametrize(("program", "expected"), WAITS)
def test_what_a_loop_tests_that_does_nothing_but_sleep(program: str, expected: str) -> None:
    assert condition(program) == expected


OTHERS = [
    pytest.param(
        """
        while True:
            time.sleep(9)  # <-
            barrier.wait()
        """,
        id="meets another thread after each sleep",
    ),
    pytest.param(
        """
        while True:
            try:
                report()
            except OSError:
                pass
            time.sleep(9)  # <-
        """,
        id="makes an attempt for ever, and goes on whether it fails or not",
    ),
    pytest.param(
        """
        while time.time() < deadline:
            time.sleep(1)  # <-
        """,
        id="until a time",
    ),
    pytest.param(
        """
        while not p.exists():
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(1)  # <-
        """,
        id="it may give up at a time",
    ),
    pytest.param(
        """
        while not p.exists() and elapsed < 60:
            time.sleep(1)  # <-
        """,
        id="it may give up after some time",
    ),
    pytest.param(
        """
        while tries < 60:
            tries += 1
            time.sleep(1)  # <-
        """,
        id="it counts",
    ),
    pytest.param(
        """
        while True:
            left -= 1
            if left == 0 or p.exists():
                break
            time.sleep(1)  # <-
        """,
        id="it counts down, and leaves",
    ),
    pytest.param(
        """
        while True:
            item = q.get(timeout=1)  # <-
            work(item)
        """,
        id="it works on what it waits for",
    ),
    pytest.param(
        """
        while items:
            work(items.pop())
            time.sleep(1)  # <-
        """,
        id="it works, then sleeps",
    ),
    pytest.param(
        """
        while not p.exists():
            with lock:
                time.sleep(1)  # <-
        """,
        id="it holds something meanwhile",
    ),
    pytest.param(
        """
        for _ in range(60):
            time.sleep(1)  # <-
        """,
        id="so many times",
    ),
    pytest.param(
        """
        while not p.exists():
            for _ in range(60):
                time.sleep(1)  # <-
        """,
        id="so many times within a loop",
    ),
    pytest.param(
        """
        while not p.exists():
            def nap():
                time.sleep(1)  # <-
        """,
        id="a function that a loop makes",
    ),
    pytest.param(
        """
        while not p.exists():
            pass
        time.sleep(1)  # <-
        """,
        id="after a loop",
    ),
    pytest.param("time.sleep(1)  # <-", id="no loop"),
]


@pytest.mark.parametrize("program", OTHERS)
def test_a_loop_that_ends_by_itself_or_does_something_waits_for_no_condition(program: str) -> None:
    assert condition(program) is None


def test_a_program_that_cannot_be_read_shows_no_loop() -> None:
    assert polling.condition(FILE, 3, Sources("/job", lambda _: None)) is None


TORCH = "/opt/lib/torch"
LOADER: FrameEntry = (f"{TORCH}/utils/data/dataloader.py", 1291, "_try_get_data", False)
WORKER: FrameEntry = (f"{TORCH}/utils/data/_utils/worker.py", 300, "_worker_loop", False)
BARRIER: FrameEntry = (f"{TORCH}/distributed/distributed_c10d.py", 980, "_store_based_barrier", False)
QUEUE: FrameEntry = ("/usr/lib/python3.11/queue.py", 180, "get", False)
OWN: FrameEntry = ("/job/train.py", 30, "loop", True)


@pytest.mark.parametrize(
    ("told", "frames", "least", "most"),
    [
        pytest.param(call("store", "get"), [OWN], math.inf, math.inf, id="a key of the store"),
        pytest.param(call("rendezvous", "init"), [OWN], math.inf, math.inf, id="the rendezvous"),
        pytest.param(call("rpc", "init_rpc"), [OWN], math.inf, math.inf, id="that of remote calls"),
        pytest.param(call("rpc", "rpc_sync"), [OWN], 0.0, 0.0, id="a remote call"),
        pytest.param(call("lock", "filelock"), [OWN], math.inf, math.inf, id="a lock file"),
        pytest.param(call("collective", "barrier"), [OWN], 0.0, 0.0, id="a collective does not poll"),
        pytest.param(None, [QUEUE, LOADER, OWN], 1 / 5, 1.0, id="a loader, every five seconds"),
        pytest.param(None, [QUEUE, WORKER], 1 / 5, 1.0, id="a worker, every five seconds"),
        pytest.param(None, [BARRIER, OWN], 1 / 10, 0.5, id="a barrier, every ten seconds"),
        pytest.param(None, [QUEUE, OWN], 0.0, 0.0, id="a queue does not poll"),
        pytest.param(None, [OWN, LOADER], 0.0, 0.0, id="a loader that runs the user's code"),
        pytest.param(None, [("/job/train.py", 3, "_worker_loop", True)], 0.0, 0.0, id="the user's own"),
        pytest.param(None, [("/lib/a.py", 3, "_worker_loop", False)], 0.0, 0.0, id="another library's"),
        pytest.param(None, [], 0.0, 0.0, id="nothing is known"),
    ],
)
def test_how_often_a_thread_wakes_up_to_look_around(
    told: Call | None, frames: list[FrameEntry], least: float, most: float
) -> None:
    assert least <= polling.wakes(thread(call=told, frames=frames)) <= most


CHANGED = """
class Queue:
    def __init__(self):
        self.ready = False
        self.count = 0

    def finish(self):
        self.count += 1
        self.ready = True

    def begin(self):
        self.ready, self.name = False, "x"

    def wait(self):
        while not (self.ready or self.size()):
            time.sleep(1)

    def size(self):
        return self.ready

    def reset(self):
        self.count = 0
"""


def test_the_lines_that_change_what_is_tested_are_told() -> None:
    sources = Sources("/job", lambda _: CHANGED)
    line = CHANGED.splitlines().index("            time.sleep(1)") + 1
    said = polling.condition(FILE, line, sources)
    assert said is not None
    found = polling.changed_at(FILE, line, said, sources)
    assert [(one.function, CHANGED.splitlines()[one.line - 1].strip()) for one in found] == [
        ("finish", "self.ready = True"),
        ("begin", 'self.ready, self.name = False, "x"'),
    ]
    assert polling.changed_at(FILE, line, "not path.exists()", sources) == ()
