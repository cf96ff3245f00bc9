"""Which thread another one of the same process waits for: from hand-written records and real sources."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
from beacon_records import record, site, thread
from on_disk import sources

from helpers.beacon.record import Thread
from helpers.observe import threads

LOCKS = """\
def inner():
    with second:
        pass
def outer():
    with first:
        inner()
def by_hand():
    first.acquire()
    try:
        inner()
    finally:
        first.release()
with first: inner()
with condition:
    condition.wait()
"""
FIRST, SECOND = 1, 2
NAMES = {"first": FIRST, "second": SECOND, "condition": FIRST}
FUTEX = {"call": "futex", "fd": None, "target": None, "limited": False}


@pytest.fixture
def file(tmp_path: Path) -> str:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(LOCKS))
    return str(program)


def waiting(
    file: str, name: str, *lines: int, owners: dict[int, int] | None = None, **facts: Any
) -> Thread:
    """A thread whose stack is at these lines, innermost first, each of which can name all locks."""
    position = {2: [2, 2, 9, 15], 14: [14, 15, 0, 20]}.get(lines[0], [lines[0], lines[0], 5, 10])
    held = [{"file": file, "line": line, "names": NAMES, "owners": owners or {}} for line in lines]
    usual: dict[str, Any] = {
        "name": name,
        "main": name == "MainThread",
        "ident": hash(name),
        "native": FUTEX,
        "site": site(file, position),
        "locks": held,
        "frames": [(file, line, "f", True) for line in lines],
    }
    return thread(**{**usual, **facts})


def found(file: str, *all_threads: Thread) -> tuple[list[str], bool]:
    chain, circular = threads.awaited(
        all_threads[0], record(*all_threads), sources(str(Path(file).parent))
    )
    return [one["name"] for one in chain], circular


def test_a_lock_that_another_thread_holds_in_a_with(file: str) -> None:
    main = waiting(file, "MainThread", 2, 99)
    other = waiting(file, "other", 99, 2, site=None)
    other["locks"][1]["line"] = 3
    assert found(file, main, other) == (["other"], False)


@pytest.mark.parametrize("outer", [6, 10], ids=["a with", "acquire and release"])
def test_two_locks_in_opposite_order(file: str, outer: int) -> None:
    """The main thread holds the first and waits for the second, which the other one holds."""
    main = waiting(file, "MainThread", 2, outer)
    other = waiting(file, "other", 5, 3, site=site(file, [5, 5, 9, 14]))
    assert found(file, main, other) == (["other"], True)


def test_a_lock_that_the_thread_holds_itself(file: str) -> None:
    main = waiting(file, "MainThread", 5, 6, site=site(file, [5, 5, 9, 14]))
    assert found(file, main) == ([], True)


def test_the_line_that_asks_for_a_lock_does_not_hold_it(file: str) -> None:
    main = waiting(file, "MainThread", 13, site=site(file, [13, 13, 5, 10]))
    other = waiting(file, "other", 13, site=site(file, [13, 13, 5, 10]))
    assert found(file, main, other) == ([], False)


def test_a_condition_that_is_waited_for_is_not_held(file: str) -> None:
    main = waiting(file, "MainThread", 5, site=site(file, [5, 5, 9, 14]))
    frames = [("/lib/python3.11/threading.py", 327, "wait", False), (file, 15, "f", True)]
    other = waiting(file, "other", 15, site=None, frames=frames)
    assert found(file, main, other) == ([], False)


def test_a_reentrant_lock_says_who_holds_it(file: str) -> None:
    main = waiting(file, "MainThread", 2, owners={SECOND: hash("other")})
    other = waiting(file, "other", 99, site=None)
    assert found(file, main, other) == (["other"], False)


@pytest.mark.parametrize("owner", [0, 4711], ids=["nobody", "a thread that has ended"])
def test_a_reentrant_lock_without_a_holder_that_lives(file: str, owner: int) -> None:
    main = waiting(file, "MainThread", 2, owners={SECOND: owner})
    other = waiting(file, "other", 3, site=None)
    assert found(file, main, other) == ([], False)


def test_a_thread_that_is_joined_and_waits_for_a_lock(file: str) -> None:
    main = waiting(file, "MainThread", 6, site=None, joins=hash("other"))
    other = waiting(file, "other", 5, site=site(file, [5, 5, 9, 14]))
    assert found(file, main, other) == (["other"], True)


def test_who_waits_for_a_time_only_waits_for_nobody(file: str) -> None:
    main = waiting(file, "MainThread", 2, joins=hash("other"), native={**FUTEX, "limited": True})
    assert found(file, main, waiting(file, "other", 3)) == ([], False)


def test_a_lock_that_threading_asks_for(file: str) -> None:
    main = waiting(file, "MainThread", 99, site=None, wants=SECOND)
    assert found(file, main, waiting(file, "other", 3, site=None)) == (["other"], False)
