"""Programs of real-life size by another hand than the code's: the statement that decided.

tests/realistic has the programs, and programs.toml says of each which statement decided. They were
written from the documentation of their frameworks, and recorded before anything was mended for them.
What was found at first sight is in benchmarks/statements.md.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from realistic import lines_of
from repository import ROOT

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.settling import HISTORY
from helpers.observe.recording import load

FOLDER = ROOT / "tests" / "realistic"
PROGRAMS: dict[str, dict[str, Any]] = tomllib.loads(
    (FOLDER / "programs.toml").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_statement_that_decided_is_named_or_none_is(name: str) -> None:
    program = PROGRAMS[name]
    history = tuple(load(FOLDER / "recordings" / f"{name}.jsonl.gz").snapshots())
    verdict = diagnose(history[-HISTORY:], patience=12.0, final=True)
    assert verdict.outcome == program["outcome"]
    where = verdict.parting.where if verdict.parting is not None else None
    assert (where is not None) == program["named"]
    assert where is None or (where.file, where.line) in lines_of(name, program["lines"])


def test_each_program_has_its_recording() -> None:
    programs = {Path(file).name.removesuffix(".py") for file in FOLDER.glob("*.py")}
    recordings = {file.name.removesuffix(".jsonl.gz") for file in (FOLDER / "recordings").iterdir()}
    assert recordings == PROGRAMS.keys() <= programs
