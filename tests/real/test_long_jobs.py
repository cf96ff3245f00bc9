"""However much a job prints, what it costs in disk and memory stays bounded."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from helpers.launch.output_pipes import CAPACITY
from helpers.observe.logs import ALL, OWN
from helpers.session import Event, Sample, Session

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,  # tests/unit/observe/test_logs.py and test_relay.py hold the rest
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]

MB = 1 << 20

PRINTS = """
import os
line = "x" * 1023
for process in range(7):
    if os.fork() == 0:
        break
for number in range(500):
    print("\\n".join([f"{number}", *[line] * 1024]))
"""
"""Four gigabytes by eight processes, a megabyte at a time."""


def test_a_job_of_eight_processes_that_print_four_gigabytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = Session([sys.executable, "-c", PRINTS])
    disk, memory, printing = [0], [psutil.Process().memory_info().rss], [0]

    def listen(event: Event) -> None:
        if isinstance(event, Sample):
            files = [path.lstat() for path in tmp_path.rglob("*") if path.exists()]
            disk.append(sum(file.st_blocks * 512 for file in files))
            memory.append(psutil.Process().memory_info().rss)
            printing.append(len(list(tmp_path.glob("stuck-ranks-*/job-*/output/[0-9]*"))))

    session.subscribe(listen)
    assert session.start().wait(250).verdict.outcome == "ok"
    assert max(printing) == 8
    assert max(disk) < 2 * MB
    assert max(memory) - memory[0] < 128 * MB
    assert session.logs.tail("job")[-1] == "x" * 1023


def test_what_64_processes_print_takes_no_more_than_promised() -> None:
    """No disk; of the kernel's memory what 64 pipes hold; of ours the same for any number."""
    assert 64 * CAPACITY <= 64 * MB
    assert 64 * OWN <= ALL <= 64 * MB
