"""Large practice hangs as a learner runs them: each hangs as recorded, and only its repair passes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.labs.practice import Hang, all_hangs
from helpers.labs.repair import judge_repair
from helpers.labs.results import Judgement
from helpers.model.facts import Report, Verdict
from helpers.observe.logs import KEEP
from helpers.session import report_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="locks, pipes and signals as Linux has them"),
]

HANGS = {hang.name: hang for hang in all_hangs() if hang.repairable}

NIGHTLY = ("54", "59", "62", "65")
"""Hangs of different causes; the others run weekly."""

every_hang = pytest.mark.parametrize(
    "hang",
    [
        pytest.param(hang, id=name, marks=() if name in NIGHTLY else pytest.mark.weekly)
        for name, hang in HANGS.items()
    ],
)

JOIN = 'dist.init_process_group("gloo")'
WORKERS = (
    '        num_workers=config["loader"]["workers"],\n'
    '        prefetch_factor=config["loader"]["prefetch"],\n'
    "        persistent_workers=True,\n"
)

AROUND = {
    "leaves at once": ("54", "train.py", '"""', 'raise SystemExit\n"""'),
    "leaves at once, and hard": ("54", "train.py", '"""', 'import os\n\nos._exit(0)\n"""'),
    "leaves after the first barrier": (
        "60",
        "train.py",
        JOIN,
        f"{JOIN}; dist.barrier(); raise SystemExit",
    ),
    "leaves the reduction out": ("62", "meters.py", "        dist.all_reduce(losses)\n", ""),
    "does without workers": ("55", "train.py", WORKERS, ""),
    "trains for four steps only": ("65", "fsdp.json", '"steps": 30', '"steps": 4'),
}
"""Name -> the hang, a file of it, and what is replaced in that by what."""


def run_of(hang: Hang, copy: Path, run: Path) -> tuple[Report, Judgement]:
    """What a run of a copy shows, and how it is judged."""
    session = hang.session(run, copy)
    report = session.start().wait()
    printed = {label: session.logs.tail(label, KEEP) for label in session.logs.labels()}
    return report, judge_repair(hang.hung(), hang.work(), report, printed)


def said(verdict: Verdict) -> tuple[object, ...]:
    """What a learner is asked about a run: what it is, whose it is, and which statement decided."""
    decided = verdict.parting.where if verdict.parting else None
    statement = decided and (Path(decided.file).name, decided.line)
    return verdict.outcome, verdict.cause, verdict.culprits, statement


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("copy", "run"):
        (tmp_path / name).mkdir()
    return tmp_path / "copy", tmp_path / "run"


@every_hang
def test_it_hangs_as_recorded_and_does_not_pass(hang: Hang, places: tuple[Path, Path]) -> None:
    hang.copy(places[0])
    report, judgement = run_of(hang, *places)
    recording = hang.recording()
    recorded = report_of(tuple(recording.snapshots()), recording.watched.patience)
    assert said(report.verdict) == said(recorded.verdict)
    assert not judgement.passed, judgement


@every_hang
def test_its_repaired_version_passes(hang: Hang, places: tuple[Path, Path]) -> None:
    hang.copy(places[0], fixed=True)
    _, judgement = run_of(hang, *places)
    assert judgement.passed, judgement


@pytest.mark.parametrize("name", AROUND)
def test_a_way_around_does_not_pass(name: str, places: tuple[Path, Path]) -> None:
    number, file, old, new = AROUND[name]
    hang, edited = HANGS[number], places[0] / file
    hang.copy(places[0])
    text = edited.read_text()
    assert old in text
    edited.write_text(text.replace(old, new, 1))
    _, judgement = run_of(hang, *places)
    assert not judgement.passed, judgement
