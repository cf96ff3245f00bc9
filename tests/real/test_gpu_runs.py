"""What `make gpu` does with a job and with a lab, on the CPU."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from gpu_runs.plan import on_device
from gpu_runs.rows import Task
from gpu_runs.runs import perform
from repository import JOBS
from score import jobs as collection

from helpers.labs import all_cases
from helpers.labs.lab import all_labs
from helpers.observe.recording import load

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,  # tests/unit/tools/test_gpu.py holds the rest
    pytest.mark.skipif(sys.platform != "linux", reason="jobs.toml is for Linux"),
]


def test_the_launcher_leaves_verdict_lines_and_frames_as_they_are(tmp_path: Path) -> None:
    job = collection.read(JOBS)["barrier_for_one"]
    row = perform(Task("gloo", on_device(job, "cpu", "gloo")), tmp_path)
    assert (row.word, row.got) == ("right", "hang collective-mismatch [0, 1]"), row
    report = json.loads((tmp_path / "gloo-barrier_for_one.json").read_text())
    assert [rank["state"] for rank in report["ranks"]] == list(job.states or ())
    for rank in report["ranks"]:
        mine = [frame["line"] for frame in rank["stack"] if frame["file"] == "barrier_for_one.py"]
        assert (job.program.name, mine[0]) == job.lines()[f"rank {rank['rank']}"]
        assert len(mine) == (3 if rank["rank"] == 0 else 2)
    assert len(load(tmp_path / "gloo-barrier_for_one.jsonl.gz").looks) > 1


def test_a_lab_is_judged_and_its_report_and_recording_are_kept(tmp_path: Path) -> None:
    wanted = "05_spawn_ports fixed launcher=python start_method=fork connect=lazily hardware=cpu"
    [case] = [case for case in all_cases.cases(all_labs()) if case.shown == wanted]
    row = perform(Task("labs", case), tmp_path)
    assert (row.word, row.got, row.hardware) == ("right", "ok", "cpu"), row
    name = "labs-05_spawn_ports_fixed_launcher_python_start_method_fork_connect_lazily_hardware_cpu"
    assert json.loads((tmp_path / f"{name}.json").read_text())["outcome"] == "ok"
    assert len(load(tmp_path / f"{name}.jsonl.gz").looks) > 1
    assert not case.lab.recording(case.program, case.knobs).exists(), "only a GPU's is for the lab"


def test_a_job_that_leaves_no_dump_is_a_row_without_a_report(tmp_path: Path) -> None:
    job = collection.read(JOBS)["killed"]
    row = perform(Task("dumps", on_device(job, "cpu", "gloo")), tmp_path)
    assert (row.got, row.word, row.fault) == ("no dump", "wrong", ""), "gloo has no watchdog"
    assert list(tmp_path.iterdir()) == []
