"""Ranks that are alike share a row: how rows are made, and reports of 16,384 ranks."""

from __future__ import annotations

import re

import pytest
from histories import (
    absent,
    ended,
    in_collective,
    key,
    on_nodes,
    raised,
    rank,
    sleeping,
    snapshot,
    working,
)
from msgspec.structs import replace

from helpers.model.facts import RankView, Report, Verdict
from helpers.report.alike import one_by_one, spread, together
from helpers.report.page import to_html
from helpers.report.parts import table
from helpers.report.report import to_markdown, to_text

MANY = 16_384


def letters(view: RankView) -> tuple[str, ...]:
    """What a view of `told` was given: `ab` is less like `cd` than like `ac`."""
    assert view.process is not None
    return tuple(view.process.command)


def told(*words: str) -> list[RankView]:
    """A rank for each word; ranks are alike as far as their words are, letter by letter."""
    return [rank(number, command=tuple(word)) for number, word in enumerate(words)]


@pytest.mark.parametrize(
    ("words", "most", "rows"),
    [
        ((), 2, []),
        (("ab", "ab", "ab"), 2, [[0, 1, 2]]),
        (("ab", "cd", "ab"), 2, [[0, 2], [1]]),
        (("ab", "cd", "ef"), 2, [[0, 1, 2]]),
        (("aa", "ab", "ba", "bb"), 3, [[0], [1], [2, 3]]),
        (("aa", "ab", "ac", "ba", "bb"), 2, [[0, 1, 2], [3, 4]]),
        (("aa", "ab", "ac", "ba", "bb"), 4, [[0, 1, 2], [3], [4]]),
        (("aa", "ab", "ac", "ba", "bb"), 5, [[0], [1], [2], [3], [4]]),
        (("a", "ab", "ab"), 3, [[0], [1, 2]]),
    ],
)
def test_rows_are_divided_as_long_as_there_is_room(
    words: tuple[str, ...], most: int, rows: list[list[int]]
) -> None:
    assert [list(row.ranks) for row in together(told(*words), letters, most=most)] == rows


def test_culprits_have_rows_of_their_own_however_few_there_are() -> None:
    views = told("ab", "cd", "ef", "gh")

    assert [row.ranks for row in together(views, letters, (2, 3), most=2)] == [(0, 1), (2, 3)]


def test_ranks_of_a_node_stand_together_and_those_of_unknown_number_last() -> None:
    views = [replace(working(n), node=n % 2, host=f"n{n % 2}") for n in range(4)]
    views += [replace(working(9), rank=None, node=0, host="n0"), absent(4)]

    assert [(row.name, row.on) for row in one_by_one(views, letters)] == [
        ("rank 0", "node 0 (host n0)"),
        ("rank 2", "node 0 (host n0)"),
        ("rank ?", "node 0 (host n0)"),
        ("rank 1", "node 1 (host n1)"),
        ("rank 3", "node 1 (host n1)"),
        ("rank 4", "no known node"),
    ]


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([3.2], "3"), ([3.2, 2.8], "3"), ([97.0, 0.4, 12.0], "0-97")],
)
def test_numbers_are_one_or_from_the_least_to_the_most(numbers: list[float], text: str) -> None:
    assert spread(numbers) == text


def report(views: list[RankView], *culprits: int) -> Report:
    verdict = Verdict("hang", "missing-rank", culprits=culprits, evidence=("seen",) * len(views))
    return Report(verdict, snapshot(*views))


def different(number: int) -> RankView:
    """A rank that no other one is like."""
    kinds = (
        lambda n: sleeping(n, f"train.py:{n + 1} f"),
        lambda n: rank(n, key(f"key {n}"), at=f"train.py:{n + 1} f"),
        lambda n: raised(n, "ValueError", f"no file {n}", f"train.py:{n + 1} f"),
        lambda n: ended(n, n),
        working,
        absent,
        lambda n: absent(n, "unseen"),
    )
    return kinds[number % len(kinds)](number)


def odd(ranks: int) -> list[RankView]:
    """All but one rank in an all_reduce."""
    views = [in_collective(n, "all_reduce", start=7, at="train.py:30 f") for n in range(ranks)]
    views[17] = sleeping(17)
    return on_nodes(views, 8)


@pytest.mark.parametrize(
    "views", [odd(MANY), on_nodes(map(different, range(MANY)), 1)], ids=["odd", "all"]
)
def test_reports_of_many_ranks_are_short(views: list[RankView]) -> None:
    found = report(views, 17, *range(100, MANY, 3))

    assert len(to_html(found, [found.snapshot])) < 200_000
    assert len(to_text(found)) < 20_000
    assert len(to_markdown(found)) < 20_000


def test_the_table_of_a_report_tells_ranks_that_differ_by_number() -> None:
    views = [rank(n, key(f"key {n}"), at=f"train.py:{n + 1} f") for n in range(100)]
    [row] = table(report([*views]))

    assert (row.label, row.state, row.doing, row.at) == ("0-99", "waiting", ("store get",), "100 lines")
    assert row.stack == ()


def test_the_page_says_on_which_node_a_rank_is() -> None:
    html = to_html(report(odd(128), 17))
    rows = [re.sub(r"<[^>]+>", " ", row).split() for row in re.findall(r"<tr>.*?</tr>", html, re.S)]
    said = [" ".join(row) for row in rows]

    assert "rank on state waits in, or ended with at" in said
    assert any(row.startswith("0-16, 18-127 16 nodes waiting") for row in said)
    assert any(row.startswith("17 node 2 (host n2) running") for row in said)
    assert "node" not in to_html(report([working(0), working(1)])).partition("Ranks</caption>")[2]


def test_the_page_lists_the_processes_of_culprits_first_and_counts_those_it_leaves_out() -> None:
    html = to_html(report(odd(128), 17)).partition("Processes</caption>")[2]

    assert re.findall(r'scope="row">([^<]+)', html)[:2] == [
        "rank 17 on node 2 (host n2)",
        "rank 0 on node 0 (host n0)",
    ]
    assert "<p>and 64 more</p>" in html
    assert "more</p>" not in to_html(report([working(0)]))


def test_a_long_list_is_cut_and_its_rest_counted() -> None:
    assert to_text(report(list(map(working, range(50))))).endswith("- seen\n- and 18 more")
