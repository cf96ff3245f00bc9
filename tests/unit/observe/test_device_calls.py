"""Which collective holds a rank that waits for its device."""

from __future__ import annotations

import pytest
from histories import in_collective, rank, wait, working
from msgspec.structs import replace

from helpers.model.facts import Collective, Group, RankView
from helpers.model.waits import UNKNOWN_CALL, InCollective, OnDevice
from helpers.observe.device_calls import with_calls

Calls = tuple[str, ...]

EVERYBODY = Group("0", "default", (0, 1))


def with_log(view: RankView, *calls: str, group: Group = EVERYBODY) -> RankView:
    """A rank that has made calls in a group, from number 1 on."""
    assert view.process is not None
    entries = [
        Collective(group.name, number, op, done=True, logged=True) for number, op in enumerate(calls, 1)
    ]
    groups, issued = (*view.process.groups, group), (*view.process.collectives, *entries)
    return replace(view, process=replace(view.process, groups=groups, collectives=issued))


def on_device(number: int) -> RankView:
    return rank(number, wait(OnDevice, "item"))


def held(view: RankView) -> list[tuple[str, str | None, int | None]]:
    """The collectives that a rank waits for: operation, group, number."""
    assert view.process is not None
    found = [w for w in view.process.blocking if isinstance(w, InCollective)]
    assert all(w.enqueued for w in found)
    return [(w.op, w.group, w.seq) for w in found]


A, B = "all_reduce", "barrier"

TWO = [
    ("the same calls: a long kernel", (A, A), (A, A), [], []),
    ("the other has not come yet", (A, A), (A,), [(A, "default", 2)], []),
    ("nor to the calls after that", (A, A, B), (A,), [(A, "default", 2)], []),
    ("different calls", (A, B, A), (A, A, A), [(B, "default", 2)], [(A, "default", 2)]),
    (
        "the first difference counts",
        (A, B, B),
        (A, A, A, A),
        [(B, "default", 2)],
        [(A, "default", 2)],
    ),
    ("a call of which only the number is known", (UNKNOWN_CALL, A), (B, A), [], []),
    ("no calls at all", (), (), [], []),
]


NAMES = ("one", "other", "first", "second")


@pytest.mark.parametrize(NAMES, [row[1:] for row in TWO], ids=[row[0] for row in TWO])
def test_two_ranks_that_wait_for_their_devices(
    one: Calls, other: Calls, first: list[object], second: list[object]
) -> None:
    views = with_calls([with_log(on_device(0), *one), with_log(on_device(1), *other)])
    assert [held(view) for view in views] == [first, second]


def test_a_rank_that_computes_is_held_by_nothing() -> None:
    views = with_calls([with_log(on_device(0), A, A), with_log(working(1), A)])
    assert [held(view) for view in views] == [[(A, "default", 2)], []]


def test_what_is_held_is_not_done_and_the_device_is_waited_for_behind_it() -> None:
    view, _ = with_calls([with_log(on_device(0), A, A), with_log(on_device(1), A)])
    assert view.process is not None
    assert [entry.done for entry in view.process.collectives] == [True, False]
    kinds = [(pending.kind, pending.blocking) for pending in view.process.waits]
    assert kinds == [("collective", True), ("device", False)]


def test_groups_of_one_name_are_told_apart() -> None:
    pairs = [Group("1", "tp", (0, 1)), Group("2", "tp", (2, 3))]
    views = [
        with_log(on_device(number), *([A] * calls), group=pairs[number // 2])
        for number, calls in enumerate((3, 3, 2, 1))
    ]
    assert [held(view) for view in with_calls(views)] == [[], [], [(A, "tp", 2)], []]


WORLD, PAIR = Group("0", "default", (0, 1, 2)), Group("1", "pair", (1, 2))


def in_order(number: int, *places: tuple[Group, int], handles: tuple[int, ...] = ()) -> RankView:
    """A rank on its device that has reduced in these groups, one after the other."""
    view = on_device(number)
    assert view.process is not None
    entries = [
        Collective(group.name, seq, A, done=True, turn=turn, handle=turn in handles, logged=True)
        for turn, (group, seq) in enumerate(places)
    ]
    groups = (WORLD,) if number == 0 else (WORLD, PAIR)
    return replace(view, process=replace(view.process, groups=groups, collectives=tuple(entries)))


def test_a_device_comes_to_nothing_behind_what_holds_it() -> None:
    """Rank 2 has left out the call of its pair: all have issued the next one, and nobody gets there."""
    views = with_calls(
        [
            in_order(0, (WORLD, 1)),
            in_order(1, (PAIR, 1), (WORLD, 1)),
            in_order(2, (WORLD, 1)),
        ]
    )
    assert [held(view) for view in views] == [
        [(A, "default", 1)],
        [(A, "pair", 1)],
        [(A, "default", 1)],
    ]


def test_a_call_whose_handle_is_open_holds_nothing() -> None:
    ahead = in_order(1, (PAIR, 1), (WORLD, 1), handles=(0,))
    views = with_calls([in_order(0, (WORLD, 1)), ahead, in_order(2, (WORLD, 1))])
    assert [held(view) for view in views] == [[], [], []]
    behind = in_order(1, (PAIR, 1), (PAIR, 2), handles=(0,))
    views = with_calls([in_order(0), behind, in_order(2)])
    assert held(views[1]) == [(A, "pair", 1)], "a group's own calls are in order, handle or not"


def test_a_call_of_unknown_turn_is_behind_nothing() -> None:
    views = [
        in_order(0, (WORLD, 1)),
        in_order(1, (PAIR, 1)),
        in_order(2, (WORLD, 1)),
    ]
    process = views[1].process
    assert process is not None
    entries = (*process.collectives, Collective("default", 1, A, done=True, logged=True))
    views[1] = replace(views[1], process=replace(process, collectives=entries))
    assert [held(view) for view in with_calls(views)] == [[], [(A, "pair", 1)], []]


def test_without_a_wait_for_a_device_nothing_changes() -> None:
    views = (in_collective(0, "barrier"), working(1))
    assert with_calls(views) == views
