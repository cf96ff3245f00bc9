"""What `make gpu` runs and leaves out, how a job comes to a GPU, what the page says. Uses no GPU."""

from __future__ import annotations

import gzip
import json
import os
import re
import tarfile
import threading
import time
import tomllib
from pathlib import Path
from typing import Any

import gpu
import pytest
from example_lab import example, write_programs
from gpu_runs import archive, rows, runs, use
from gpu_runs import page as pages
from gpu_runs import plan as plans
from gpu_runs.rows import Row, Task
from packaging.requirements import Requirement
from repository import JOBS, ROOT
from score import jobs as collection
from score.trial import Trial

from helpers.labs import all_cases
from helpers.labs.all_cases import Case
from helpers.labs.lab import Lab, all_labs

DECLARED = collection.read(JOBS)
FOUND = {"version": "2.13.0", "cuda": "13.0", "gpus": ["NVIDIA H200"], "nccl": [2, 28], "gloo": True}
"""What torch says on a machine with a GPU."""
CHOSEN = [DECLARED[name] for name in plans.FIRST]


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
    said = plans.refusal(found)
    assert why in said and bool(said) == bool(why)


def test_without_a_gpu_the_page_lists_what_would_run_and_results_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: {"version": "2.13.0+cpu", "cuda": None, "gpus": []})
    assert gpu.main(["--keep", str(tmp_path / "kept")]) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", "Nothing is run: torch 2.13.0+cpu is built without CUDA.\n")
    [file] = tmp_path.iterdir()
    text = file.read_text()
    assert pages.NOTHING in text and "because no machine with a GPU was at hand" in text
    assert "runs: " not in text and {f"| {part} |" in text for part in plans.PARTS} == {True}
    assert (
        text == (ROOT / "benchmarks" / "gpu.md").read_text()
        or pages.NOTHING not in (ROOT / "benchmarks" / "gpu.md").read_text()
    ), "run tools/gpu.py"
    file.write_text("results")
    assert gpu.main(["--keep", str(tmp_path / "kept")]) == 1
    assert file.read_text() == "results"


# What is run.


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return example(write_programs(tmp_path))


def test_the_cases_of_a_lab_that_use_a_gpu(lab: Lab) -> None:
    on_gpu = [case.shown for case in all_cases.cases([lab]) if plans.uses_gpu(case)]
    assert len(on_gpu) == 24 and all("hardware=cpu" not in name for name in on_gpu)
    assert "07_example broken launcher=python method=fork mode=lazy hardware=one-gpu" in on_gpu


def test_a_program_that_needs_gpus_counts_whatever_its_knobs_are() -> None:
    named = {case.program for case in all_cases.cases(all_labs()) if plans.uses_gpu(case)}
    assert "p2p" in named and "requeued" not in named


def lacking_two(case: Case) -> str:
    return "hardware multi-gpu needs 2 GPUs" if "multi-gpu" in case.shown else ""


@pytest.mark.parametrize("gpus", [1, 2])
def test_the_plan_has_the_most_telling_first_and_says_what_cannot_run(gpus: int, lab: Lab) -> None:
    tasks = plans.plan(all_cases.cases([lab]), DECLARED, gpus, lacking_two)
    parts = [task.part for task in tasks]
    assert list(dict.fromkeys(parts)) == list(plans.PARTS)
    assert parts.count("labs") == 24
    assert [task.why_not for task in tasks if task.why_not] == ["hardware multi-gpu needs 2 GPUs"] * 8
    named = [(task.part, task.name) for task in tasks]
    assert len(set(named)) == len(named)
    both = {name for part, name in named if part in ("shared", "nccl")}
    assert both >= set(plans.FIRST)
    [one] = [task for task in tasks if (task.part, task.name) == ("nccl", "partial_group")]
    assert plans.APART in one.command or plans.world_size(DECLARED["partial_group"]) <= gpus


def test_nccl_refuses_two_ranks_of_one_host_and_gets_two_hosts() -> None:
    tasks = plans.plan([], DECLARED, 1, lacking_two)
    refused, taken, *_ = tasks
    assert (refused.name, refused.wanted) == ("barrier_for_one, one host", "error error [by chance]")
    assert refused.said == "Duplicate GPU detected" and "cuda nccl barrier_for_one.py" in refused.command
    assert (taken.name, taken.wanted) == ("barrier_for_one", "hang rank-exited [1]")
    assert taken.command.startswith("env CUDA_VISIBLE_DEVICES=0 ") and "nccl-apart" in taken.command


def test_without_a_gpu_nothing_can_run_and_a_part_or_names_pick_rows() -> None:
    tasks = plans.plan([], DECLARED, 1, lacking_two, "there is none")
    assert {task.why_not for task in tasks} == {"there is none"}
    assert [t.part for t in plans.picked(tasks, None, "killed")] == ["shared", "gloo"]
    names = [(t.part, t.name) for t in plans.picked(tasks, None, "gloo/asleep,stopped")]
    assert names == [("nccl", "stopped"), ("gloo", "stopped"), ("gloo", "asleep")]
    assert {t.part for t in plans.picked(tasks, "gloo", "")} == {"gloo"}


def test_lab_04_says_what_the_generator_is_wanted_on() -> None:
    said = {t.said for t in plans.plan(all_cases.cases(all_labs()), DECLARED, 1, lacking_two)}
    assert plans.GENERATOR in said


def test_gloo_gets_no_send_and_nothing_that_needs_the_cpu() -> None:
    assert plans.neutral(DECLARED["sends_in_a_ring"], "nccl")
    assert not plans.neutral(DECLARED["sends_in_a_ring"], "gloo")
    assert not plans.neutral(DECLARED["mismatch_in_shell"], "nccl")


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
    job = plans.on_device(DECLARED[name], "cuda", "nccl")
    assert (job.command, job.options) == (command, options)
    assert (job.program, job.lines()) == (DECLARED[name].program, DECLARED[name].lines())
    assert plans.world_size(job) == 2


@pytest.mark.parametrize(
    ("name", "wanted", "control"),
    [
        ("barrier_for_one", "hang rank-exited [1]", False),
        ("reduce_or_all_reduce", "hang collective-mismatch [0]", False),
        ("monitored_barrier", "error error [by chance]", False),
        ("sizes_one_passes", "ok", False),
        ("well_stragglers", "ok", True),
    ],
)
def test_what_differs_with_nccl(name: str, wanted: str, control: bool) -> None:
    task = Task("nccl", plans.on_device(DECLARED[name], "cuda", plans.APART))
    assert (task.wanted, task.control) == (wanted, control)
    job = task.what
    assert isinstance(job, collection.Job) and job.lines() == {}
    assert plans.on_device(DECLARED[name], "cuda", "gloo").lines() == DECLARED[name].lines()


# What came of it.


def row(wanted: str, got: str, **others: Any) -> Row:
    command, control = "torchrun killed.py", wanted == "ok"
    return Row("gloo", "killed", command, wanted, got, 4.25, control=control, **others)


HANG = "hang collective-mismatch [0, 1]"


@pytest.mark.parametrize(
    ("made", "word", "code"),
    [
        (row("ok", "ok"), "right", 0),
        (row(HANG, HANG), "right", 0),
        (row(HANG, "running"), "wrong", 0),
        (row(HANG, "ok"), "wrong", 0),
        (row(HANG, HANG, notes=("rank 0 a.py:1, not a.py:2",)), "wrong", 0),
        (row("ok", "running"), "wrong", 0),
        (row("ok", "hang unknown []"), "ALARM", 1),
        (row("ok", "error error [0]"), "ALARM", 1),
        (row("ok", "no report", fault="exit code 70: a fault"), "FAULT", 1),
        (row(HANG, HANG, fault="exit code 70: a fault"), "FAULT", 1),
        (row("ok", "error error [0]", failed="RuntimeError: no NCCL"), "JOB FAILED", 0),
        (row(HANG, "error error [0]", failed="RuntimeError: no NCCL"), "JOB FAILED", 0),
    ],
)
def test_a_difference_is_marked_and_only_the_instrument_can_fail(
    made: Row, word: str, code: int
) -> None:
    assert (made.word, rows.exit_code([row("ok", "ok"), made])) == (word, code)


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
    made = runs.of_trial(Task("gloo", job), done)
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
    made = runs.perform(Task("labs", case), kept)
    assert (made.got, made.word, made.fault) == ("no report", "FAULT", "RuntimeError: a fault")
    assert list(kept.iterdir()) == []


def test_the_page() -> None:
    made = [
        row(HANG, HANG, hardware="cuda", use="100 % in 3 of 4 samples, 900 MB"),
        row(HANG, "running", notes=("rank 0 a.py:1, not a|b.py:2",), said="Duplicate GPU detected : 0"),
        row("ok", "no report", fault="exit code 70: a fault"),
    ]
    never = [(Task("gloo", DECLARED["stopped"]), "there was no time")]
    text = pages.page("torch 2.13.0, GPUs 1: NVIDIA H200", made, never)
    assert "Made by `make gpu`: torch 2.13.0, GPUs 1: NVIDIA H200. 3 runs: 1 right, 1 wrong, 0" in text
    cells = f"| gloo | killed | `torchrun killed.py` | {HANG} | "
    assert f"{cells}{HANG} | right |  |  | cuda | 100 % in 3 of 4 samples, 900 MB | 4.2 |" in text
    noted = "rank 0 a.py:1, not a\\|b.py:2 | `Duplicate GPU detected : 0` |  |  | 4.2 |"
    assert f"{cells}running | **wrong** | {noted}" in text
    assert "| ok | no report | **FAULT** | exit code 70: a fault |" in text
    assert "## Never ran\n\n1 runs, because there was no time:" in text
    assert f"| gloo | stopped | `{DECLARED['stopped'].command}` |" in text
    assert pages.NOTHING not in text and "Never ran" not in pages.page("torch", made, [])


def test_what_nvidia_smi_has_answered() -> None:
    assert use.told(["0, 4", "100, 900", "[N/A], 4", "100, 890", ""]) == (
        "100 % in 2 of 3 samples, 900 MB"
    )
    assert use.told([]) == ""


def test_where_there_is_no_nvidia_smi_nothing_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with use.watched(tmp_path / "use.csv") as asked:
        assert asked() == ""


def test_nvidia_smi_is_asked_while_a_run_lasts_and_ended_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = tmp_path / "nvidia-smi"
    asked.write_text("#!/bin/sh\necho 100, 900\nmkfifo pipe\nexec cat pipe\n")
    asked.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with use.watched(tmp_path / "use.csv") as told:
        while not (tmp_path / "pipe").exists():
            time.sleep(0.01)
        assert told() == "100 % in 1 of 1 samples, 900 MB"


def test_a_line_is_quoted_word_for_word_or_missed() -> None:
    task = Task("shared", DECLARED["killed"], said=plans.DUPLICATE)
    report = {"ranks": [{"error": None}, {"error": "DistBackendError: NCCL error"}]}
    line = "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000"
    assert runs.quoted(task, row("ok", "ok"), f"Last error:\n {line}\n", report).said == line
    missed = runs.quoted(task, row("ok", "ok"), "", report)
    assert (missed.word, missed.notes) == ("wrong", ("no line says: Duplicate GPU detected",))


def test_a_recording_names_the_gpus_of_its_machine() -> None:
    content = (ROOT / "tests" / "recordings" / "killed.jsonl.gz").read_bytes()
    before, after = (
        gzip.decompress(text).splitlines() for text in (content, runs.labelled(content, ["NVIDIA H100"]))
    )
    assert json.loads(after[0])["made"]["machine"].endswith(" CPU cores, 1 GPU: NVIDIA H100")
    assert before[1:] == after[1:]


class Interruption:
    """A `perform` that keeps one file for each run; Ctrl-C comes in the second."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, task: Task, folder: Path, gpus: list[str]) -> Row:
        self.runs += 1
        if self.runs == 2:
            raise KeyboardInterrupt
        (folder / f"{task.part}-{task.name}.json").write_text(json.dumps({"outcome": "ok"}))
        return Row(task.part, task.name, task.command, task.wanted, task.wanted, 1.0)


def test_an_interrupted_run_keeps_what_it_has_and_nothing_of_an_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: FOUND)
    monkeypatch.setattr(gpu, "perform", Interruption())
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "labs-old.json").write_text("{}")
    (kept / "mine.json").write_text("{}")
    assert gpu.main(["--only", "gloo", "--keep", str(kept)]) == 130
    assert capsys.readouterr().out.startswith("| gloo | barrier_for_one | ")
    names = {"rows.jsonl", "gloo-barrier_for_one.json"}
    assert {file.name for file in kept.iterdir()} == {*names, "mine.json", "gpu.tar.gz"}
    text = (tmp_path / "kept.md").read_text()
    assert "GPUs 1: NVIDIA H200, NCCL 2.28" in text and "1 runs: 1 right" in text
    with tarfile.open(kept / "gpu.tar.gz") as archive:
        assert set(archive.getnames()) == {"kept.md", *(f"gpu/{name}" for name in names)}
    assert gpu.main(["--rows", "gloo/barrier_for_one", "--go-on", "--keep", str(kept)]) == 0
    assert capsys.readouterr().out == "", "it has been made"
    assert "1 runs: 1 right" in (tmp_path / "kept.md").read_text()


def test_a_fresh_machine_goes_on_from_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: FOUND)
    monkeypatch.setattr(gpu, "perform", Interruption())
    there, here = tmp_path / "there" / "gpu", tmp_path / "here" / "gpu"
    assert gpu.main(["--rows", "gloo/asleep", "--keep", str(there)]) == 0
    here.mkdir(parents=True)
    (here / archive.NAME).write_bytes((there / archive.NAME).read_bytes())
    capsys.readouterr()
    monkeypatch.setattr(gpu, "perform", Interruption())
    words = ["--rows", "gloo/asleep,gloo/stopped", "--go-on", "--keep", str(here)]
    assert gpu.main(words) == 0
    assert capsys.readouterr().out.startswith("| gloo | stopped | ")
    assert {row.name for row in rows.kept(here / archive.ROWS)} == {"asleep", "stopped"}
    assert (here / "gloo-asleep.json").exists()


def test_rows_are_made_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: FOUND)
    together = threading.Barrier(2, timeout=10)

    def perform(task: Task, folder: Path, gpus: list[str]) -> Row:
        together.wait()
        return Row(task.part, task.name, task.command, task.wanted, task.wanted, 1.0)

    monkeypatch.setattr(gpu, "perform", perform)
    kept = tmp_path / "kept"
    assert gpu.main(["--rows", "gloo/asleep,gloo/stopped", "--jobs", "2", "--keep", str(kept)]) == 0
    assert len(rows.kept(kept / archive.ROWS)) == 2


def test_an_archive_gives_the_labs_the_recordings_that_came_out_as_expected(
    tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right, wrong, *_ = [case for case in all_cases.cases([lab]) if plans.uses_gpu(case)]
    folder = tmp_path / "there" / "gpu"
    folder.mkdir(parents=True)
    for case, got in ((right, right.wanted), (wrong, "running")):
        made = Row("labs", case.shown, "", case.wanted, got, 1.0)
        rows.keep(made, folder / archive.ROWS)
        (folder / f"{runs._file_name(made)}.jsonl.gz").write_bytes(case.shown.encode())
    archive.write(tmp_path / "there" / "gpu.md", folder, "the page")
    monkeypatch.setattr(gpu, "ROOT", tmp_path)
    monkeypatch.setattr(gpu, "all_labs", lambda: [lab])
    (tmp_path / "benchmarks").mkdir()
    assert gpu.main(["--place", str(folder / archive.NAME)]) == 0
    assert lab.recording(right.program, right.knobs).read_bytes() == right.shown.encode()
    assert not lab.recording(wrong.program, wrong.knobs).exists()
    assert (tmp_path / "benchmarks" / "gpu.md").read_text() == "the page"
    assert gpu.main(["--place", str(tmp_path / "none.tar.gz")]) == 1
    assert "none.tar.gz cannot be unpacked" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "job", "error"),
    [
        ("well_stragglers", {"exit_code": 1, "signal": None}, "RuntimeError: no NCCL"),
        ("well_stragglers", {"exit_code": None, "signal": None}, ""),
        ("killed", {"exit_code": 1, "signal": None}, ""),
    ],
)
def test_a_job_that_fails_by_itself_is_not_the_instrument_s_fault(
    name: str, job: dict[str, Any], error: str
) -> None:
    report = {"job": job, "ranks": [{"error": None}, {"error": "RuntimeError: no NCCL"}], "summary": ""}
    assert runs.own_error(Task("nccl", DECLARED[name]), report) == error


def test_no_run_starts_when_the_minutes_are_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "probe_torch", lambda: FOUND)
    kept = tmp_path / "kept"
    assert gpu.main(["--only", "gloo", "--keep", str(kept), "--minutes", "-1"]) == 0
    assert "because there was no time" in (tmp_path / "kept.md").read_text()


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
    command = gpu.__doc__.split("pip download")[1].split("\n\n")[0].split("python -m pip install")[0]
    assert needed == set(command.split()[-len(needed) :])
