"""What is said of several ranks: a clause for those of which the same is said."""

from __future__ import annotations

import pytest

from helpers.model.clauses import Predicate, clauses, every_clause, grouped, values_of, verb

SLEEPS, WAITS = Predicate("sleeps at b.py:9", "sleep at b.py:9"), verb("waits", "wait", "in recv")


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({}, ""),
        ({3: WAITS}, "rank 3 waits in recv"),
        ({3: WAITS, 1: WAITS}, "ranks 1 and 3 wait in recv"),
        (
            {1: WAITS, 2: SLEEPS, 3: SLEEPS, 4: SLEEPS},
            "rank 1 waits in recv and ranks 2-4 sleep at b.py:9",
        ),
        (
            {1: SLEEPS, 0: WAITS, 2: verb("is", "are", "idle")},
            "rank 0 waits in recv, rank 1 sleeps at b.py:9 and rank 2 is idle",
        ),
    ],
)
def test_ranks_of_which_the_same_is_said_share_a_clause(said: dict[int, Predicate], text: str) -> None:
    assert clauses(said) == text


def test_of_many_clauses_those_of_the_most_ranks_are_told() -> None:
    said = {rank: verb("is", "are", f"at {rank // 2}") for rank in range(9)}
    said |= dict.fromkeys(range(20, 40), SLEEPS)
    assert clauses(said) == (
        "ranks 0 and 1 are at 0, ranks 2 and 3 are at 1, ranks 20-39 sleep at b.py:9 and 5 other ranks "
        "are in 3 other states or places"
    )
    assert len(every_clause(said)) == 6
    del said[8], said[7], said[6]
    assert clauses(said).endswith(" and 2 other ranks are in another state or place")
    del said[5]
    assert clauses(said).endswith(" and 1 other rank is in another state or place")


def test_groups_come_in_the_order_of_their_lowest_ranks() -> None:
    assert [*grouped({5: "a", 0: "b", 3: "a"}).items()] == [("b", [0]), ("a", [3, 5])]


VALUES = [
    ({0: "2.0", 1: "1.0"}, "loss is 2.0 on rank 0, 1.0 on rank 1"),
    (
        {0: "0.09483877569437027", 1: "11.053692817687988"},
        "loss is 0.0948388 on rank 0, 11.0537 on rank 1",
    ),
    (
        {0: "0.50000000001", 1: "0.50000000002"},
        "loss is 0.50000000001 on rank 0, 0.50000000002 on rank 1",
    ),
    ({0: "1.00000000001", 1: "1.00000000001"}, "loss is 1 on ranks 0 and 1"),
    ({0: "'a 1.23456789 b'"}, "loss is 'a 1.23456789 b' on rank 0"),
]


@pytest.mark.parametrize(("told", "said"), VALUES)
def test_long_numbers_are_rounded_where_they_still_differ_then(told: dict[int, str], said: str) -> None:
    assert values_of("loss", told) == said
