"""Recordings in one folder: those of one run are put together, all others are named and left out."""

from __future__ import annotations

import pytest

from helpers.diagnose.one_job import of_one_job
from helpers.model.facts import Job, ProcessView, RankView, Snapshot
from helpers.model.network import Rendezvous
from helpers.model.part import Part


def part(
    name: str,
    ranks: set[int],
    begun: str,
    *,
    program: str = "train.py",
    world: int = 4,
    node: int | None = None,
) -> Part:
    """What one node tells of a job, begun at a minute of one day.

    Args:
        node: its number, for one that has a launcher only.
    """
    views = tuple(
        RankView(
            rank,
            node=rank // 2,
            state="running",
            process=ProcessView(100 + rank, "rank", state="running"),
            host=f"n{rank // 2}",
        )
        if rank in ranks
        else RankView(rank, state="unseen")
        for rank in range(world)
    )
    job = Job(("torchrun", f"--node-rank={name}", program), world_size=world)
    meets = None if node is None else Rendezvous("n0:29500", node, 2, f"n{node}")
    launchers = () if meets is None else (ProcessView(90, "launcher", rendezvous=meets),)
    seen = Snapshot(1.0, job, views, launchers=launchers)
    return Part(seen, seen, name=name, begun=f"2026-01-05T{begun}:00+00:00")


ROWS = [
    (
        "two nodes whose clocks differ by minutes",
        [part("a0", {0, 1}, "10:00"), part("a1", {2, 3}, "10:09")],
        ["a0", "a1"],
        [],
    ),
    (
        "a recording for each task",
        [part(f"a{rank}", {rank}, "10:00") for rank in range(4)],
        ["a0", "a1", "a2", "a3"],
        [],
    ),
    (
        "an earlier run of the same job",
        [
            part("a0", {0, 1}, "10:00"),
            part("a1", {2, 3}, "10:01"),
            part("b0", {0, 1}, "11:00"),
            part("b1", {2, 3}, "10:58"),
        ],
        ["b0", "b1"],
        ["a1 is left out: b1, begun later, tells of ranks 2 and 3, too", "a0 is left out: b0"],
    ),
    (
        "an earlier run, of which a node was not recorded again",
        [part("a0", {0, 1}, "10:00"), part("a1", {2, 3}, "10:02"), part("b0", {0, 1}, "11:00")],
        ["b0"],
        ["a0 is left out: b0", "a1 is left out: it was begun with a0"],
    ),
    (
        "another job of fewer ranks",
        [part("a0", {0, 1}, "10:00"), part("x", {0}, "12:00", world=2), part("a1", {2, 3}, "10:01")],
        ["a0", "a1"],
        ["x is left out: it is of another job (torchrun --node-rank=x train.py)"],
    ),
    (
        "another program",
        [part("a0", {0, 1, 2}, "10:00"), part("x", {3}, "10:00", program="eval.py")],
        ["a0"],
        ["x is left out: it is of another job"],
    ),
    (
        "a process that has not joined",
        [part("a0", {0, 1}, "10:00"), part("x", {0}, "10:01", world=1)],
        ["a0"],
        ["x is left out: it shows a process that has not joined the job"],
    ),
    (
        "an earlier start of a node, without a rank",
        [
            part("a0", {0, 1}, "10:00"),
            part("x", set(), "09:00", node=0),
            part("y", set(), "09:00", node=1),
        ],
        ["a0", "y"],
        ["x is left out: a0 tells of the same node"],
    ),
    (
        "several starts of nodes, none with a rank",
        [
            part("a0", set(), "09:00", node=0),
            part("b0", set(), "10:00", node=0),
            part("b1", set(), "10:00", node=1),
        ],
        ["b0", "b1"],
        ["a0 is left out: b0 tells of the same node"],
    ),
    (
        "a node that has started no rank yet",
        [part("a0", {0, 1}, "10:00"), part("a1", set(), "10:00", world=0)],
        ["a0", "a1"],
        [],
    ),
]


@pytest.mark.parametrize(("parts", "kept", "said"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS])
@pytest.mark.parametrize("turned", [False, True])
def test_what_belongs_together(
    parts: list[Part], kept: list[str], said: list[str], turned: bool
) -> None:
    found, left = of_one_job(parts[::-1] if turned else parts)
    assert sorted(one.name for one in found) == kept
    assert len(left) == len(said)
    for sentence in said:
        assert any(one.startswith(sentence) for one in left), left
