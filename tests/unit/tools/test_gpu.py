"""What `make gpu` runs and leaves out, how a job comes to a GPU, what the page says. Uses no GPU."""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import gpu
import pins
import pytest
import wheels
from example_lab import example, write_programs
from gpu import Row, Task
from packaging.requirements import Requirement
from repository import JOBS, ROOT
from score import jobs as collection
from score.trial import Trial

from helpers.labs import all_cases
from helpers.labs.all_cases import Case
from helpers.labs.lab import Lab, all_labs

DECLARED = collection.read(JOBS)
CHOSEN = [DECLARED[name] for name in gpu.JOBS]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        ({"error": "not installed"}, "torch cannot be asked for GPUs (not installed)"),
        ({"version": "2.13.0+cpu", "cuda": None, "gpus": []}, "torch 2.13.0+cpu is built without CUDA"),
        ({"version": "2.13.0", "cuda": "13.0", "gpus": []}, "there is none, or no NVIDIA driver"),
        ({"version": "2.13.0", "cuda": "13.0", "gpus": ["NVIDIA H200"]}, ""),
    ],
)
def test_without_a_gpu_it_is_said_why(found: dict[str, Any], why: str) -> None:
    said = gpu.refusal(found)
    assert why in said and bool(said) == bool(why)


def test_without_a_gpu_one_sentence_is_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: {"version": "2.13.0+cpu", "cuda": None, "gpus": []})
    assert gpu.main(["--keep", str(tmp_path / "kept")]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "Nothing is run: torch 2.13.0+cpu is built without CUDA.\n")
    assert not (tmp_path / "kept").exists()


# What is run.


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return example(write_programs(tmp_path))


def test_the_cases_of_a_lab_that_use_a_gpu(lab: Lab) -> None:
    on_gpu = [case.shown for case in all_cases.cases([lab]) if gpu.uses_gpu(case)]
    assert len(on_gpu) == 24 and all("hardware=cpu" not in name for name in on_gpu)
    assert "07_example broken launcher=python method=fork mode=lazy hardware=one-gpu" in on_gpu


def test_a_program_that_needs_gpus_counts_whatever_its_knobs_are() -> None:
    named = {case.program for case in all_cases.cases(all_labs()) if gpu.uses_gpu(case)}
    assert "p2p" in named and "requeued" not in named


def lacking_two(case: Case) -> str:
    return "hardware multi-gpu needs 2 GPUs" if "multi-gpu" in case.shown else ""


@pytest.mark.parametrize(
    ("parts", "gpus", "runs", "left_out"),
    [
        (["gloo"], 1, {"gloo": 14}, {}),
        (["nccl"], 1, {"nccl": 1}, {"nccl: it takes a GPU for each rank, and this machine has 1": 14}),
        (["nccl"], 2, {"nccl": 12}, {"nccl: it takes a GPU for each rank, and this machine has 2": 2}),
        (["nccl"], 8, {"nccl": 14}, {}),
        (["labs"], 1, {"labs": 16}, {"labs: hardware multi-gpu needs 2 GPUs": 8}),
        (
            ["gloo", "labs"],
            1,
            {"gloo": 14, "labs": 16},
            {"labs: hardware multi-gpu needs 2 GPUs": 8},
        ),
    ],
)
def test_the_plan(
    parts: list[str], gpus: int, runs: dict[str, int], left_out: dict[str, int], lab: Lab
) -> None:
    tasks, out = gpu.plan(parts, all_cases.cases([lab]), CHOSEN, gpus, lacking_two)
    made = [task.part for task in tasks]
    assert {part: made.count(part) for part in made} == runs
    assert {why: out.count(why) for why in out} == left_out


def test_with_too_few_gpus_one_job_shows_how_nccl_refuses() -> None:
    [task], _ = gpu.plan(["nccl"], [], CHOSEN, 1, lacking_two)
    assert (task.name, task.wanted) == ("barrier_for_one on one GPU", "error error [by chance]")
    [task, *_], _ = gpu.plan(["nccl"], [], CHOSEN, 8, lacking_two)
    assert (task.name, task.wanted) == (gpu.REFUSED, "hang collective-mismatch [0, 1]")


def test_the_jobs_are_of_torchrun_and_two_have_nothing_wrong() -> None:
    assert all(job.command.startswith("torchrun --standalone ") for job in CHOSEN)
    assert [job.name for job in CHOSEN if job.control] == ["asleep_five", "well_stragglers"]
    for job in CHOSEN:
        text = job.program.read_text()
        assert 'init_process_group("gloo")' in text, job.name
        assert not re.search(r"\.(send|recv|isend|irecv)\(|DataLoader|lightning", text), job.name


@pytest.mark.parametrize(
    ("name", "command", "options"),
    [
        (
            "killed",
            "torchrun --standalone --nproc-per-node=2 -m on_gpu cuda nccl killed.py",
            ("--max-seconds", "60"),
        ),
        (
            "asleep",
            "torchrun --standalone --nproc-per-node=2 -m on_gpu cuda nccl asleep.py",
            ("--stop-on-suspicion", "--patience", "4", "--max-seconds", "60"),
        ),
        (
            "well_endless",
            "torchrun --standalone --nproc-per-node=2 -m on_gpu cuda nccl well_endless.py",
            ("--max-seconds", "12"),
        ),
        (
            "well_restarts",
            "torchrun --standalone --nproc-per-node=2 --max-restarts=1 -m on_gpu cuda nccl "
            "well_restarts.py 12",
            ("--max-seconds", "60"),
        ),
    ],
)
def test_a_job_comes_to_a_gpu(name: str, command: str, options: tuple[str, ...]) -> None:
    job = gpu.on_device(DECLARED[name], "cuda", "nccl")
    assert (job.command, job.options) == (command, options)
    assert (job.program, job.lines()) == (DECLARED[name].program, DECLARED[name].lines())
    assert gpu.world_size(job) == 2


# What came of it.


def row(wanted: str, got: str, **others: Any) -> Row:
    return Row("gloo", "killed", wanted, got, 4.25, **others)


HANG = "hang collective-mismatch [0, 1]"


@pytest.mark.parametrize(
    ("made", "word", "code"),
    [
        (row("ok", "ok"), "same", 0),
        (row(HANG, HANG), "same", 0),
        (row(HANG, "running"), "differs", 0),
        (row(HANG, "ok"), "differs", 0),
        (row(HANG, HANG, notes=("rank 0 a.py:1, not a.py:2",)), "differs", 0),
        (row("ok", "running"), "differs", 0),
        (row("ok", "hang unknown []"), "ALARM", 1),
        (row("ok", "error error [0]"), "ALARM", 1),
        (row("ok", "no report", fault="exit code 70: a fault"), "FAULT", 1),
        (row(HANG, HANG, fault="exit code 70: a fault"), "FAULT", 1),
    ],
)
def test_a_difference_is_marked_and_only_the_instrument_can_fail(
    made: Row, word: str, code: int
) -> None:
    assert (made.word, gpu.exit_code([row("ok", "ok"), made])) == (word, code)


REPORT = {"outcome": "error", "proved": True, "interrupted": False, "cause": "rank-crashed"}


@pytest.mark.parametrize(
    ("report", "exit_code", "left", "got", "notes", "fault"),
    [
        ({}, 70, (), "no report", (), "exit code 70: a fault"),
        ({}, None, (), "no report", (), "exit code None: a fault"),
        ({"line": 13}, 1, (), "error rank-crashed [1]", (), ""),
        (
            {"line": 12},
            1,
            ("port 4000",),
            "error rank-crashed [1]",
            ("first cause killed.py:12, not killed.py:13", "left port 4000, not none"),
            "",
        ),
    ],
)
def test_what_came_of_a_job(
    report: dict[str, Any],
    exit_code: int | None,
    left: tuple[str, ...],
    got: str,
    notes: tuple[str, ...],
    fault: str,
) -> None:
    job = DECLARED["killed"]
    if report:
        where = {"file": "killed.py", "line": report["line"], "function": "<module>"}
        report = REPORT | {"culprits": [1], "where": where, "ranks": []}
    done = Trial(job, report, exit_code, "first\na fault\n", None, None, None, 4.0, left)
    made = gpu.of_trial(Task("gloo", job), done)
    assert (made.got, made.notes, made.fault) == (got, notes, fault)


def test_a_lab_in_which_the_instrument_fails_is_a_row_and_leaves_no_report(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr(all_cases, "run", fail)
    [case, *_] = all_cases.cases([lab])
    kept = tmp_path / "kept"
    kept.mkdir()
    made = gpu.perform(Task("labs", case), kept)
    assert (made.got, made.word, made.fault) == ("no report", "FAULT", "RuntimeError: a fault")
    assert list(kept.iterdir()) == []


def test_the_page() -> None:
    rows = [
        row(HANG, HANG, hardware="cuda"),
        row(HANG, "running", notes=("rank 0 a.py:1, not a|b.py:2",)),
        row("ok", "no report", fault="exit code 70: a fault"),
    ]
    left_out = ["labs: needs 2 GPUs", "labs: needs 2 GPUs", "nccl: the 8 minutes were over"]
    text = gpu.page("torch 2.13.0, GPUs 1: NVIDIA H200", rows, left_out)
    assert text.startswith(
        "# What the instrument says of jobs on GPUs\n\nMade by `make gpu`: torch 2.13"
    )
    assert "3 runs, against what is expected of them: 1 same, 1 differs, 0 ALARM, 1 FAULT." in text
    assert f"| gloo | killed | same | {HANG} | {HANG} |  | cuda | 4.2 |" in text
    assert (
        f"| gloo | killed | **differs** | {HANG} | running | rank 0 a.py:1, not a\\|b.py:2 |  | 4.2"
        in text
    )
    assert "| gloo | killed | **FAULT** | ok | no report | exit code 70: a fault |  | 4.2 |" in text
    assert "- 2 not run: labs: needs 2 GPUs\n- 1 not run: nccl: the 8 minutes were over\n" in text
    assert gpu.page("torch 2.13.0", [], []).endswith("|---|\n\n")


class Interruption:
    """A `perform` that keeps one file for each run; Ctrl-C comes in the second."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, task: Task, folder: Path) -> Row:
        self.runs += 1
        if self.runs == 2:
            raise KeyboardInterrupt
        (folder / f"{task.part}-{task.name}.json").write_text(json.dumps({"outcome": "ok"}))
        return Row(task.part, task.name, task.wanted, task.wanted, 1.0)


def test_an_interrupted_run_keeps_what_it_has_and_nothing_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"version": "2.13.0", "cuda": "13.0", "gpus": ["NVIDIA H200"], "nccl": [2, 28], "gloo": True}
    monkeypatch.setattr(gpu, "probe_torch", lambda: found)
    monkeypatch.setattr(gpu, "perform", Interruption())
    (tmp_path / "labs-old.json").write_text("{}")
    (tmp_path / "mine.json").write_text("{}")
    assert gpu.main(["--only", "gloo", "--keep", str(tmp_path)]) == 130
    assert capsys.readouterr().out.startswith("| gloo | barrier_for_one | same |")
    names = {"gpu.md", "gloo-barrier_for_one.json"}
    assert {file.name for file in tmp_path.iterdir()} == {*names, "mine.json", "gpu.tar.gz"}
    text = (tmp_path / "gpu.md").read_text()
    assert "GPUs 1: NVIDIA H200, NCCL 2.28" in text and "1 runs, " in text
    with tarfile.open(tmp_path / "gpu.tar.gz") as archive:
        assert set(archive.getnames()) == {f"gpu/{name}" for name in names}


def test_no_run_starts_when_the_minutes_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = {"version": "2.13.0", "cuda": "13.0", "gpus": ["NVIDIA H200"], "nccl": [2, 28], "gloo": True}
    monkeypatch.setattr(gpu, "probe_torch", lambda: found)
    assert gpu.main(["--only", "gloo", "--keep", str(tmp_path), "--minutes", "-1"]) == 0
    assert "- 14 not run: gloo: the -1 minutes were over" in (tmp_path / "gpu.md").read_text()


# What is brought to a machine without a network.


def test_all_that_the_package_needs_is_there_or_brought_or_for_notebooks_and_lab_03_only() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    there, notebooks, lab_03 = (
        {"torch", "lightning", "psutil", "rich"},
        {"jupyterlab", "ipykernel", "ipywidgets", "anywidget", "sidecar"},
        {"transformers", "accelerate", "safetensors", "deepspeed", "ninja"},
    )
    declared = [*project["dependencies"], *project["optional-dependencies"]["labs"]]
    needed = {Requirement(text).name for text in declared} - there - notebooks - lab_03
    assert needed | {"markupsafe", "mdurl"} == set(wheels.BROUGHT)


def test_the_wheels_are_those_of_the_lock() -> None:
    found = pins.read((ROOT / "requirements.lock").read_text())
    words = wheels.command(found, Path("to"))
    assert words[:4] == [sys.executable, "-m", "pip", "download"]
    assert {"--no-deps", "3.12", "--platform=manylinux2014_x86_64"} <= set(words)
    named = [word.partition("==") for word in words if "==" in word]
    assert [name.lower() for name, _, _ in named] == list(wheels.BROUGHT)
    megabytes = {pin.name.lower(): pin.megabytes for pin in found}
    assert sum(megabytes[name] for name in wheels.BROUGHT) < wheels.MOST


def test_a_wheel_without_a_pin_and_too_many_wheels_are_refused() -> None:
    with pytest.raises(wheels.WheelsError, match="no pin of msgspec, jinja2"):
        wheels.command([], Path("to"))
    assert wheels.too_much([40 * 10**6, 21 * 10**6]) and not wheels.too_much([59 * 10**6])
