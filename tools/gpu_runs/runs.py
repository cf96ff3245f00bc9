"""Makes a run on the GPUs, and keeps its report and its recording."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from make_recordings import PLACES, scrubbed
from score import trial as trials
from score.jobs import Job
from score.score import said
from score.trial import Trial

from helpers.cli.main import FAULT
from helpers.labs import all_cases
from helpers.labs.all_cases import Case, words
from helpers.labs.lab import beside_python
from helpers.launch.launch import launch
from helpers.report.report import to_json

from .plan import SECONDS, TIMEOUT
from .rows import Row, Task
from .use import watched


def perform(task: Task, folder: Path, gpus: Sequence[str] = ()) -> Row:
    """Make one run, and keep its report and its recording in a folder.

    Args:
        gpus: their names, for the label of the recording. A lab keeps the recording, too, if the run
            came out as expected.
    """
    name = _file_name(task)
    with tempfile.TemporaryDirectory() as place, watched(Path(place, "use.csv")) as use:
        recording = Path(place, "run.jsonl.gz")
        output = ""
        if isinstance(task.what, Case):
            row, report = _of_case(task, task.what, recording)
        elif task.part == "dumps":
            row, report = _of_dumps(task, task.what, Path(place))
        else:
            done = trials.run(task.what, recording)
            row, report, output = of_trial(task, done), done.report, done.errors
        row = replace(row, use=use(), failed=own_error(task, report), control=task.control)
        if report:
            text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
            for pattern, name_of_place in PLACES:
                text = pattern.sub(name_of_place, text)
            (folder / f"{name}.json").write_text(text)
            row = quoted(task, replace(row, hardware=report["job"]["hardware"]), output, report)
        with suppress(OSError, EOFError):  # a run that failed may leave none
            content = labelled(scrubbed(recording), gpus)
            (folder / f"{name}.jsonl.gz").write_bytes(content)
            if gpus and isinstance(task.what, Case):
                into_lab(task.what, row, folder)
    return row


def _file_name(row: Task | Row) -> str:
    return re.sub(r"[^\w.-]+", "_", f"{row.part}-{row.name}")


def into_lab(case: Case, row: Row, folder: Path) -> None:
    """Give a lab the recording in a folder of a run that came out as expected."""
    recording = folder / f"{_file_name(row)}.jsonl.gz"
    if row.word == "right" and not case.alone and recording.exists():
        shown = case.lab.recording(case.program, case.knobs)
        shown.parent.mkdir(exist_ok=True)
        shown.write_bytes(recording.read_bytes())


def own_error(task: Task, report: Mapping[str, Any]) -> str:
    """The error with which a job ended by itself that should not; "" where it did not."""
    job = report.get("job", {})
    if task.wanted.startswith("error") or not (job.get("exit_code") or job.get("signal")):
        return ""
    errors = (rank["error"] for rank in report["ranks"] if rank["error"])
    return str(next(errors, report["summary"]))


def quoted(task: Task, row: Row, output: str, report: Mapping[str, Any]) -> Row:
    """The row with the line in which the ranks said what they had to say, or a note that none did."""
    if not task.said:
        return row
    errors = [rank["error"] or "" for rank in report["ranks"]]
    lines = [line.strip() for line in (*errors, *output.splitlines()) if task.said in line]
    if lines:
        return replace(row, said=lines[0])
    return replace(row, notes=(*row.notes, f"no line says: {task.said}"))


def labelled(content: bytes, gpus: Sequence[str]) -> bytes:
    """A recording that names the GPUs among the facts of its machine."""
    first, _, looks = gzip.decompress(content).partition(b"\n")
    head = json.loads(first)
    if gpus:
        head["made"]["machine"] += f", {len(gpus)} GPU{'s' * (len(gpus) > 1)}: {', '.join(gpus)}"
    return gzip.compress(json.dumps(head, separators=(",", ":")).encode() + b"\n" + looks, mtime=0)


def of_trial(task: Task, done: Trial) -> Row:
    """What came of a job."""
    made = Row(task.part, task.name, task.command, task.wanted, "no report", done.took)
    if not done.report or done.exit_code == FAULT:
        last = done.errors.strip().rpartition("\n")[2]
        made = replace(made, fault=f"exit code {done.exit_code}: {last}")
    if not done.report:
        return made
    notes = tuple(said(check) for check in done.wrong() if check.kind in ("line", "left"))
    return replace(made, got=_of_report(done.job, done.report), notes=notes)


def _of_report(job: Job, report: Mapping[str, Any]) -> str:
    culprits = None if job.culprits is None else report["culprits"]
    return words(report["outcome"], report["cause"], culprits)


def _of_case(task: Task, case: Case, recording: Path) -> tuple[Row, Mapping[str, Any]]:
    begun = time.monotonic()
    made = Row(task.part, task.name, task.command, task.wanted, "no report", 0.0)
    try:
        result = all_cases.run(case, recording)
    except Exception as fault:
        what = f"{type(fault).__name__}: {fault}"
        return replace(made, seconds=time.monotonic() - begun, fault=what), {}
    report = {} if result.report is None else to_json(result.report)
    return replace(made, got=result.verdict, seconds=result.seconds, notes=result.failed), report


def _of_dumps(task: Task, job: Job, place: Path) -> tuple[Row, Mapping[str, Any]]:
    """Run a job alone until NCCL's watchdog dumps and ends it, and have the dumps read."""
    begun = time.monotonic()
    made = Row(task.part, task.name, task.command, task.wanted, "no report", 0.0)
    dumps = place / "dumps"
    dumps.mkdir()
    env = os.environ | {
        **{f"TORCH_{name}_BUFFER_SIZE": "2000" for name in ("FR", "NCCL_TRACE")},
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "2000",  # the watchdog waits four times as long
        "TORCH_FR_DUMP_TEMP_FILE": f"{dumps}/fr_rank_",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{dumps}/fr_rank_",  # its name before torch 2.9
        "ON_GPU_TIMEOUT": str(TIMEOUT),
    }
    program, *arguments = shlex.split(job.command)
    end = time.monotonic() + TIMEOUT + SECONDS
    with closing(launch([beside_python(program), *arguments], cwd=job.folder, env=env)) as run:
        while run.poll() is None and time.monotonic() < end:
            for _ in run.output.read(0.2):
                pass
    if not any(dumps.iterdir()):
        return replace(made, got="no dump", seconds=time.monotonic() - begun), {}
    read = subprocess.run(
        [sys.executable, "-m", "helpers", "read", str(dumps), "--json", "-"],
        cwd=trials.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    made = replace(made, seconds=time.monotonic() - begun)
    try:
        report: Mapping[str, Any] = json.loads(read.stdout)
    except ValueError:
        last = read.stderr.strip().rpartition("\n")[2]
        return replace(made, fault=f"exit code {read.returncode}: {last}"), {}
    return replace(made, got=_of_report(job, report)), report
