"""The judge refuses what only looks well, and passes what was done in another way than in the lab."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from shortcuts import ATTEMPTS, LAB_05, Attempt

from helpers.labs.lab import RunFolder, find_lab, read_lab
from helpers.labs.results import Judgement, judge
from helpers.model.facts import Snapshot
from helpers.session import Event, Sample


def judged(attempt: Attempt, place: Path) -> Judgement:
    """What the judge makes of an attempt, in a lab of its own that shares the files of earlier jobs."""
    real = find_lab(attempt.lab)
    shutil.copytree(
        real.folder, place / real.name, ignore=shutil.ignore_patterns(".*", "your_turn*", "__pycache__")
    )
    (real.folder / ".runs").mkdir(exist_ok=True)
    (place / real.name / ".runs").symlink_to(real.folder / ".runs")
    lab = read_lab(place / real.name)
    text = lab.original(attempt.turn).read_text()
    for old, new in attempt.edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    lab.copy(attempt.turn).write_text(text)
    looks: list[Snapshot] = []

    def keep(event: Event) -> None:
        if isinstance(event, Sample):
            looks.append(event.snapshot)

    with RunFolder() as folder:
        session = lab.session(attempt.turn, folder=folder, **attempt.knobs)
        session.subscribe(keep)
        report = session.start().wait()
        output = {label: session.logs.tail(label) for label in session.logs.labels()}
        return judge(lab, attempt.turn, report, folder, attempt.knobs, task=output, looks=looks)


def holds(attempt: Attempt, place: Path) -> None:
    judgement = judged(attempt, place)
    assert judgement.passed == (not attempt.refused), judgement
    assert attempt.refused in repr(judgement)


@pytest.mark.real
def test_a_worker_that_makes_only_the_first_batch_is_noticed(tmp_path: Path) -> None:
    holds(next(one for one in LAB_05 if "then none" in one.name), tmp_path)


NIGHTLY = {(attempt.lab, attempt.turn, bool(attempt.refused)): attempt for attempt in reversed(ATTEMPTS)}
"""For each turn of a lab, the first attempt that is refused and the first that passes; the others run
weekly."""


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "attempt",
    [
        pytest.param(
            attempt,
            id=f"{attempt.lab}-{attempt.turn}-{attempt.name}".replace(" ", "-"),
            marks=() if attempt in NIGHTLY.values() else pytest.mark.weekly,
        )
        for attempt in ATTEMPTS
    ],
)
def test_each_attempt_is_judged_by_what_it_did(attempt: Attempt, tmp_path: Path) -> None:
    holds(attempt, tmp_path)
