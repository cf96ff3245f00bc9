"""Who holds the other end of a pipe, as the kernel tells."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.observe import pipes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")

ME = os.getpid()
SAYS_WHEN = "print(flush=True); input()"


def test_a_pipe_belongs_to_who_has_its_other_end() -> None:
    reading, writing = os.pipe()
    target = os.readlink(f"/proc/self/fd/{reading}")
    words = [sys.executable, "-S", "-c", SAYS_WHEN]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[writing]
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            assert pipes.other_ends(ME, target, reads=True) == (other.pid,)
            assert pipes.other_ends(ME, target, reads=False) == (ME,), "nobody else has it"
            assert pipes.other_ends(other.pid, target, reads=False) == (ME,)
        finally:
            other.kill()
    os.close(reading)
    os.close(writing)


def test_a_fifo(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os; os.open({str(path)!r}, os.O_RDWR); {SAYS_WHEN}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert pipes.other_ends(ME, str(path), reads=True) == (other.pid,)
        assert pipes.other_ends(ME, str(path), reads=False) == (other.pid,)
        other.kill()


@pytest.mark.parametrize("target", ["/dev/null", "/nowhere", "socket:[4711]", "pipe:[1]", ""])
def test_what_is_no_pipe_that_anybody_holds(target: str) -> None:
    assert pipes.other_ends(ME, target, reads=True) is None
