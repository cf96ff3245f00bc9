"""Which threads could end what another one of their process waits for: from real sources."""

from __future__ import annotations

import textwrap

import pytest
from beacon_records import record, thread

from helpers.beacon.record import FrameEntry, Thread
from helpers.model.waits import SIGNAL, OnCondition, OnIO, OnLock, OnThread, Wait
from helpers.observe.freeing import freeing, sharing
from helpers.observe.source import Sources

FILE = "/job/train.py"
HERE = "# <-"
"""Marks the line at which a thread is."""

EVENT_LOOP = "/usr/lib/python3.11/asyncio/base_events.py"
EXECUTOR = "/usr/lib/python3.11/concurrent/futures/thread.py"

GET, ACQUIRE = OnThread(op="get"), OnLock(op="acquire")
WAIT, RESULT = OnThread(op="wait"), OnThread(op="result")
READY = OnCondition(op="not (ready or state.stop)")
POLL = OnIO(op="epoll_wait", target="anon_inode:[eventpoll]")
PAUSE = OnIO(op="pause", target=SIGNAL)
UNKNOWN = OnThread(op="a_function_of_a_later_python")

BEATS = """
    def beat():
        while True:
            print("alive", time.time(), flush=True)
            time.sleep(1)  # <-
"""


def freed(wait: Wait, program: str, *below: FrameEntry, above: tuple[FrameEntry, ...] = ()) -> list[str]:
    """The names of the threads that free the main one, beside it one at the marked line.

    Args:
        below: frames that called the one of the marked line; above: those that it calls.
    """
    text = textwrap.dedent(program)
    lines = text.splitlines()
    (line,) = [number for number, said in enumerate(lines, 1) if HERE in said]
    name = next(said for said in reversed(lines[:line]) if said.lstrip().startswith("def "))
    name = name.partition("def ")[2].partition("(")[0]
    waiter: Thread = thread(frames=[(FILE, 1, "<module>", True)])
    frames = [*above, (FILE, line, name, True), *below]
    other = thread(name="other", main=False, frames=frames)
    bare = thread(name="native", main=False)
    found = freeing(wait, waiter, record(waiter, other, bare), Sources("/job", lambda _: text))
    return [one["name"] for one in found]


@pytest.mark.parametrize(
    "wait", [GET, ACQUIRE, WAIT, RESULT, READY, POLL, PAUSE, UNKNOWN], ids=lambda wait: wait.op
)
def test_a_thread_that_only_beats_ends_nothing(wait: Wait) -> None:
    assert freed(wait, BEATS) == []


FREEING = [
    pytest.param(
        GET,
        """
        def produce():
            while True:
                time.sleep(60)  # <-
                tasks.put(read())
        """,
        id="what it puts is waited for",
    ),
    pytest.param(
        GET,
        """
        def produce():
            while True:
                time.sleep(60)  # <-
                hand_over()

        def hand_over():
            tasks.put_nowait(read())
        """,
        id="a function that it calls puts it",
    ),
    pytest.param(
        GET,
        """
        class Reader:
            def run(self):
                time.sleep(60)  # <-
                self.hand_over()

            def hand_over(self):
                self.tasks.put(1)
        """,
        id="a method that it calls puts it",
    ),
    pytest.param(
        OnThread(op="put"),
        """
        def consume():
            while True:
                time.sleep(60)  # <-
                work(tasks.get())
        """,
        id="it makes room in a queue",
    ),
    pytest.param(
        ACQUIRE,
        """
        def save():
            lock.acquire()
            time.sleep(60)  # <-
            lock.release()
        """,
        id="it gives a lock back",
    ),
    pytest.param(
        ACQUIRE,
        """
        def save():
            with lock:
                time.sleep(60)  # <-
        """,
        id="it gives a lock back at the end of a with",
    ),
    pytest.param(
        WAIT,
        """
        def load():
            time.sleep(60)  # <-
            loaded.set()
        """,
        id="it sets an event",
    ),
    pytest.param(
        WAIT,
        """
        def load():
            time.sleep(60)  # <-
            with changed:
                changed.notify_all()
        """,
        id="it notifies of a condition",
    ),
    pytest.param(
        OnThread(op="wait_for"),
        """
        def load():
            time.sleep(60)  # <-
            with changed:
                changed.notify()
        """,
        id="it notifies of what a predicate tests",
    ),
    pytest.param(
        OnThread(op="join"),
        """
        def load():
            time.sleep(60)  # <-
            tasks.task_done()
        """,
        id="it is done with the task of a queue",
    ),
    pytest.param(
        UNKNOWN,
        """
        def load():
            time.sleep(60)  # <-
            tasks.put(1)
        """,
        id="nothing is known of the function that waits",
    ),
    pytest.param(
        POLL,
        """
        def load():
            time.sleep(60)  # <-
            there.send(b'x')
        """,
        id="it sends to a socket that is polled",
    ),
    pytest.param(
        OnIO(op="recvfrom", target="socket:[4711]"),
        """
        def load():
            time.sleep(60)  # <-
            there.sendall(b'x')
        """,
        id="it sends to a socket that is read",
    ),
    pytest.param(
        OnIO(op="accept", target="socket:[4711]"),
        """
        def load():
            time.sleep(60)  # <-
            socket.create_connection(address)
        """,
        id="it connects",
    ),
    pytest.param(
        PAUSE,
        """
        def load():
            time.sleep(60)  # <-
            signal.raise_signal(signal.SIGUSR1)
        """,
        id="it raises a signal",
    ),
    pytest.param(
        RESULT,
        """
        def load():
            time.sleep(60)  # <-
            future.set_result(1)
        """,
        id="it sets a future's result",
    ),
    pytest.param(
        READY,
        """
        def load():
            global ready
            time.sleep(60)  # <-
            ready = True
        """,
        id="it changes a name of the condition",
    ),
    pytest.param(
        READY,
        """
        def load():
            time.sleep(60)  # <-
            state.stop = True
        """,
        id="it changes an attribute in the condition",
    ),
    pytest.param(
        OnCondition(op="len(batches) < 4"),
        """
        def load():
            time.sleep(60)  # <-
            batches.append(read())
        """,
        id="it calls a method of what is in the condition",
    ),
    pytest.param(
        OnCondition(op="not done['loading']"),
        """
        def load():
            time.sleep(60)  # <-
            finish()

        def finish():
            done["loading"] = True
        """,
        id="a function that it calls changes an item of the condition",
    ),
]


@pytest.mark.parametrize(("wait", "program"), FREEING)
def test_a_thread_whose_functions_could_end_the_wait(wait: Wait, program: str) -> None:
    assert freed(wait, program) == ["other"]


NOT_FREEING = [
    pytest.param(
        PAUSE,
        """
        def produce():
            time.sleep(60)  # <-
            there.send(b"x")
        """,
        id="it sends something while a signal is waited for",
    ),
    pytest.param(
        GET,
        """
        def consume():
            time.sleep(60)  # <-
            tasks.get()
        """,
        id="it takes from a queue, too",
    ),
    pytest.param(
        ACQUIRE,
        """
        def produce():
            time.sleep(60)  # <-
            tasks.put(1)
        """,
        id="it puts something while a lock is waited for",
    ),
    pytest.param(
        READY,
        """
        def load():
            time.sleep(60)  # <-
            steady = ready
            print(state)
        """,
        id="it only reads the names of a condition",
    ),
    pytest.param(
        GET,
        """
        def beat():
            time.sleep(60)  # <-

        def produce():
            tasks.put(1)
        """,
        id="a function that it does not call puts",
    ),
    pytest.param(
        GET,
        """
        def produce():
            tasks.put(1)

        def main():
            def produce():
                time.sleep(60)  # <-
        """,
        id="another function of the same name puts",
    ),
]


@pytest.mark.parametrize(("wait", "program"), NOT_FREEING)
def test_a_thread_whose_functions_could_not_end_the_wait(wait: Wait, program: str) -> None:
    assert freed(wait, program) == []


def test_the_functions_that_called_it_count_too() -> None:
    program = """
        def nap():
            time.sleep(60)  # <-

        def produce():
            nap()
            tasks.put(1)
    """
    assert freed(GET, program, (FILE, 6, "produce", True)) == ["other"]
    assert freed(GET, program) == []


def test_what_a_library_does_within_is_not_looked_at() -> None:
    inside: FrameEntry = ("/usr/lib/python3.11/queue.py", 140, "put", False)
    assert freed(GET, BEATS, above=(inside,)) == []


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param("run", ["other"], id="at work on a call"),
        pytest.param("_worker", [], id="waits for a call"),
    ],
)
def test_the_thread_of_an_executor_gives_a_result(function: str, expected: list[str]) -> None:
    assert freed(RESULT, BEATS, (EXECUTOR, 58, function, False)) == expected


def test_the_thread_of_an_event_loop_may_do_anything() -> None:
    assert freed(RESULT, BEATS, (EVENT_LOOP, 600, "run_forever", False)) == ["other"]
    assert freed(RESULT, BEATS, (FILE, 600, "run_forever", False)) == []


def test_a_thread_does_not_free_itself() -> None:
    waiter = thread(frames=[(FILE, 2, "swap", True)])
    text = "def swap():\n    tasks.put(other.get())\n"
    assert freeing(GET, waiter, record(waiter), Sources("/job", lambda _: text)) == []


def test_a_program_that_cannot_be_read_frees_nobody() -> None:
    waiter, other = thread(), thread(main=False, frames=[(FILE, 2, "produce", True)])
    assert freeing(GET, waiter, record(waiter, other), Sources("/job", lambda _: None)) == []


KNOWS = """
    handle.finish()
    def serve():
        while True:
            time.sleep(1)  # <-
            {}
"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("done(handle)", ["other"]),
        ("self.handle = 1", ["other"]),
        ("print(time.time(), len('alive'))", []),
        ("metric.write(1)", []),
    ],
)
def test_where_nothing_tells_for_what_it_waits_a_thread_counts_that_knows_the_same_thing(
    body: str, expected: list[str]
) -> None:
    text = textwrap.dedent(KNOWS.format(body))
    waiter: Thread = thread(frames=[(FILE, 2, "<module>", True)])
    other = thread(name="other", main=False, frames=[(FILE, 5, "serve", True)])
    found = sharing(waiter, record(waiter, other), Sources("/job", lambda _: text))
    assert [each["name"] for each in found] == expected


def test_the_task_of_an_executor_may_know_anything() -> None:
    waiter: Thread = thread(frames=[(FILE, 1, "<module>", True)])
    other = thread(name="other", main=False, frames=[(EXECUTOR, 58, "run", False)])
    found = sharing(waiter, record(waiter, other), Sources("/job", lambda _: ""))
    assert [each["name"] for each in found] == ["other"]
