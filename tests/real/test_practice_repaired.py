"""Practice hangs run as a learner runs them: the repaired version passes, a way around does not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from helpers.labs.practice import Hang, all_hangs
from helpers.labs.repair import judge_repair, work_of
from helpers.labs.results import Judgement
from helpers.observe.logs import KEEP
from helpers.session import report_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="locks, pipes and signals as Linux has them"),
]

HANGS = {hang.name: hang for hang in all_hangs()}

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


def judged(hang: Hang, copy: Path, run: Path) -> Judgement:
    """What comes of running a copy."""
    recording = hang.recording()
    hung = report_of(tuple(recording.snapshots()), recording.watched.patience)
    session = hang.session(run, copy)
    report = session.start().wait()
    output = {label: session.logs.tail(label, KEEP) for label in session.logs.labels()}
    return judge_repair(work_of(hung, recording.logs), hang.work(), report, output)


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("copy", "run"):
        (tmp_path / name).mkdir()
    return tmp_path / "copy", tmp_path / "run"


@pytest.mark.parametrize("hang", HANGS.values(), ids=lambda hang: hang.name)
def test_a_repaired_version_passes(hang: Hang, places: tuple[Path, Path]) -> None:
    hang.copy(places[0], fixed=True)
    judgement = judged(hang, *places)
    assert judgement.passed, judgement


@pytest.mark.parametrize("name", AROUND)
def test_a_way_around_does_not_pass(name: str, places: tuple[Path, Path]) -> None:
    number, file, old, new = AROUND[name]
    hang, edited = HANGS[number], places[0] / file
    hang.copy(places[0])
    text = edited.read_text()
    assert old in text
    edited.write_text(text.replace(old, new, 1))
    judgement = judged(hang, *places)
    assert not judgement.passed, judgement
