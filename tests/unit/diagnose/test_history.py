"""Calls of each rank -> the place from which on they have come apart."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from helpers.diagnose.parting.history import find_desyncs
from helpers.model.frames import Frame
from helpers.model.issued import Issued, IssuedCall

OPS = {"a": "all_reduce", "b": "barrier", "c": "barrier", "d": "all_reduce", "e": "broadcast"}
CALLS = {
    name: IssuedCall(op, (Frame("train.py", line, "main"),))
    for line, (name, op) in enumerate(OPS.items(), start=1)
}


@dataclass(frozen=True)
class Case:
    """What each rank has issued, a letter a call; from which place on they have come apart."""

    title: str
    ranks: tuple[str, ...]
    start: int | None
    first: int = 1
    told: tuple[int, ...] | None = None


CASES = [
    Case("all the same", ("abab", "abab"), None),
    Case("a rank has come further", ("abab", "ab"), None),
    Case("the calls in which they wait differ", ("abe", "aba"), 3),
    Case("a branch of its own for one rank, again and again", ("acacac", "ababab"), None),
    Case("a branch of its own, and a hang after that", ("acace", "ababa"), 5),
    Case("one call too many, met by the next of the others", ("abba", "abab"), 3, told=(3, 4)),
    Case("one call left out, long before the end", ("adaaaaa", "aaaaaa"), 2, told=(2,)),
    Case("calls that take turns", ("adadad", "dadada"), None),
    Case("calls that take turns, and a hang after that", ("adade", "dadaa"), 5, told=(1, 2, 5)),
    Case("three ranks, one of them apart", ("abe", "aba", "aba"), 3),
    Case("only what all still have is compared", ("ebe", "eba"), 42, first=40),
    Case(
        "calls of a rank's own have met, and may not have been meant to", ("abe", "aca"), 3, told=(2, 3)
    ),
    Case("many places: the first and the last", ("eababab", "abababa"), 1, told=(1, 2, 7)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_from_where_on_the_calls_differ(case: Case) -> None:
    issued = {
        rank: (Issued("default", case.first, tuple(CALLS[name] for name in names)),)
        for rank, names in enumerate(case.ranks)
    }
    found = find_desyncs(issued)
    if case.start is None:
        assert found == ()
        return
    (one,) = found
    assert (one.group, one.seq) == ("default", case.start)
    assert tuple(met.seq for met in one.places) == (case.told or (case.start,))
    for rank, names in enumerate(case.ranks):
        call = names[case.start - case.first]
        assert one.calls[rank] is CALLS[call]


def test_each_group_is_compared_by_itself() -> None:
    same, other = (CALLS["a"],), (CALLS["b"],)
    issued = {
        0: (Issued("default", 1, same), Issued("tp", 1, same)),
        1: (Issued("default", 1, same), Issued("tp", 1, other)),
        2: (Issued("default", 1, same),),
    }
    (one,) = find_desyncs(issued)
    assert (one.group, sorted(one.calls)) == ("tp", [0, 1])
    assert [(call.ranks, call.op) for call in one.places[0].calls] == [
        ((0,), "all_reduce"),
        ((1,), "barrier"),
    ]


def test_nothing_is_known() -> None:
    assert find_desyncs({}) == find_desyncs({0: (), 1: ()}) == ()
