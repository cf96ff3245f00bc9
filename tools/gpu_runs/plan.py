"""Which runs `make gpu` makes, the most telling first.

The parts: `shared` is NCCL with two ranks on one GPU, as NCCL refuses it and with an NCCL_HOSTID for
each rank (as `nccl` runs where GPUs are few); `dumps` is what `read` says of the Flight Recorder dumps
that NCCL leaves at a time-out;
`labs` is every program of a lab with every setting that uses a GPU; `gloo` and `nccl` are the jobs of
tests/jobs whose programs leave device and backend to their launcher, with CUDA tensors.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from msgspec import structs
from score.jobs import Job

from helpers.labs.all_cases import Case

from .rows import Task

PARTS = ("shared", "nccl", "dumps", "labs", "gloo")

FIRST = (
    *("barrier_for_one", "reduce_or_all_reduce", "sizes_one_passes", "ddp_sizes", "opposite_groups"),
    *("partial_group", "left_with_code", "killed", "stopped", "asleep", "waits_for_keys"),
    *("memory_empty", "asleep_five", "well_stragglers"),
)
"""Jobs that run before the others of `nccl` and `gloo`, two of them with nothing wrong."""

SHARED = ("barrier_for_one", "reduce_or_all_reduce", "killed", "well_stragglers")
DUMPED = ("reduce_or_all_reduce", "swallowed_error", "different_source")
"""Their calls meet on the device: what waits for a group to be made is in no record."""

DUPLICATE = "Duplicate GPU detected"
"""What NCCL says of two ranks of one host on one GPU (init.cc)."""

GENERATOR = "Expected a 'cuda' device type for generator but found 'cpu'"
"""What torch says in lab 04 on a GPU."""

APART = "nccl-apart"
"""NCCL with an NCCL_HOSTID for each rank, in the words of tests/jobs/on_gpu.py."""

GPU_NEEDS = frozenset(("one-gpu", "two-gpus", "gpu-per-rank"))

SECONDS = 60
"""How long a job may take, unless it says so itself: it has a CUDA context to make first."""

TIMEOUT = 15
"""Seconds until NCCL's watchdog ends a job and dumps, where dumps are wanted."""

_PLAIN = re.compile(r"torchrun --standalone --nproc-per-node=\d+ (--\S+ )*\w+\.py")
_OWN_DEVICE = re.compile(r"DataLoader|lightning|\bcpu\b")
_ONE_TO_ONE = re.compile(r"\.(send|recv|isend|irecv|batch_isend_irecv)\(|P2POp")


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


def neutral(job: Job, backend: str) -> bool:
    """True when a job's program can be given a device and a backend from outside.

    A DataLoader's generator is on the CPU. gloo has no `send` and `recv` for CUDA tensors.
    """
    text = job.program.read_text()
    return (
        not job.within
        and _PLAIN.match(job.command) is not None
        and 'init_process_group("gloo")' in text
        and not _OWN_DEVICE.search(text)
        and not (backend == "gloo" and _ONE_TO_ONE.search(text))
    )


def on_device(job: Job, device: str, backend: str) -> Job:
    """The same job, its program run by tests/jobs/on_gpu.py.

    Args:
        device: `cuda`, where each local rank takes a GPU, its own as far as there are enough, or `cpu`.
        backend: `gloo`, `nccl` or `APART`.
    """
    parts = shlex.split(job.command)
    at = next(index for index, part in enumerate(parts) if part.endswith(".py"))
    parts[at:at] = ["-m", "on_gpu", device, backend]
    limit = () if "--max-seconds" in job.options else ("--max-seconds", str(SECONDS))
    job = job if backend == "gloo" else job.with_nccl()
    return structs.replace(job, command=shlex.join(parts), options=(*job.options, *limit))


def world_size(job: Job) -> int:
    """How many ranks its torchrun starts."""
    found = re.search(r"--nproc-per-node=(\d+)", job.command)
    assert found is not None, job.command
    return int(found[1])


def plan(
    cases: Iterable[Case],
    jobs: Mapping[str, Job],
    gpus: int,
    lacking: Callable[[Case], str],
    nothing: str = "",
) -> list[Task]:
    """All runs, in the order in which they are made.

    Args:
        jobs: the collection.
        gpus: how many this machine has.
        lacking: what it lacks for a case, or "".
        nothing: why nothing can be run here; "" when something can.
    """
    others = [name for name in jobs if name not in FIRST]
    tasks = [
        *_shared(jobs),
        *_jobs("nccl", FIRST, jobs, gpus),
        *_dumps(jobs, gpus),
        *(
            Task("labs", case, _says(case), "" if nothing else lacking(case))
            for case in cases
            if uses_gpu(case)
        ),
        *_jobs("gloo", FIRST, jobs, gpus),
        *_jobs("nccl", others, jobs, gpus),
        *_jobs("gloo", others, jobs, gpus),
    ]
    return [replace(task, why_not=nothing or task.why_not) for task in tasks]


def _jobs(part: str, names: Iterable[str], jobs: Mapping[str, Job], gpus: int) -> Iterator[Task]:
    for name in names:
        if neutral(jobs[name], part) and not (part == "nccl" and gpus == 1 and name in SHARED):
            yield Task(part, on_device(jobs[name], "cuda", _backend(part, jobs[name], gpus)))


def _shared(jobs: Mapping[str, Job]) -> Iterator[Task]:
    refused = structs.replace(
        jobs[SHARED[0]],
        name=f"{SHARED[0]}, one host",
        outcome="error",
        cause="error",
        culprits=None,
        nccl=None,
    )
    yield Task("shared", on_device(_on_one(refused), "cuda", "nccl"), DUPLICATE)
    for name in SHARED:
        yield Task("shared", on_device(_on_one(jobs[name]), "cuda", APART))


def _on_one(job: Job) -> Job:
    return structs.replace(job, command=f"env CUDA_VISIBLE_DEVICES=0 {job.command}")


def _dumps(jobs: Mapping[str, Job], gpus: int) -> Iterator[Task]:
    for name in DUMPED:
        yield Task("dumps", on_device(jobs[name], "cuda", _backend("nccl", jobs[name], gpus)))


def _backend(part: str, job: Job, gpus: int) -> str:
    return APART if part == "nccl" and world_size(job) > gpus else part


def _says(case: Case) -> str:
    return GENERATOR if case.expected.cause == "device-mismatch" else ""


def picked(tasks: Sequence[Task], part: str | None, names: str) -> list[Task]:
    """The tasks of a part, or of all, that a list names: NAME or PART/NAME, with commas; "" for all."""
    wanted = {name for name in names.split(",") if name}
    return [
        task
        for task in tasks
        if part in (None, task.part)
        if not wanted or not wanted.isdisjoint((task.name, f"{task.part}/{task.name}"))
    ]
