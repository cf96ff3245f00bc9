"""The hangs to practise on: enough of them, readable, and with nothing that gives an answer away."""

from __future__ import annotations

import ast
import difflib
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from make_practice import MARK, chosen, files_of
from make_slow import FILE, FOLDER, Declared

from helpers.labs import lab as labs
from helpers.labs import toml_file
from helpers.labs.lab import LabError
from helpers.labs.practice import LEVELS, Hang, all_hangs
from helpers.labs.prediction import practised
from helpers.report.source_lines import Sources
from helpers.session import report_of

HANGS = all_hangs()
CHOSEN = {number: (level, job) for number, level, job in chosen()}

every_hang = pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.name)


every_repairable = pytest.mark.parametrize(
    "hang", [hang for hang in HANGS if hang.repairable], ids=lambda hang: hang.name
)

NOTEBOOK = json.loads((labs.labs_folder() / "practice" / "practice.ipynb").read_text())
LESSON = " ".join("".join("".join(cell["source"]) + " " for cell in NOTEBOOK["cells"]).split())


def texts(hang: Hang) -> dict[str, str]:
    return {str(file.relative_to(hang.folder)): file.read_text() for file in hang.files}


def statement(folder: Path, file: str, line: int) -> tuple[str, str]:
    text = (folder / file).read_text().splitlines()[line - 1]
    return file, MARK.sub("", text).strip()


def lines_of(hang: Hang) -> int:
    return sum(len(text.splitlines()) for text in texts(hang).values())


def test_there_are_fifty_or_more_of_every_level() -> None:
    assert len(HANGS) >= 50
    assert {hang.level for hang in HANGS} == set(LEVELS)
    assert [hang.name for hang in HANGS] == list(CHOSEN)


def test_no_cause_is_behind_more_than_a_third() -> None:
    causes = Counter(job.cause for _, job in CHOSEN.values())
    assert max(causes.values()) <= len(HANGS) / 3, causes
    assert "no cause is behind more than a third of the hangs" in LESSON


def test_the_lesson_says_how_long_they_are() -> None:
    large = [lines_of(hang) for hang in HANGS if hang.level == "large"]
    others = [lines_of(hang) for hang in HANGS if hang.level not in ("large", "slow")]
    assert f"it has {min(others)} to {max(others)} lines" in LESSON
    assert f"a job of {min(large)} to {max(large)} lines" in LESSON


@every_hang
def test_its_files_are_those_of_its_job_without_what_gives_it_away(hang: Hang) -> None:
    level, job = CHOSEN[hang.name]
    assert hang.level == level
    assert hang.files[0] == hang.program
    found = texts(hang)
    assert found == files_of(job), "run: tools/make_practice.py"
    for name, text in found.items():
        assert not re.search(r"# <-|\bmarks\b|\bhangs?\b|deadlock|\bstuck\b", text), name
        assert job.name not in text
    if not job.within:
        assert ast.get_docstring(ast.parse(found["train.py"])) is None
    assert job.name not in hang.declared.command


@every_hang
def test_a_large_one_is_large_and_a_configuration_and_a_library_are_part_of_it(hang: Hang) -> None:
    suffixes = {file.suffix for file in hang.files}
    assert (hang.level == "large") == (lines_of(hang) >= 100) == hang.repairable
    if hang.level == "large":
        assert sum(file.suffix == ".py" for file in hang.files) >= 2
        assert suffixes & {".toml", ".yaml", ".json"}


@pytest.mark.parametrize(
    "hang", [hang for hang in HANGS if hang.level == "slow"], ids=lambda hang: hang.name
)
def test_a_slow_job_waits_for_whom_its_collection_says(hang: Hang) -> None:
    _, job = CHOSEN[hang.name]
    known = toml_file.read(FOLDER / FILE, dict[str, Declared])[job.name]
    recording = hang.recording()
    report = report_of(tuple(recording.snapshots()), recording.watched.patience)
    slow = report.verdict.slow
    assert slow is not None and slow.where is not None
    assert slow.ranks == known.ranks and slow.kind in known.kind
    _, where, _ = practised(report, Sources(None, recording.sources).line)
    assert all(re.search(r"train\.py:\d+: \S", choice) for choice in where.choices)
    marked = {statement(job.folder, known.program, line) for line in known.lines()}
    assert (known.program, statement(hang.folder, slow.where.file, slow.where.line)[1]) in marked


@every_repairable
def test_its_repaired_version_changes_a_few_lines(hang: Hang) -> None:
    program = texts(hang)
    for file in hang.corrections:
        old = program[str(file.relative_to(hang.folder / "fixed"))].splitlines()
        changed = [line for line in difflib.ndiff(old, file.read_text().splitlines()) if line[0] in "+-"]
        assert 0 < len(changed) <= 24


@every_hang
def test_its_recording_is_judged_as_its_job_and_asks_something(hang: Hang) -> None:
    _, job = CHOSEN[hang.name]
    recording = hang.recording()
    report = report_of(tuple(recording.snapshots()), recording.watched.patience)
    verdict = report.verdict
    assert (verdict.outcome, verdict.cause, verdict.culprits) == (job.outcome, job.cause, job.culprits)
    asked = practised(report, Sources(None, recording.sources).line)
    last = "What takes the time there?" if hang.level == "slow" else "What is the cause?"
    assert last in {one.text for one in asked}
    assert len(asked) >= 2
    assert not re.search(rf"\b{job.name}\b", f"{recording.sources} {recording.logs}")
    parted = job.lines().get("parted")
    if job.within:
        decided = verdict.parting.where if verdict.parting else None
        assert (decided and statement(hang.folder, decided.file, decided.line)) == (
            parted and statement(job.folder / job.within, *parted)
        )


@every_repairable
def test_what_its_repaired_version_does_is_more_than_what_it_has_done(hang: Hang) -> None:
    work, hung = hang.work(), hang.hung()
    assert work.ranks and all(rank.finished for rank in work.ranks.values())
    assert work.last and set(work.last) <= work.lines.keys()
    calls = [rank.calls for rank in hung.ranks.values()]
    assert min(rank.calls for rank in work.ranks.values()) >= min(calls, default=0) - 1
    workers = {number for number, rank in hung.ranks.items() if rank.workers}
    assert workers <= {number for number, rank in work.ranks.items() if rank.workers}


def test_a_copy_is_what_runs(tmp_path: Path) -> None:
    hang = next(hang for hang in HANGS if hang.level == "large")
    copy, run = tmp_path / "copy", tmp_path / "run"
    copy.mkdir()
    run.mkdir()
    hang.copy(copy)
    (copy / "train.py").write_text("print()\n")
    hang.session(run, copy)
    assert (run / "train.py").read_text() == "print()\n"
    assert {path.name for path in run.iterdir()} == {file.name for file in hang.files}
    hang.copy(copy, fixed=True)
    for file in hang.corrections:
        assert (copy / file.relative_to(hang.folder / "fixed")).read_text() == file.read_text()


def test_what_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(labs.NOTEBOOKS, str(tmp_path))
    with pytest.raises(LabError, match=r"practice/hangs.toml cannot be read"):
        all_hangs()
    lost = Hang("01", tmp_path, HANGS[0].declared)
    with pytest.raises(LabError, match="cannot be read as a recording"):
        lost.recording()
    with pytest.raises(LabError, match="what hang 01 is to do cannot be read"):
        lost.work()
