"""What ends a wait for another thread."""

from __future__ import annotations

import pytest

from helpers.program.wakers import awaited

SOURCE = """\
class Loader:
    def fill(self, jobs):
        for job in self.read():
            self.jobs.put(job)
        jobs.put(None)
    def batches(self):
        while True:
            yield self.jobs.get()
def upload(done, results):
    done.wait()
    results.get()
    with lock:
        lock.wait(timeout=3)
done.set()
seen.add(1)
x = config.get("size")
y = future.result()
future.set_result(
    3)
z = (a.get(),
     b.get())
"""


@pytest.mark.parametrize(
    ("line", "call", "wakers"),
    [
        (8, "self.jobs.get()", [(4, "fill"), (5, "fill")]),
        (10, "done.wait()", [(14, "<module>")]),
        (17, "future.result()", [(18, "<module>")]),
    ],
)
def test_what_may_end_it_is_told(line: int, call: str, wakers: list[tuple[int, str]]) -> None:
    told = awaited(SOURCE, line)
    assert told is not None
    assert (told.call, [tuple(waker) for waker in told.wakers]) == (call, wakers)


@pytest.mark.parametrize("line", [3, 11, 13, 15, 16, 20])
def test_where_nothing_ends_it_nothing_is_told(line: int) -> None:
    assert awaited(SOURCE, line) is None


def test_what_is_no_python_tells_nothing() -> None:
    assert awaited("x = (", 1) is None
