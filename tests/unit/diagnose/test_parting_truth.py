"""Made-up programs that are really run, once as each rank: what is named is where their ways parted.

A program of two ranks is run line by line, with every call noted as the Flight Recorder and the beacon
note it. The ranks block in the first calls that do not match. The truth is the line after which their
traces differ, counted from the last call in which they were truly together.
"""

from __future__ import annotations

import pytest
from made_up import Program, Run, is_of_library, lines_of

SEEDS = 240
"""Programs of one test; about six in ten make ranks part."""


def judged(first: int, last: int) -> tuple[int, int, list[str]]:
    """How many of some programs made ranks part, of how many a statement is named, what is wrong."""
    asked, told, wrong = 0, 0, []
    for seed in range(first, last):
        run = Run.of(Program(seed).text)
        if run is None or is_of_library(run):
            continue
        asked += 1
        answer = run.answer(values=seed % 2 == 0)
        if answer is None or answer.decision is None:
            continue
        told += 1
        if not run.lines & lines_of(answer):
            shown = "\n".join(f"{n:3} {one}" for n, one in enumerate(run.text.splitlines(), start=1))
            wrong.append(f"seed {seed}: parted at {run.lines}\n{answer}\n{shown}")
    return asked, told, wrong


def test_a_statement_that_is_named_is_where_the_ranks_parted() -> None:
    asked, told, wrong = judged(0, SEEDS)
    assert not wrong, "\n".join(wrong)
    assert asked > SEEDS / 3 and told > asked * 0.85


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(SEEDS, SEEDS * 9, SEEDS))
def test_of_more_programs(first: int) -> None:
    """One may be arguable: ranks that met by accident in other lines, and were together again."""
    asked, told, wrong = judged(first, first + SEEDS)
    assert len(wrong) <= 1, "\n".join(wrong)
    assert told > asked * 0.85


BEGINS_WITH_LOOP = """\
def step():
    dist.all_reduce()
    dist.barrier()
    dist.all_reduce()
def main(rank):
    if odd(6):
        n = 0
        while n < 2 + rank:
            step()
            n += 1
    step()
    dist.barrier()
main(get_rank())
"""
"""Both have been in the `if`; rank 1 is in a third iteration of its loop, inside of `step`."""

AN_ITERATION_BEFORE = """\
def main(rank):
    for turn in range(2):
        n = 0
        while n < 2 + rank:
            if turn == 1 and rank == 0:
                dist.all_reduce()
            dist.barrier()
            n += 1
main(get_rank())
"""
"""Rank 0 is where rank 1 will never be; but rank 1 has not come there yet."""

AN_ITERATION_AFTER = """\
def main():
    for turn in range(4):
        dist.barrier()
        dist.all_reduce()
        if odd(9):
            dist.all_reduce()
main()
"""
"""The other rank did not go in, and waits in its next iteration."""

CUT_SHORT = """\
def main():
    for turn in range(3):
        dist.barrier()
        if odd(4):
            if odd(0):
                continue
            dist.all_reduce()
main()
"""
"""The other rank was in it as well, and has made no call there."""

BEEN_THERE = """\
def main():
    for turn in range(3):
        dist.barrier()
        if turn == 0:
            dist.all_reduce()
            if odd(9):
                dist.all_reduce()
main()
"""
"""The other rank was in it as well, and has come out of it."""


@pytest.mark.parametrize(
    ("text", "line", "named"),
    [
        (BEGINS_WITH_LOOP, 8, True),
        (AN_ITERATION_BEFORE, 4, True),
        (AN_ITERATION_AFTER, 5, True),
        (CUT_SHORT, 5, False),
        (BEEN_THERE, 6, True),
    ],
)
def test_a_rank_that_is_in_another_iteration(text: str, line: int, named: bool) -> None:
    run = Run.of(text)
    assert run is not None and line in run.lines
    answer = run.answer()
    assert answer is not None and lines_of(answer) == ({line} if named else set())
