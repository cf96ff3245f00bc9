"""The hangs to practise on: enough of them, readable, and with nothing that gives an answer away."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from make_practice import chosen, program

from helpers.labs import lab as labs
from helpers.labs.lab import LabError
from helpers.labs.practice import LEVELS, Hang, all_hangs
from helpers.labs.prediction import practised
from helpers.report.source_lines import Sources
from helpers.session import report_of

HANGS = all_hangs()
CHOSEN = {number: (level, job) for number, level, job in chosen()}

every_hang = pytest.mark.parametrize("hang", HANGS, ids=lambda hang: hang.name)


def test_there_are_thirty_or_more_of_three_levels() -> None:
    assert len(HANGS) >= 30
    assert {hang.level for hang in HANGS} == set(LEVELS)
    assert [hang.name for hang in HANGS] == list(CHOSEN)


@every_hang
def test_a_program_is_that_of_its_job_without_what_gives_it_away(hang: Hang) -> None:
    text = hang.program.read_text()
    level, job = CHOSEN[hang.name]
    assert hang.level == level
    assert text == program(job.program.read_text()), "run: tools/make_practice.py"
    assert ast.get_docstring(ast.parse(text)) is None
    assert not re.search(r"# <-|marks", text)
    assert job.name not in hang.declared.command


@every_hang
def test_its_recording_is_judged_as_its_job_and_asks_something(hang: Hang) -> None:
    _, job = CHOSEN[hang.name]
    recording = hang.recording()
    report = report_of(tuple(recording.snapshots()), recording.watched.patience)
    verdict = report.verdict
    assert (verdict.outcome, verdict.cause, verdict.culprits) == (job.outcome, job.cause, job.culprits)
    asked = practised(report, Sources(None, recording.sources).line)
    assert "What is the cause?" in {one.text for one in asked}
    assert len(asked) >= 2
    assert not re.search(rf"\b{job.name}\b", f"{recording.sources} {recording.logs}")


def test_what_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(labs.NOTEBOOKS, str(tmp_path))
    with pytest.raises(LabError, match=r"practice/hangs.toml cannot be read"):
        all_hangs()
    lost = Hang("01", tmp_path, HANGS[0].declared)
    with pytest.raises(LabError, match="cannot be read as a recording"):
        lost.recording()
