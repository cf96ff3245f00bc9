"""Runs labs and jobs on NVIDIA GPUs, and keeps what the instrument says of them: `make gpu`.

    python tools/gpu.py [--only gloo|nccl|labs] [--keep DIR] [--minutes N]

The parts gloo and nccl are jobs of tests/jobs with CUDA tensors, labs is every program of a lab with
every setting that uses a GPU. A job is expected to get the verdict that it gets on the CPU, a lab the
one in its lab.toml. A difference is a finding, not a failure. With NCCL a call returns before its work
is done: a rank hangs later, in the line that waits for the GPU, and keeps a core busy there. The
instrument does not read NCCL's Flight Recorder, so nothing is set for it (torch 2.13 fills it by
default: FlightRecorder.hpp reads TORCH_FR_BUFFER_SIZE, else TORCH_NCCL_TRACE_BUFFER_SIZE, else 2000).

After each run DIR has a page, the reports and recordings so far, and `gpu.tar.gz` with all of them.

A machine without a network that has CPython 3.12, torch, Lightning, psutil and rich lacks a few wheels.
Download them elsewhere, take them there with this checkout, and install them into a folder:

    python tools/gpu.py --wheels wheels
    python -m pip install --no-index --no-deps --target site wheels/*.whl && \
PYTHONPATH=$PWD/site PATH=$PWD/site/bin:$PATH python tools/gpu.py --keep gpu

Exit codes: 0 everything ran, whatever came of it; 1 there is no GPU and nothing ran, or the instrument
failed, or it raised an alarm about a run that should end well; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from msgspec import structs

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a machine with a GPU may have the checkout only, not the package

from make_recordings import PLACES, scrubbed  # noqa: E402
from score import jobs as collection  # noqa: E402
from score import trial as trials  # noqa: E402
from score.jobs import Job  # noqa: E402
from score.score import made, said  # noqa: E402
from score.trial import Trial  # noqa: E402
from wheels import WheelsError, download  # noqa: E402

from helpers.cli.main import FAULT  # noqa: E402
from helpers.labs import all_cases  # noqa: E402
from helpers.labs.all_cases import Case, words  # noqa: E402
from helpers.labs.check import torch_facts  # noqa: E402
from helpers.labs.lab import all_labs  # noqa: E402
from helpers.labs.machine import probe_torch  # noqa: E402
from helpers.report.report import to_json  # noqa: E402

PARTS = ("gloo", "nccl", "labs")

JOBS = (
    *("barrier_for_one", "reduce_or_all_reduce", "sizes_one_passes", "ddp_sizes", "opposite_groups"),
    *("partial_group", "left_with_code", "killed", "stopped", "asleep", "waits_for_keys"),
    *("memory_empty", "asleep_five", "well_stragglers"),
)
"""Jobs of torchrun and plain torch.distributed, two of them with nothing wrong. They use no `send` and
`recv`, which gloo refuses for CUDA tensors, and no DataLoader, whose generator is on the CPU."""

REFUSED = "barrier_for_one"
"""The job that two ranks run on one GPU: NCCL refuses that at the first collective, and both fail."""

GPU_NEEDS = frozenset(("one-gpu", "two-gpus", "gpu-per-rank"))

SECONDS = 60
"""How long a job may take, unless it says so itself: it has a CUDA context to make first."""

PAGE, ARCHIVE = "gpu.md", "gpu.tar.gz"


@dataclass(frozen=True)
class Task:
    """One run that is to be made: a case of a lab, or a job as it runs on the GPUs."""

    part: str
    what: Case | Job

    @property
    def name(self) -> str:
        """Of the job, or of the case with its knobs."""
        return self.what.name if isinstance(self.what, Job) else self.what.shown

    @property
    def wanted(self) -> str:
        """What is expected of it, in words."""
        if isinstance(self.what, Job):
            return words(self.what.outcome, self.what.cause, self.what.culprits)
        return self.what.wanted


@dataclass(frozen=True)
class Row:
    """What came of a run.

    Attributes:
        got: outcome, cause and culprits, or why there are none.
        notes: what else is not as expected: lines, results, what is left behind.
        fault: what failed in the instrument itself, "" when nothing did.
        hardware: what the ranks were seen to use, as the report says it: `cuda` or `cpu`.
    """

    part: str
    name: str
    wanted: str
    got: str
    seconds: float
    notes: tuple[str, ...] = ()
    fault: str = ""
    hardware: str = ""

    @property
    def control(self) -> bool:
        """True for a run that is to end well."""
        return self.wanted == "ok"

    @property
    def word(self) -> str:
        """`same`, `differs`, or one of two that fail the whole: `FAULT` and `ALARM`."""
        if self.fault:
            return "FAULT"
        if self.control and self.got.startswith(("hang", "error")):
            return "ALARM"
        return "same" if self.got == self.wanted and not self.notes else "differs"


def refusal(found: Mapping[str, Any]) -> str:
    """Why nothing can be run with the torch that `probe_torch` has found; "" when there is a GPU."""
    if "error" in found:
        return f"torch cannot be asked for GPUs ({found['error']})"
    if not found["cuda"]:
        return f"torch {found['version']} is built without CUDA"
    return "" if found["gpus"] else "torch sees no GPU: there is none, or no NVIDIA driver"


def uses_gpu(case: Case) -> bool:
    """True when the program, or a value of a knob, needs a GPU."""
    lab, settings = case.lab, case.lab.settings(case.program, case.knobs)
    needs = set(lab.file.programs[case.program].needs)
    needs |= {need for name, value in settings.items() for need in lab.knobs[name].values[value].needs}
    return bool(GPU_NEEDS & needs)


def on_device(job: Job, device: str, backend: str) -> Job:
    """The same job, its program run by tests/jobs/on_gpu.py.

    Args:
        device: `cuda`, where each local rank takes a GPU, its own as far as there are enough, or `cpu`.
        backend: `gloo` or `nccl`.
    """
    parts = shlex.split(job.command)
    at = next(index for index, part in enumerate(parts) if part.endswith(".py"))
    parts[at:at] = ["-m", "on_gpu", device, backend]
    limit = () if "--max-seconds" in job.options else ("--max-seconds", str(SECONDS))
    return structs.replace(job, command=shlex.join(parts), options=(*job.options, *limit))


def world_size(job: Job) -> int:
    """How many ranks its torchrun starts."""
    found = re.search(r"--nproc-per-node=(\d+)", job.command)
    assert found is not None, job.command
    return int(found[1])


def plan(
    parts: Iterable[str],
    cases: Iterable[Case],
    jobs: Iterable[Job],
    gpus: int,
    lacking: Callable[[Case], str],
) -> tuple[list[Task], list[str]]:
    """What is to be run, and why each of the other runs is left out.

    Args:
        parts: some of PARTS, in the order in which they run.
        gpus: how many this machine has.
        lacking: what it lacks for a case, or "".
    """
    tasks: list[Task] = []
    left_out: list[str] = []
    for part in parts:
        if part == "labs":
            for case in filter(uses_gpu, cases):
                if why := lacking(case):
                    left_out.append(f"labs: {why}")
                else:
                    tasks.append(Task(part, case))
            continue
        for job in jobs:
            if part == "nccl" and world_size(job) > gpus:
                left_out.append(f"nccl: it takes a GPU for each rank, and this machine has {gpus}")
                if job.name == REFUSED:
                    name = f"{job.name} on one GPU"
                    refused = structs.replace(
                        job, name=name, outcome="error", cause="error", culprits=None
                    )
                    tasks.append(Task(part, on_device(refused, "cuda", part)))
            else:
                tasks.append(Task(part, on_device(job, "cuda", part)))
    return tasks, left_out


def perform(task: Task, folder: Path) -> Row:
    """Make one run, and keep its report and its recording in a folder."""
    name = re.sub(r"[^\w.-]+", "_", f"{task.part}-{task.name}")
    with tempfile.TemporaryDirectory() as place:
        recording = Path(place, "run.jsonl.gz")
        if isinstance(task.what, Job):
            done = trials.run(task.what, recording)
            row, report = of_trial(task, done), done.report
        else:
            row, report = _of_case(task, task.what, recording)
        if report:
            row = replace(row, hardware=report["job"]["hardware"])
            text = json.dumps(report, indent=1) + "\n"
            for pattern, name_of_place in PLACES:
                text = pattern.sub(name_of_place, text)
            (folder / f"{name}.json").write_text(text)
        with suppress(OSError, EOFError):  # a run that failed may leave none
            (folder / f"{name}.jsonl.gz").write_bytes(scrubbed(recording))
    return row


def of_trial(task: Task, done: Trial) -> Row:
    """What came of a job."""
    made = Row(task.part, task.name, task.wanted, "no report", done.took)
    if not done.report or done.exit_code == FAULT:
        last = done.errors.strip().rpartition("\n")[2]
        made = replace(made, fault=f"exit code {done.exit_code}: {last}")
    if not done.report:
        return made
    report = done.report
    culprits = None if done.job.culprits is None else report["culprits"]
    notes = tuple(said(check) for check in done.wrong() if check.kind in ("line", "left"))
    return replace(made, got=words(report["outcome"], report["cause"], culprits), notes=notes)


def _of_case(task: Task, case: Case, recording: Path) -> tuple[Row, Mapping[str, Any]]:
    begun = time.monotonic()
    try:
        result = all_cases.run(case, recording)
    except Exception as fault:
        seconds, what = time.monotonic() - begun, f"{type(fault).__name__}: {fault}"
        return Row(task.part, task.name, task.wanted, "no report", seconds, fault=what), {}
    report = {} if result.report is None else to_json(result.report)
    return Row(task.part, task.name, task.wanted, result.got, result.seconds, result.failed), report


def page(where: str, rows: Sequence[Row], left_out: Iterable[str]) -> str:
    """The result in Markdown.

    Args:
        where: what was run with and when, in words.
    """
    counted = Counter(row.word for row in rows)
    kinds = ", ".join(f"{counted[word]} {word}" for word in ("same", "differs", "ALARM", "FAULT"))
    return "\n".join(
        (
            "# What the instrument says of jobs on GPUs",
            "",
            f"Made by `make gpu`: {where}.",
            "",
            f"{len(rows)} runs, against what is expected of them: {kinds}.",
            "",
            "| part | run | | expected | came | else | on | seconds |",
            "|---|---|---|---|---|---|---|---|",
            *map(_line, rows),
            "",
            *(f"- {count} not run: {why}" for why, count in Counter(left_out).items()),
            "",
        )
    )


def _line(row: Row) -> str:
    word = row.word if row.word == "same" else f"**{row.word}**"
    more = "; ".join((*filter(None, [row.fault]), *row.notes)).replace("|", "\\|")
    cells = [row.part, row.name, word, row.wanted, row.got, more, row.hardware, f"{row.seconds:.1f}"]
    return f"| {' | '.join(cells)} |"


def exit_code(rows: Iterable[Row]) -> int:
    """1 when the instrument failed or raised a false alarm, else 0."""
    return int(any(row.word in ("FAULT", "ALARM") for row in rows))


def write(folder: Path, text: str) -> None:
    """Write the page, and the archive of all that is kept."""
    (folder / PAGE).write_text(text)
    growing = folder / f".{ARCHIVE}"
    with tarfile.open(growing, "w:gz") as archive:
        for file in kept(folder):
            archive.add(file, f"gpu/{file.name}")
    growing.replace(folder / ARCHIVE)


def kept(folder: Path) -> Iterator[Path]:
    """The page, the reports and the recordings of a folder."""
    for pattern in (PAGE, *(f"{part}-*.json*" for part in PARTS)):
        yield from sorted(folder.glob(pattern))


def commit() -> str:
    """The commit of this checkout in words."""
    with suppress(OSError, subprocess.CalledProcessError):
        git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
        done = subprocess.run(git, capture_output=True, text=True, check=True)
        return f"commit {done.stdout.strip()}"
    return "commit unknown"


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--only", choices=PARTS, help="run one part")
    made.add_argument(
        "--keep", type=Path, metavar="DIR", default=ROOT / "benchmarks" / "gpu", help="(%(default)s)"
    )
    made.add_argument(
        "--minutes", type=float, metavar="N", default=8.0, help="start no run after N minutes (8)"
    )
    made.add_argument("--wheels", type=Path, metavar="DIR", help="only download the wheels into DIR")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what this machine can run; return the exit code."""
    options = parser().parse_args(arguments)
    if options.wheels is not None:
        try:
            download(options.wheels)
        except WheelsError as problem:
            print(problem, file=sys.stderr)
            return 1
        return 0
    found = probe_torch()
    if why := refusal(found):
        print(f"Nothing is run: {why}.", file=sys.stderr)
        return 1
    declared = collection.read(trials.ROOT / "tests" / "jobs")
    tasks, left_out = plan(
        [options.only] if options.only else PARTS,
        all_cases.cases(all_labs()),
        [declared[name] for name in JOBS],
        len(found["gpus"]),
        lambda case: case.lab.lacking(case.program, case.knobs),
    )
    options.keep.mkdir(parents=True, exist_ok=True)
    for file in kept(options.keep):
        file.unlink()
    facts = ", ".join(f"{fact.name} {fact.value}" for fact in torch_facts(found))
    where = f"{made()}; {commit()}; {facts}"
    rows: list[Row] = []
    end = time.monotonic() + 60 * options.minutes
    try:
        for task in tasks:
            if time.monotonic() > end:
                left_out.append(f"{task.part}: the {options.minutes:g} minutes were over")
                continue
            rows.append(perform(task, options.keep))
            print(_line(rows[-1]), flush=True)
            write(options.keep, page(where, rows, left_out))
    except KeyboardInterrupt:
        return 130
    write(options.keep, page(where, rows, left_out))
    return exit_code(rows)


if __name__ == "__main__":
    sys.exit(main())
