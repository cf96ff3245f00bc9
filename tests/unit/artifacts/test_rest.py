"""In which system call a thread rests, by its innermost line."""

from __future__ import annotations

from pathlib import Path

import pytest
from on_disk import sources

from helpers.artifacts.rest import native_call
from helpers.beacon.record import Site, Thread

SITE_PACKAGES = "/env/lib/python3.11/site-packages"

LINES = {
    "time.sleep(5)": "nanosleep",
    "fcntl.flock(file, fcntl.LOCK_EX)": "flock",
    "fcntl.lockf(file, fcntl.LOCK_EX)": "fcntl",
    "os.waitpid(pid, 0)": "wait4",
    "answer = input()": "read",
    "handle.wait()": "futex",
    "store.wait(['key'])": "recvfrom",
    "table.execute('BEGIN')": "nanosleep",
    "train(loss.item())": "",
    "lock.acquire(), time.sleep(1)": "",
}
"""A line of the user's -> the system call; empty where it may be any."""

FILES = {
    f"{SITE_PACKAGES}/torch/utils/file_baton.py": "nanosleep",
    f"{SITE_PACKAGES}/torch/autograd/graph.py": "futex",
    "/usr/lib/python3.11/subprocess.py": "wait4",
    "/usr/lib/python3.11/socket.py": "recvfrom",
    "/usr/lib/python3.11/threading.py": "futex",
    "/usr/lib/python3.11/json/decoder.py": "",
}
"""A file of a library -> the system call."""

MADE = "from torch.distributed import TCPStore\nstore = TCPStore('a', 1)\ntable = sqlite3.connect('b')\n"


def thread(file: str, line: int, *, user: bool) -> Thread:
    site: Site | None = None
    if user:
        site = {"file": file, "position": [line], "names": {}, "strings": {}, "limits": {}}
    return {
        "name": "MainThread",
        "main": True,
        "since": 0.0,
        "frames": [(file, line, "step", user)],
        "call": None,
        "native": None,
        "site": site,
    }


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_user(line: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(MADE + line + "\n")
    assert native_call(thread(str(program), 4, user=True), sources())["call"] == LINES[line]


@pytest.mark.parametrize("file", FILES)
def test_a_file_of_a_library(file: str) -> None:
    assert native_call(thread(file, 4, user=False), sources())["call"] == FILES[file]


def test_a_source_that_is_not_here() -> None:
    assert native_call(thread("/elsewhere/train.py", 4, user=True), sources())["call"] == ""
