"""A job of which each file shows some ranks is judged as if all had been seen from one place."""

from __future__ import annotations

from dataclasses import replace

import pytest
from repository import RECORDINGS

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import RankView, Snapshot
from helpers.observe.artifacts.nodes import together
from helpers.observe.recording import load

JOBS = ("barrier_for_one", "skips_bad_loss", "uneven_batches", "left_early")


def seen_by(whole: Snapshot, ranks: set[int]) -> Snapshot:
    """What a node with some of the ranks sees."""
    views = [
        view if view.rank in ranks else RankView(view.rank, view.local_rank, state="unseen")
        for view in whole.ranks
    ]
    return replace(whole, ranks=tuple(views), job=replace(whole.job, single_node=False))


def judged(newest: Snapshot) -> tuple[object, ...]:
    found = diagnose([replace(newest, time=newest.time - 1.0), newest], final=True)
    return found.outcome, found.cause, found.culprits, found.where


@pytest.mark.parametrize("name", JOBS)
def test_two_halves_are_the_whole(name: str) -> None:
    *_, whole = load(RECORDINGS / f"{name}.jsonl.gz").snapshots()
    ranks = {view.rank for view in whole.ranks if view.rank is not None}
    halves = [seen_by(whole, {0}), seen_by(whole, ranks - {0})]
    found = together(halves)
    assert judged(found) == judged(replace(whole, job=replace(whole.job, single_node=False)))
    assert [view.node for view in found.ranks] == [0, *(1 for _ in ranks - {0})]
    assert found.job.nodes_seen == 2


def test_half_of_a_job_blames_nobody_that_it_has_not_seen() -> None:
    *_, whole = load(RECORDINGS / "barrier_for_one.jsonl.gz").snapshots()
    _, cause, culprits, _ = judged(seen_by(whole, {0}))
    assert cause in ("none", "unknown")
    assert culprits == ()
