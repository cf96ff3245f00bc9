"""The programs of tests/jobs that run with the tests: each verdict, its lines, what is left.

The expectation of each stands in tests/jobs/jobs.toml and, for lines, in the program itself. How soon
a verdict comes is for `make score` to say: here the time belongs to whatever else the machine does.
"""

from __future__ import annotations

import shutil
import sys

import pytest
from repository import JOBS
from score import jobs as collection
from score import trial

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="stops and kills by Linux's rules"),
]

DECLARED = collection.read(JOBS)


COMPILED = pytest.mark.skipif(
    shutil.which("cc") is None, reason="the stand-in device is compiled with cc, which is not there"
)


def marks(job: collection.Job) -> list[pytest.MarkDecorator]:
    """Those of the test that runs a job."""
    found = [pytest.mark.nightly] if job.suite == "nightly" else []
    return [*found, COMPILED] if "from stand_in" in job.program.read_text() else found


RUN = [pytest.param(name, marks=marks(job)) for name, job in DECLARED.items() if job.suite != "score"]
"""`make score` runs the others; all of them are recordings, too."""


@pytest.mark.parametrize("name", RUN)
def test_job(name: str) -> None:
    done = trial.run(DECLARED[name])
    assert not [check for check in done.wrong() if check.kind != "time"], done.story()


def test_every_program_is_declared_and_every_line_is_marked_once() -> None:
    text = (JOBS / "jobs.toml").read_text()
    programs = {program.name for program in JOBS.glob("*.py")} - {"marks.py", "on_gpu.py", "stand_in.py"}
    assert {job.program.name for job in DECLARED.values() if not job.within} <= programs
    assert {name for name in programs if name not in text} == set(), "no job names them"
    folders = {program.parent.name for program in JOBS.glob("*/train.py")}
    assert {job.within for job in DECLARED.values() if job.within} == folders
    for job in DECLARED.values():
        job.lines()
