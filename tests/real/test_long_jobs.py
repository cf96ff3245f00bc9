"""However much a job prints, what it costs in disk and memory stays bounded."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from helpers.session import Event, Sample, Session

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,  # tests/unit/observe/test_logs.py holds the rest
    pytest.mark.skipif(sys.platform != "linux", reason="gives disk space back by punching holes"),
]

MB = 1 << 20

PRINTS = """
line = "x" * 1023
for number in range(10_000):
    print("\\n".join([f"{number}", *[line] * 1024]))
"""
"""Ten gigabytes, a megabyte at a time."""


def test_a_job_that_prints_ten_gigabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session = Session([sys.executable, "-c", PRINTS])
    disk, memory = [0], [psutil.Process().memory_info().rss]

    def listen(event: Event) -> None:
        if isinstance(event, Sample):
            files = [path.stat() for path in tmp_path.rglob("*.log")]
            disk.append(sum(file.st_blocks * 512 for file in files))
            memory.append(psutil.Process().memory_info().rss)

    session.subscribe(listen)
    assert session.start().wait(250).verdict.outcome == "ok"
    assert max(disk) < 256 * MB
    assert max(memory) - memory[0] < 256 * MB
    assert session.logs.tail("job")[-1] == "x" * 1023
