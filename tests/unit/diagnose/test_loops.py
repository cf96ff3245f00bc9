"""The loops of a graph, against what follows from their definition."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.diagnose.loops import loops


@pytest.mark.parametrize(
    ("leads", "wanted"),
    [
        ({}, []),
        ({1: [1]}, [{1}]),
        ({1: [2], 2: []}, [{2}, {1}]),
        ({1: [2], 2: [1]}, [{1, 2}]),
        ({1: [2], 2: [3], 3: [1], 4: [1, 5], 5: [4, 6], 6: []}, [{1, 2, 3}, {6}, {4, 5}]),
        ({1: [2, 3], 2: [4], 3: [4], 4: []}, [{4}, {2}, {3}, {1}]),
    ],
    ids=["nothing", "to itself", "a way", "a circle", "two circles and an end", "two ways to one end"],
)
def test_the_loops_of_small_graphs(leads: dict[int, list[int]], wanted: list[set[int]]) -> None:
    assert loops(leads) == wanted


def test_a_circle_of_many_needs_no_recursion() -> None:
    many = range(50_000)
    assert loops({rank: [(rank + 1) % len(many)] for rank in many}) == [{*many}]


def reached(leads: dict[int, set[int]], start: int) -> set[int]:
    found, new = {start}, [start]
    while new:
        after = leads[new.pop()] - found
        found |= after
        new += after
    return found


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=30))
def test_two_nodes_share_a_loop_just_where_each_reaches_the_other(ways: list[tuple[int, int]]) -> None:
    leads: dict[int, set[int]] = {node: set() for node in range(10)}
    for start, end in ways:
        leads[start].add(end)
    far = {node: reached(leads, node) for node in leads}
    found = loops(leads)
    assert sorted(node for loop in found for node in loop) == [*range(10)]
    for loop in found:
        for node in loop:
            assert loop == {other for other in far[node] if node in far[other]}
    for first, later in pairwise(found):
        assert not any(node in far[one] for one in first for node in later)
