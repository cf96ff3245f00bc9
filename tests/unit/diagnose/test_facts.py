"""How ranks, places and waits are spoken of, and who is the odd one out."""

from __future__ import annotations

import pytest
from histories import (
    absent,
    collective,
    ended,
    frame,
    in_collective,
    joining,
    key,
    loading,
    lock,
    rank,
    reading,
    recv,
    send,
    sleeping,
    snapshot,
    stopped,
    wait,
    working,
)

from helpers.diagnose.scene import Facts, minority
from helpers.model.facts import RankView
from helpers.model.waits import InCollective, InStore, OnChild, OnIO, OnLock, Wait
from helpers.model.wording import doing, last_seen, operation, place, spoken

ODD = [
    ({0: "a", 1: "a", 2: "b"}, (2,)),
    ({0: "a", 1: "b"}, (0, 1)),
    ({0: "a", 1: "a", 2: "b", 3: "b"}, (0, 1, 2, 3)),
    ({0: "a", 1: "b", 2: "c", 3: "a"}, (0, 1, 2, 3)),
    ({0: "a", 1: "a", 2: "a", 3: "b", 4: "c"}, (3, 4)),
    ({0: "a", 1: "a"}, (0, 1)),
    ({}, ()),
]


@pytest.mark.parametrize(("places", "expected"), ODD)
def test_the_minority_are_those_outside_a_strict_majority(
    places: dict[int, object], expected: tuple[int, ...]
) -> None:
    assert minority(places) == expected


SPOKEN = [
    ([], "no rank"),
    ([1], "rank 1"),
    ([2, 0], "ranks 0 and 2"),
    ([0, 1], "ranks 0 and 1"),
    ([0, 1, 3], "ranks 0, 1 and 3"),
    ([0, 1, 2], "ranks 0-2"),
    ([0, 1, 2, 3, 4, 5, 7], "ranks 0-5 and 7"),
    (list(range(10, 1000)), "ranks 10-999"),
    (list(range(0, 100, 2)), "ranks 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 and 38 more"),
]


@pytest.mark.parametrize(("ranks", "text"), SPOKEN)
def test_how_ranks_are_spoken_of(ranks: list[int], text: str) -> None:
    assert spoken(ranks) == text


OPERATIONS = [
    (collective("all_reduce", 7), "all_reduce #7"),
    (collective("barrier", None, group="tp"), "barrier of group tp"),
    (wait(InCollective, "barrier"), "barrier"),
    (recv(1), "recv from rank 1"),
    (recv(None), "recv"),
    (send(0), "send to rank 0"),
    (key("ready"), "'ready'"),
    (wait(InStore, "wait"), "a key of the store"),
    (joining(), "init_process_group"),
    (lock("a.lock", "unknown"), "a.lock"),
    (wait(OnLock, "acquire"), "a lock"),
    (loading(), "a DataLoader worker"),
    (wait(OnChild, "wait"), "a child process"),
    (reading(), "stdin"),
    (wait(OnIO, "read", target="pipe:[7]"), "read on pipe:[7]"),
    (wait(OnIO, "poll"), "poll"),
]


@pytest.mark.parametrize(("what", "text"), OPERATIONS)
def test_how_a_wait_is_spoken_of(what: Wait, text: str) -> None:
    assert text in operation(what)


DOING = [
    (absent(0), "never started"),
    (ended(0), "ended"),
    (stopped(0), "stopped by a signal"),
    (rank(0, gil_held=True), "interpreter lock"),
    (sleeping(0), "asleep"),
    (rank(0, state="importing"), "importing"),
    (in_collective(0, "barrier"), "barrier #1"),
    (rank(0, lock("a.lock", "unknown")), "a.lock"),
    (working(0), "working"),
    (rank(0, cpu=0.0), "idle"),
]


@pytest.mark.parametrize(("view", "text"), DOING)
def test_how_it_is_said_what_a_rank_does(view: RankView, text: str) -> None:
    assert text in doing(view.process)


def test_how_a_place_is_spoken_of() -> None:
    assert place(frame("train.py:41 save")) == "train.py:41"
    assert "unknown" in place(None)
    assert "train.py:41" in last_seen(frame("train.py:41 save"))
    assert last_seen(None) == ""


def test_the_place_of_several_ranks_is_that_of_the_first_that_has_one() -> None:
    facts = Facts(snapshot(absent(0), rank(1, at=None), rank(2, at="b.py:2 g")))
    assert facts.where((0, 1, 2, 7)) == frame("b.py:2 g")
    assert facts.where((0, 1)) is None
