"""Which rank a file tells of, where several, or none, say it; and which processes are children."""

from __future__ import annotations

from typing import Any

import pytest
from dumps import dump, entry

from helpers.artifacts.whose import placed, split_children
from helpers.beacon.record import FrameEntry, Thread
from helpers.observe import flight_dump
from helpers.observe.account import Account
from helpers.observe.source import Sources

NO_SOURCES = Sources("", lambda _: None)
TRAIN = ("/home/user/train.py", 12, "train", True)
LOADS = ("/home/user/train.py", 30, "load", True)
FORKED = ("/usr/lib/python3.11/multiprocessing/process.py", 314, "_bootstrap", False)
JOINS = ("/usr/lib/python3.11/multiprocessing/process.py", 149, "join", False)
RUNS = ("/usr/lib/python3.11/subprocess.py", 550, "run", False)
TORCHRUN = ("/env/site-packages/torch/distributed/launcher/api.py", 374, "launch_agent", False)


def stack(pid: int, *frames: FrameEntry, **facts: Any) -> Account:
    thread: Thread = {
        "name": "MainThread",
        "main": True,
        "since": 0.0,
        "frames": list(frames),
        "call": None,
        "native": None,
        "site": None,
    }
    return Account(file=f"{pid}.json", kind="py-spy dump", pid=pid, threads=(thread,), **facts)


def recorder(rank: int, line: int, ranks: tuple[int, ...] = (0, 1)) -> Account:
    return flight_dump.account(dump(entry("barrier", line=line), ranks=ranks), f"rank_{rank}")


CASES: dict[str, tuple[list[Account], dict[int, int | None]]] = {
    "the name of its file": ([stack(7, TRAIN, rank=3)], {7: 3}),
    "another file tells the rank of its process": (
        [stack(7, TRAIN), Account(file="log", kind="log", rank=2, pid=7), stack(8, LOADS, rank=0)],
        {7: 2, 8: 0},
    ),
    "the line at which a recorder has something pending": (
        [recorder(1, 12), recorder(0, 99), stack(7, TRAIN), stack(8, LOADS)],
        {7: 1, 8: 0},
    ),
    "two processes are at that line": (
        [recorder(1, 12), recorder(0, 12), stack(7, TRAIN), stack(8, TRAIN)],
        {7: None, 8: None},
    ),
    "the only one left": ([stack(7, TRAIN, rank=0, world_size=2), stack(8, LOADS)], {8: 1}),
    "two are left": (
        [stack(7, TRAIN, rank=0, world_size=3), stack(8, LOADS), stack(9, LOADS)],
        {8: None, 9: None},
    ),
    "a launcher is no rank": ([stack(7, TRAIN, rank=0, world_size=2), stack(8, TORCHRUN)], {8: None}),
    "the only program there is": ([stack(7, TRAIN)], {7: 0}),
    "with its children": ([stack(7, JOINS, TRAIN), stack(8, LOADS, FORKED)], {7: 0, 8: 0}),
    "two programs": ([stack(7, TRAIN), stack(8, LOADS)], {7: None, 8: None}),
    "a launcher alone": ([stack(8, TORCHRUN)], {8: None}),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_file_it_is(case: str) -> None:
    accounts, expected = CASES[case]
    found = {one.pid: one.rank for one in placed(accounts, NO_SOURCES) if one.threads}
    assert expected.items() <= found.items()


@pytest.mark.parametrize(
    "other",
    [
        stack(8, LOADS, FORKED, rank=1),
        stack(8, LOADS, rank=1, worker=True),
        stack(8, RUNS, LOADS, rank=1),
    ],
    ids=["a forked child", "a worker", "what has started it"],
)
@pytest.mark.parametrize("first", [True, False])
def test_of_several_processes_one_is_the_rank(other: Account, first: bool) -> None:
    rank = stack(7, TRAIN, rank=1)
    rank_accounts, children = split_children([rank, other] if first else [other, rank], NO_SOURCES)
    assert ([one.pid for one in rank_accounts], [one.pid for one in children]) == ([7], [8])


def test_what_names_no_process_tells_of_the_rank_itself() -> None:
    log = Account(file="log", kind="log", rank=1)
    rank_accounts, children = split_children(
        [stack(8, LOADS, FORKED, rank=1), stack(7, TRAIN, rank=1), log], NO_SOURCES
    )
    assert log in rank_accounts and len(rank_accounts) == 2
    assert [one.pid for one in children] == [8]
