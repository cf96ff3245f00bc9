"""Every program of every lab runs: in a cell of its notebook, or here as a person would start it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import psutil
import pytest
from repository import ROOT

from helpers.labs.lab import Lab, RunFolder, all_labs
from helpers.labs.results import judge
from helpers.model.wording import stack_of


def run_by_cells(lab: Lab) -> set[str]:
    """The programs that the cells of the lab's notebook run."""
    file = lab.folder / f"{lab.name}.ipynb"
    if not file.is_file():  # another test says so
        return set()
    notebook = nbformat.read(file, as_version=4)
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return set(re.findall(r'\blab\.run\(\s*"(\w+)"', code))


def few_ranks(lab: Lab, program: str) -> dict[str, str]:
    """The knobs for a run that is as small as it can be."""
    return {"ranks": "2"} if "ranks" in lab.file.applying(program) else {}


SOLUTIONS = [
    pytest.param(lab, turn.solution, id=f"{lab.name}-{name}")
    for lab in all_labs()
    for name, turn in lab.file.turns.items()
]

REST = [
    pytest.param(lab, program, id=f"{lab.name}-{program}")
    for lab in all_labs()
    for program in sorted(set(lab.file.programs) - run_by_cells(lab))
]


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_cells_run_programs_that_there_are(lab: Lab) -> None:
    assert {"broken", "fixed"} <= run_by_cells(lab) <= set(lab.programs)


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.parametrize(("lab", "solution"), SOLUTIONS)
def test_the_solution_of_each_task_passes_its_check(lab: Lab, solution: str) -> None:
    knobs = few_ranks(lab, solution)
    with RunFolder() as folder:
        session = lab.session(solution, folder=folder, **knobs).start()
        report = session.wait()
        printed = {label: session.logs.tail(label) for label in session.logs.labels()}
        judgement = judge(lab, solution, report, folder, knobs, task=printed)
    assert judgement.passed, judgement


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.timeout(900)  # one of them compiles C++ the first time
@pytest.mark.parametrize(("lab", "program"), REST)
def test_what_no_cell_runs_ends_as_expected(
    lab: Lab,
    program: str,
    tmp_path: Path,
    processes_left: Callable[[], list[psutil.Process]],
) -> None:
    knobs = few_ranks(lab, program)
    if lacks := lab.lacking(program, knobs):
        pytest.skip(lacks)
    before = set(lab.folder.iterdir())
    words = [sys.executable, "-m", "helpers", "lab", lab.name, "--program", program]
    done = subprocess.run(
        [*words, *(f"--knob={name}={value}" for name, value in knobs.items())],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=lab.file.max_seconds + 30,
        check=False,
    )
    assert done.returncode == lab.expected(program, knobs).exit_code, done.stdout + done.stderr[-3000:]
    assert processes_left() == []
    kept = {"__pycache__", ".runs", ".built"}
    assert {path.name for path in set(lab.folder.iterdir()) - before} <= kept


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_what_is_to_be_found_by_hand_is_what_the_instrument_sees(lab: Lab) -> None:
    asked = lab.file.by_hand
    if lacks := lab.lacking(asked.program, asked.knobs):
        pytest.skip(lacks)
    report = lab.session(asked.program, **asked.knobs).start().wait()
    expected = lab.expected(asked.program, asked.knobs)
    verdict = report.verdict
    assert (verdict.outcome, verdict.cause) == (expected.outcome, expected.cause), verdict
    assert verdict.culprits == expected.culprits
    odd = [view for view in report.snapshot.ranks if asked.rank in (None, view.rank)]
    assert odd
    for view in odd:
        processes = [view.process, *(child.process for child in view.children)]
        frames = [frame for process in processes if process for frame in stack_of(process)]
        assert set(asked.lines) & {f"{frame.file}:{frame.line}" for frame in frames}, frames
        names = {word for frame in frames for word in re.findall(r"\w+", frame.function)}
        for line in asked.lines:
            file, _, number = line.rpartition(":")
            text = (lab.folder / file).read_text(encoding="utf-8").splitlines()[int(number) - 1]
            names |= set(re.findall(r"\w+", text))
        assert names & set(asked.calls), names
