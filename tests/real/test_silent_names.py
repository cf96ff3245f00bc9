"""A job whose code claims to be in a pipe, a device, or on a server that does not answer."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from repository import ROOT
from waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

PROGRAM = """\
import sys, time
code = compile("open('ready', 'w').close()\\nwhile True: time.sleep(1)", sys.argv[1], "exec")
exec(code, {"time": time})
"""


@contextmanager
def fifo(folder: Path) -> Iterator[str]:
    os.mkfifo(folder / "fifo")
    yield str(folder / "fifo")


@contextmanager
def without_end(folder: Path) -> Iterator[str]:
    yield "/dev/zero"


@contextmanager
def dead_server(folder: Path) -> Iterator[str]:
    """A name in a file system whose server never says a word: `stat` waits in the kernel."""
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        pytest.skip("only root mounts a file system")
    mount = folder / "mount"
    mount.mkdir()
    server, libc = os.open("/dev/fuse", os.O_RDWR), ctypes.CDLL(None, use_errno=True)
    options = f"fd={server},rootmode=40000,user_id=0,group_id=0"
    if libc.mount(b"nobody", bytes(mount), b"fuse", 0, options.encode()) != 0:
        os.close(server)
        pytest.skip("mounting a file system is not allowed here")
    try:
        yield str(mount / "package" / "train.py")
    finally:
        os.close(server)
        detach = 2
        libc.umount2(bytes(mount), detach)


Place = Callable[[Path], "contextmanager[str]"]


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts processes of Python, which end with the test."""
    with ExitStack() as at_end:

        def start(*words: str) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, *words],
                cwd=tmp_path,
                env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            at_end.callback(process.communicate)
            at_end.callback(process.kill)
            return process

        yield start


@pytest.mark.parametrize(
    ("place", "verb"),
    [
        (fifo, "diagnose"),
        *(
            pytest.param(place, verb, marks=pytest.mark.nightly)
            for place, verb in (
                (fifo, "attach"),
                (without_end, "diagnose"),
                (without_end, "attach"),
                (dead_server, "diagnose"),
                (dead_server, "attach"),
            )
        ),
    ],
)
def test_it_is_reported_as_any_other(
    place: Place, verb: str, tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    options = ("-m", "helpers", verb, "--json", "report.json")
    with place(tmp_path) as name:
        if verb == "diagnose":
            tool = started(*options, "--max-seconds", "3", "--", sys.executable, "job.py", name)
        else:
            job = started("job.py", name)
            until(lambda: (tmp_path / "ready").exists())
            tool = started(*options, "--patience", "2", str(job.pid))
        tool.communicate(timeout=60)
    report = json.loads((tmp_path / "report.json").read_text())
    file = os.path.relpath(name, tmp_path) if name.startswith(str(tmp_path)) else name
    assert report["ranks"][0]["where"] == {"file": file, "line": 2, "function": "<module>"}
    assert tool.returncode in (2, 3)


@pytest.mark.nightly
@pytest.mark.parametrize("place", [fifo, dead_server])
def test_ctrl_c_ends_it(
    place: Place, tmp_path: Path, started: Callable[..., subprocess.Popen[str]]
) -> None:
    (tmp_path / "job.py").write_text(PROGRAM)
    with place(tmp_path) as name:
        tool = started("-m", "helpers", "diagnose", "--", sys.executable, "job.py", name)
        until(lambda: (tmp_path / "ready").exists())
        assert tool.stderr is not None
        assert "running" in tool.stderr.readline()
        tool.send_signal(signal.SIGINT)
        tool.communicate(timeout=60)
    assert tool.returncode == 130
