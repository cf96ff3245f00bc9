"""Has the hanging jobs of a collection leave what a user could collect, ends them, and reads it.

What is left of a job: a Flight Recorder dump of each rank that has a process group, py-spy dumps of each
process with values and as a text of stacks, and its log; a mixture of it is read. On a CPU nothing but
the program itself can write the first, so each process is given a thread that does it when it is asked
to; nothing of the instrument is in the job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil

from .attached import Attached, resting, workplace
from .jobs import Job
from .trial import ROOT

DUMPS = Path(__file__).parent / "dumps"
"""A folder for PYTHONPATH, with the thread that writes the Flight Recorder's dump."""

LIMIT, CALM, EVERY = 60.0, 1.0, 0.1
"""Seconds in which the ranks have to write their dumps (one that holds the interpreter's lock never
does), after which none has begun to, and between two looks."""


MIXTURES: Mapping[str, tuple[str, ...]] = {
    "everything": ("fr_rank_*", "*.json", "job.log"),
    "recorders and stacks": ("fr_rank_*", "*.txt", "job.log"),
    "stacks": ("*.txt", "job.log"),
    "recorders": ("fr_rank_*", "job.log"),
}
"""What somebody has collected -> patterns of its files."""


def run(job: Job, mixture: str = "everything") -> Attached:
    """Start a job that hangs, collect what it leaves, end it, and read that.

    Args:
        mixture: of what it leaves, one of `MIXTURES`.

    Raises:
        TimeoutError: it does not come to rest.
    """
    with workplace() as folder:
        left = folder / "left"
        left.mkdir()
        variables = {"PYTHONPATH": str(DUMPS), "TORCH_FR_BUFFER_SIZE": "2000", "DUMPS": str(left)}
        with resting(job, folder, variables, left / "job.log") as process:
            root = psutil.Process(process.pid)
            _stacks(left, [root, *root.children(recursive=True)])
            _flight_recorders(left)
        kept = folder / "kept"
        kept.mkdir()
        for pattern in MIXTURES[mixture]:
            for file in left.glob(pattern):
                file.rename(kept / file.name)
        return _read(job, kept, folder / "report.json")


def _stacks(left: Path, processes: Iterable[psutil.Process]) -> None:
    """A dump of each process that py-spy can read, named after the rank that its environment tells."""
    tool = Path(sys.executable).with_name("py-spy")
    for process in processes:
        name = f"process-{process.pid}"
        with suppress(psutil.Error):
            rank = process.environ().get("RANK") or process.environ().get("LOCAL_RANK")
            name = f"pyspy_rank{rank}_{process.pid}" if rank is not None else name
        for ending, more in ((".json", ("--json", "--locals")), (".txt", ())):
            words = [tool, "dump", *more, "--nonblocking", "--pid", str(process.pid)]
            done = subprocess.run(words, capture_output=True, check=False)
            if done.returncode == 0:
                (left / f"{name}{ending}").write_bytes(done.stdout)


def _flight_recorders(left: Path) -> None:
    """A dump of each rank that can write one; torch takes seconds to find the names of all frames."""
    (left / "wanted").touch()
    end, calm = time.monotonic() + LIMIT, time.monotonic() + CALM
    while time.monotonic() < min(end, calm):
        if any(left.glob("*.part")):
            calm = time.monotonic() + CALM
        time.sleep(EVERY)


def _read(job: Job, left: Path, file: Path) -> Attached:
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "helpers", "read", "--json", str(file), str(left)],
        cwd=ROOT,
        env=os.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    report = json.loads(file.read_text()) if file.exists() else {}
    return Attached(job, report, done.returncode, time.monotonic() - begun)
