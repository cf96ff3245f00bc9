"""Time and memory of `read`, against what a user would run instead on the same files."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from dumps import done, dump, entry

DUMPS, ENTRIES = (64, 1000), 2000
"""Ranks, and collectives that each of them has issued."""

FRAMES = [
    {"name": "wrapper", "filename": "/opt/site-packages/torch/c10d_logger.py", "line": 83},
    *({"name": f"f{line}", "filename": "/home/user/train.py", "line": line} for line in range(10)),
]

MEMORY_EVERY = 0.05
"""Seconds between two looks at the memory that a command takes."""

LOG = 2 << 30
"""Bytes of a log."""

STEP = "[default{rank}]:step {step} loss 0.6931 lr 0.0003 tokens/s 51234.5 mfu 0.41 mem 61.2 GiB\n"
LATE = (
    "[default1]:[rank1]:[E1123 12:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)


class Run(NamedTuple):
    """What a command has taken: seconds by the clock, and bytes of all its processes together."""

    seconds: float
    memory: int


def reading() -> Iterator[str]:
    """Dumps of all ranks against torch's own analyzer, and a long log against `grep -c`."""
    yield (
        f"Flight Recorder dumps of {ENTRIES} entries, in which one rank is in another operation than "
        "the others: `stuck-ranks read` and torch's own analyzer, `torchfrtrace`, from start to end."
    )
    yield ""
    yield "| dumps | size | read | torchfrtrace | read / torchfrtrace |"
    yield "|---|---|---|---|---|"
    for number in DUMPS:
        with tempfile.TemporaryDirectory() as name:
            size = _write_dumps(Path(name), number)
            ours, theirs = (
                _read(name, "collective-mismatch"),
                _run(_tool("torchfrtrace"), name, "-p", "rank_"),
            )
        yield (
            f"| {number} | {size / 1e6:.0f} MB | {ours.seconds:.1f} s | {theirs.seconds:.1f} s "
            f"| {ours.seconds / theirs.seconds:.2f} |"
        )
    yield ""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name, "job.log")
        _write_log(log)
        _run("cat", str(log))  # both find it in memory, as far as there is room
        ours, theirs = _read(str(log), "unknown"), _run("grep", "-c", "Watchdog caught", str(log))
    yield (
        f"A log of {LOG >> 30} GB whose last line is a watchdog's: {ours.seconds:.1f} s, "
        f"{LOG / 1e6 / ours.seconds:.0f} MB a second, {ours.seconds / theirs.seconds:.1f} times as long "
        f"as `grep -c`, in at most {ours.memory / 1e6:.0f} MB of memory."
    )


def _write_dumps(folder: Path, number: int) -> int:
    """One dump for each rank; returns how many bytes they have together."""
    before = [{**done("all_reduce", seq), "frames": FRAMES} for seq in range(1, ENTRIES)]
    for rank in range(number):
        op = "barrier" if rank == number // 3 else "all_reduce"
        last = {**entry(op, ENTRIES), "frames": FRAMES}
        data = pickle.dumps(dump(*before, last, ranks=range(number)), protocol=2)
        (folder / f"rank_{rank}").write_bytes(data)
    return sum(file.stat().st_size for file in folder.iterdir())


def _write_log(file: Path) -> None:
    block = "".join(STEP.format(rank=step % 8, step=step) for step in range(10_000)).encode()
    with file.open("wb") as log:
        for _ in range(LOG // len(block)):
            log.write(block)
        log.write(LATE.encode())


def _read(path: str, cause: str) -> Run:
    found, told = judged(path)
    assert told["cause"] == cause, told["summary"]
    return found


def judged(path: str) -> tuple[Run, dict[str, Any]]:
    """Run `read`; returns what it has taken, and its report."""
    with tempfile.NamedTemporaryFile() as report:
        found = _run(sys.executable, "-m", "helpers", "read", "--json", report.name, path)
        return found, json.loads(Path(report.name).read_text())


def _tool(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def _run(*command: str) -> Run:
    """Run a command; it may say anything, and end as it likes."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    began = time.monotonic()
    process = psutil.Popen(command, cwd=Path(__file__).resolve().parent.parent, **quiet)
    memory = 0
    while True:
        with suppress(psutil.TimeoutExpired):
            process.wait(MEMORY_EVERY)
            return Run(time.monotonic() - began, memory)
        memory = max(memory, _memory(process))


def _memory(process: psutil.Process) -> int:
    """Resident bytes of a process and of those that it has started."""
    total = 0
    with suppress(psutil.NoSuchProcess):
        for one in (process, *process.children(recursive=True)):
            total += one.memory_info().rss
    return total
