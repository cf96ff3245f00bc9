"""The process table of a job keeps what it has seen of a process as long as that lives."""

from __future__ import annotations

import os
import socket
import sys
import time

import psutil
import pytest

from helpers.observe.process_table import Table
from helpers.observe.process_view import job_time

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets the clock that Linux tells psutil")


@pytest.mark.parametrize("seconds", [-3600.0, 1.5, 3600.0])
def test_a_clock_that_is_set_loses_nothing(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    table, here = Table(), os.getpid()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        table.look([psutil.Process()], {})
    row = table.rows[here]
    started = job_time(row, 0.0)
    assert address in row.all_sockets
    clock, boot = time.time, psutil.boot_time()
    monkeypatch.setattr(time, "time", lambda: clock() + seconds)
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + seconds)
    assert psutil.boot_time() == boot + seconds
    table.look([psutil.Process()], {})
    assert table.rows[here] is row
    assert job_time(row, 0.0) == started


def test_a_process_that_was_only_told_of_is_known_in_full_once_it_is_seen() -> None:
    table, here = Table(), os.getpid()
    table.ensure(here, 1, tuple(psutil.Process().cmdline()), time.monotonic())
    assert table.rows[here].environment is None
    table.look([psutil.Process()], {})
    assert table.rows[here].parent == os.getppid()
    assert table.rows[here].environment == psutil.Process().environ()


def test_a_process_with_the_number_of_one_that_has_ended_is_another_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, here = Table(), os.getpid()
    first = psutil.Process()
    table.look([first], {})
    before = table.rows[here]
    tick = psutil._pslinux.Process.create_time
    monkeypatch.setattr(
        "psutil._pslinux.Process.create_time", lambda *args, **words: tick(*args, **words) + 0.5
    )
    table.look([psutil.Process()], {})
    assert table.rows[here] is not before
