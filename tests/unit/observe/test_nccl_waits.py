"""While NCCL has something left to do, its recorder tells what a rank waits for, and not its line."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from beacon_records import call, record, thread
from dumps import done, dump, entry

from helpers.beacon.record import Groups, Record
from helpers.observe import flight_dump, nccl
from helpers.observe.look import Entries
from helpers.observe.source import Sources
from helpers.observe.waits import thread_waits

AT = ("/job/train.py", 1, "step", True)
SOURCES = Sources("/job", lambda _: "loss.item()")
NOW = 100.0
DUMP = "/run/nccl/7.0"
ENTRIES = flight_dump.account(dump(done("all_reduce", 1), entry("all_reduce_barrier", 2)), "").flight


def groups_of(*backends: str) -> Groups:
    """The default group, and one for each further backend."""
    found: list[Any] = [
        {"name": name, "id": str(number), "ranks": [0, 1], "backend": backend, "guessed": False}
        for number, (name, backend) in enumerate(zip(("default", "tp"), backends, strict=False))
    ]
    return {"rank": 0, "world_size": 2, "groups": found, "made": 1}


def account(enqueued: int, completed: int, since: float = NOW - 5.0, dump: str = DUMP) -> Any:
    return {"since": since, "groups": {"0": (enqueued, completed)}, "dump": dump}


def seen(op: str | None, *backends: str, **facts: Any) -> Record:
    """A rank in a call, or in a line that reads a value of its device."""
    inside = thread(
        frames=[AT], spins=True, call=None if op is None else call("collective", op, group="default")
    )
    return record(inside, dist=groups_of(*(backends or ("nccl",))), accelerator="cuda", **facts)


ROWS: list[tuple[str, Record, list[tuple[str, str, bool]]]] = [
    ("a read, nothing left to do", seen(None, nccl=account(4, 4)), [("device", "item", True)]),
    ("a read, nothing tells what is left", seen(None, nccl=account(4, 2)), [("device", "item", True)]),
    (
        "a read behind what the recorder has",
        nccl.recorded(seen(None, nccl=account(2, 1)), ENTRIES),
        [("collective", "barrier", True), ("device", "barrier", False)],
    ),
    (
        "a call, nothing left to do",
        seen("barrier", nccl=account(4, 4)),
        [("collective", "barrier", True)],
    ),
    ("a call, something left to do", seen("barrier", nccl=account(4, 2)), [("device", "barrier", True)]),
    (
        "a call that the recorder has",
        nccl.recorded(seen("barrier", nccl=account(2, 1)), ENTRIES),
        [("collective", "barrier", True)],
    ),
    ("a torch that does not tell", seen("barrier", unseen=["nccl"]), [("device", "barrier", True)]),
    (
        "the making of a group",
        seen("new_group", nccl=account(4, 2)),
        [("collective", "new_group", True)],
    ),
    (
        "a call in a group of gloo",
        seen("barrier", "gloo", "nccl", nccl=account(4, 2)),
        [("collective", "barrier", True)],
    ),
    ("a dump without an account", seen("barrier"), [("collective", "barrier", True)]),
]


@pytest.mark.parametrize(("rank", "waits"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_what_a_rank_waits_for(rank: Record, waits: list[tuple[str, str, bool]]) -> None:
    found = thread_waits(rank["threads"][0], rank, SOURCES)
    assert [(wait.kind, wait.op, wait.blocking) for wait in found] == waits


def test_a_rank_that_reads_is_held_by_what_it_has_enqueued() -> None:
    rank = nccl.recorded(seen(None, nccl=account(2, 1)), ENTRIES)
    first = thread_waits(rank["threads"][0], rank, SOURCES)[0]
    assert (first.enqueued, first.group, first.seq) == (True, "default", 2)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rank", "asked"),
    [
        (seen(None, nccl=account(2, 1)), Entries(DUMP, NOW - 5.0)),
        (seen(None, nccl=account(2, 2)), None),
        (seen(None, nccl=account(2, 1, since=NOW - 1.0)), None),
        (seen(None, nccl=account(2, 1, dump="")), None),
        (seen(None), None),
        (None, None),
    ],
    ids=["left", "nothing left", "it moves", "the user's own pipe", "no account", "no record"],
)
def test_when_entries_are_asked_for(rank: Record | None, asked: Entries | None) -> None:
    assert nccl.question(rank, NOW) == asked


def test_another_recorder_with_something_pending_is_not_replaced() -> None:
    of_gloo: Any = {"since": 1.0, "entries": [{"group": "1", "done": False}]}
    rank = seen(None, "nccl", "gloo", nccl=account(2, 1), flight=of_gloo)
    assert nccl.recorded(rank, ENTRIES)["flight"] is of_gloo


@pytest.mark.parametrize(
    ("known", "answer", "said"),
    [
        (account(2, 1, dump=""), None, "left to you"),
        (account(2, 1), "no pipe", "no pipe"),
        (account(2, 1), None, ""),
        (account(2, 2, dump=""), None, ""),
        (account(2, 1, since=NOW, dump=""), None, ""),
    ],
    ids=["the user's own pipe", "it cannot be had", "not yet there", "not wanted", "it moves"],
)
def test_why_entries_cannot_be_seen(known: Any, answer: str | None, said: str) -> None:
    found = [*itertools.islice(nccl.not_seen(seen(None, nccl=known), answer, NOW), 2)]
    assert (len(found), said in "".join(found)) == (int(bool(said)), True)
