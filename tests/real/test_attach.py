"""`attach`: a job that runs without a beacon, found from any of its processes and left as it is.

The jobs here have a torch of their own: two functions that block, in files named as torch's. What is
tested is how a running job is found and read from outside; the one real torch is at the end.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from contract import violations
from waiting import until

from helpers.cli.main import main
from helpers.launch.processes import free_port
from helpers.observe import pyspy as dumps
from helpers.session import Session

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

SCRIPT = str(Path(sys.executable).with_name("stuck-ranks"))

C10D = """\
import threading
LOCK = threading.Lock()
LOCK.acquire()
def barrier(group=None):
    LOCK.acquire()
def all_reduce(tensor, group=None):
    LOCK.acquire()
"""
LAUNCHES = """\
import os, subprocess, sys
children = []
for rank in sys.argv[2:]:
    env = {**os.environ, "RANK": rank, "LOCAL_RANK": rank}
    children.append(subprocess.Popen([sys.executable, sys.argv[1]], env=env))
for child in children:
    child.wait()
"""
HEAD = "import os, sys, time\nfrom torch.distributed.distributed_c10d import all_reduce, barrier\n"
READY = "open(os.environ['RANK'] + '.ready', 'w').close()\n"
MISMATCH = HEAD + READY + "barrier() if os.environ['RANK'] == '0' else all_reduce([1])\n"
ASLEEP = HEAD + READY + "barrier() if os.environ['RANK'] == '0' else time.sleep(600)\n"
HOLDS_LOCK = HEAD + (
    "import ctypes, threading\n"
    f"threading.Thread(target=time.sleep, args=[600]).start()\n{READY}"
    "barrier() if os.environ['RANK'] == '0' else ctypes.PyDLL(None).sleep(600)\n"
)
UNKNOWN_GROUP = HEAD + (
    "class ProcessGroup: pass\n"
    "def step(group):\n    all_reduce([1], group=group)\n"
    f"{READY}step(ProcessGroup()) if os.environ['RANK'] == '0' else barrier()\n"
)
PARTS = HEAD + (
    "def step(rank, token):\n"
    "    if rank == 1:\n"
    "        barrier()\n"
    "    all_reduce([1])\n"
    f"{READY}step(int(os.environ['RANK']), 'abc')\n"
)
WORKS = HEAD + READY + "while True: sum(range(1000))\n"


class Box:
    """A folder in which jobs are started that nobody watches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = str(free_port())
        self.started: list[subprocess.Popen[bytes]] = []
        package = folder / "torch" / "distributed"
        package.mkdir(parents=True)
        (package / "distributed_c10d.py").write_text(C10D)
        (package.parent / "__init__.py").write_text("")
        (package / "__init__.py").write_text("")

    def start(self, *command: str, **env: str) -> subprocess.Popen[bytes]:
        """Start a command; its processes end with the test."""
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "MASTER_ADDR": "127.0.0.1", **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        return process

    def ranks(self, text: str, *, wanted: int = 2, world: int = 2) -> subprocess.Popen[bytes]:
        """Start a launcher with `wanted` ranks of a world of `world`, and wait for these."""
        (self.folder / "train.py").write_text(text)
        (self.folder / "torchrun").write_text(LAUNCHES)
        numbers = [str(rank) for rank in range(wanted)]
        launcher = self.start(
            *(sys.executable, "torchrun", "train.py", *numbers),
            WORLD_SIZE=str(world),
            MASTER_PORT=self.port,
        )
        until(lambda: all((self.folder / f"{rank}.ready").exists() for rank in numbers))
        return launcher

    def attach(self, pid: int, *options: str) -> tuple[int, dict[str, Any], str]:
        """(exit code, report, what stands on stderr)."""
        file = self.folder / "report.json"
        done = subprocess.run(
            [SCRIPT, "attach", "--json", str(file), *options, str(pid)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        report = json.loads(file.read_text()) if file.exists() else {}
        assert not report or violations(report) == []
        return done.returncode, report, done.stderr


def tree(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    root = psutil.Process(process.pid)
    return [root, *root.children(recursive=True)]


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    found = Box(tmp_path)
    yield found
    for process in found.started:
        below: list[psutil.Process] = []
        with suppress(psutil.Error):
            below = tree(process)
        for one in below:
            with suppress(psutil.Error):
                one.kill()
        process.wait()


def test_py_spy_is_there() -> None:
    assert dumps.find_tool() is not None, "py-spy is in the dependencies of this project"


@pytest.mark.parametrize("asked", ["launcher", pytest.param("rank 1", marks=pytest.mark.nightly)])
def test_different_calls_are_proved_from_any_process_and_the_job_goes_on(box: Box, asked: str) -> None:
    launcher = box.ranks(MISMATCH)
    before = tree(launcher)
    pid = launcher.pid if asked == "launcher" else before[-1].pid
    page = box.folder / "report.html"
    code, report, _ = box.attach(pid, "--html", str(page))
    assert (code, report["outcome"], report["proved"]) == (2, "hang", True)
    assert (report["cause"], report["culprits"]) == ("collective-mismatch", [0, 1])
    assert "<svg" in page.read_text(), "it has the picture of what was seen"
    assert report["job"]["launcher"] == "torchrun"
    assert report["job"]["world_size"] == 2
    assert [rank["where"]["line"] for rank in report["ranks"]] == [4, 4]
    assert [rank["waits"][0]["op"] for rank in report["ranks"]] == ["barrier", "all_reduce"]
    assert all(rank["waits"][0]["seq"] is None for rank in report["ranks"])
    assert any("sequence numbers" in sentence for sentence in report["not_seen"])
    assert report["seconds"]["stall"] is None
    after = tree(launcher)
    assert after == before
    assert all(one.status() in ("sleeping", "idle") for one in after)


def test_the_statement_at_which_ranks_parted_and_its_values(box: Box) -> None:
    """Local variables, which py-spy reads; what else a condition may name is said not to be seen."""
    launcher = box.ranks(PARTS)
    _, report, _ = box.attach(launcher.pid)
    parting = report["parting"]
    assert (parting["kind"], parting["where"]["line"], parting["source"]) == ("if", 4, "if rank == 1:")
    assert parting["branches"] == [
        {"label": "in its body", "ranks": [1]},
        {"label": "after it", "ranks": [0]},
    ]
    assert (parting["values"], parting["differ"]) == ({"rank": {"0": "0", "1": "1"}}, ["rank"])
    assert report["applies"] == [1]
    assert any("global variables" in sentence for sentence in report["not_seen"])


def test_a_source_that_was_edited_since_the_start_is_not_quoted(box: Box) -> None:
    launcher = box.ranks(PARTS)
    program = box.folder / "train.py"
    later = time.time() + 60
    os.utime(program, (later, later))
    _, report, _ = box.attach(launcher.pid)
    assert report["parting"] is None
    assert report["cause"] == "collective-mismatch"
    assert any("train.py was changed after the job was started" in one for one in report["not_seen"])


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("program", "where"),
    [(ASLEEP, "asleep at train.py:4"), (HOLDS_LOCK, "holds the interpreter lock at train.py:6")],
    ids=["asleep", "holds the interpreter lock"],
)
def test_a_rank_that_is_elsewhere_is_a_suspicion_only(box: Box, program: str, where: str) -> None:
    launcher = box.ranks(program)
    code, report, _ = box.attach(launcher.pid, "--patience", "2")
    assert (code, report["outcome"], report["proved"]) == (2, "hang", False)
    assert (report["cause"], report["culprits"]) == ("missing-rank", [1])
    assert where in report["summary"]


@pytest.mark.nightly
def test_a_group_that_cannot_be_told_proves_nothing(box: Box) -> None:
    launcher = box.ranks(UNKNOWN_GROUP)
    code, report, _ = box.attach(launcher.pid, "--patience", "2")
    assert (code, report["outcome"], report["proved"]) == (2, "hang", False)
    assert report["cause"] == "collective-mismatch"
    assert report["ranks"][0]["waits"][0]["group"] is None


@pytest.mark.nightly
def test_a_rank_that_works_is_running(box: Box) -> None:
    launcher = box.ranks(WORKS, wanted=1, world=1)
    code, report, _ = box.attach(launcher.pid)
    assert (code, report["outcome"], report["culprits"]) == (3, "running", [])


def test_a_stopped_rank_is_a_suspicion(box: Box) -> None:
    launcher = box.ranks(ASLEEP)
    stopped = next(one for one in tree(launcher) if one.environ().get("RANK") == "1")
    stopped.send_signal(signal.SIGSTOP)
    code, report, _ = box.attach(launcher.pid, "--patience", "2")
    assert (code, report["proved"], report["cause"], report["culprits"]) == (
        2,
        False,
        "missing-rank",
        [1],
    )
    assert stopped.status() == psutil.STATUS_STOPPED


@pytest.mark.nightly
def test_a_rank_that_is_no_more(box: Box) -> None:
    launcher = box.ranks(MISMATCH)
    gone = next(one for one in tree(launcher) if one.environ().get("RANK") == "1")
    launcher.send_signal(signal.SIGSTOP)  # a launcher that does not notice
    gone.kill()
    code, report, _ = box.attach(launcher.pid)
    assert (code, report["proved"], report["culprits"]) == (2, True, [1])
    assert report["cause"] in ("rank-exited", "rank-crashed")


@pytest.mark.nightly
def test_ranks_that_a_shell_has_started_are_found_by_their_store(box: Box) -> None:
    (box.folder / "train.py").write_text(MISMATCH)
    common = {"WORLD_SIZE": "2", "MASTER_PORT": box.port}
    ranks = [box.start(sys.executable, "train.py", RANK=str(rank), **common) for rank in range(2)]
    until(lambda: all((box.folder / f"{rank}.ready").exists() for rank in range(2)))
    code, report, _ = box.attach(ranks[1].pid)
    assert (code, report["cause"]) == (2, "collective-mismatch")
    assert [rank["pid"] for rank in report["ranks"]] == [one.pid for one in ranks]


@pytest.mark.nightly
def test_a_program_of_one_process_is_rank_0(box: Box) -> None:
    (box.folder / "job.py").write_text("import time\nopen('ready', 'w').close()\ntime.sleep(600)\n")
    job = box.start("sh", "-c", f"{shlex.quote(sys.executable)} job.py; true")
    until(lambda: (box.folder / "ready").exists())
    code, report, _ = box.attach(job.pid, "--patience", "2")
    assert code in (2, 3)
    assert [(rank["rank"], rank["state"]) for rank in report["ranks"]] == [(0, "running")]
    assert report["ranks"][0]["where"] == {"file": "job.py", "line": 3, "function": "<module>"}


@pytest.mark.nightly
def test_without_py_spy_it_says_so(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = box.ranks(ASLEEP)
    monkeypatch.setattr(dumps, "find_tool", lambda: None)
    report = Session.attach(launcher.pid, patience=2).start().wait(120)
    assert report.verdict.proved is False
    assert any("py-spy" in s and "not installed" in s for s in report.snapshot.not_seen)
    assert [view.rank for view in report.snapshot.ranks] == [0, 1]


def test_a_job_that_ends_while_it_is_watched(box: Box) -> None:
    (box.folder / "job.py").write_text("import sys\nopen('ready', 'w').close()\nsys.stdin.read()\n")
    job = subprocess.Popen([sys.executable, "job.py"], cwd=box.folder, stdin=subprocess.PIPE)
    box.started.append(job)
    until(lambda: (box.folder / "ready").exists())
    watched = Session.attach(job.pid)
    watched.start()
    until(lambda: watched.snapshot is not None)
    assert job.stdin is not None
    job.stdin.close()
    job.wait()
    report = watched.wait(120)
    assert "ended" in report.verdict.summary


BAD = [
    ("99999999", "there is no process 99999999"),
    ("0", "not a process id"),
    ("-5", "not a process id"),
    ("x", "not a process id"),
    (str(os.getpid()), "this command itself"),
]


@pytest.mark.parametrize(("pid", "says"), BAD, ids=[row[1][:20] for row in BAD])
def test_what_is_no_job(pid: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", pid]) == 64
    error = capsys.readouterr().err
    assert says in error
    assert len(error.strip().splitlines()) == 1


def test_without_a_pid_it_is_the_one_job_of_this_user(
    box: Box, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the processes that this test has started; others of the machine may belong to jobs, too."""

    def started() -> Iterator[psutil.Process]:
        return (process for job in box.started for process in tree(job))

    monkeypatch.setattr(psutil, "process_iter", started)
    box.start(sys.executable, "-c", "import time; time.sleep(600)")
    assert main(["attach"]) == 64
    assert "you run no job here" in capsys.readouterr().err

    looked_at: list[str] = []
    monkeypatch.setattr("helpers.cli.watch.watch", lambda session, *_: looked_at.append(session) or 0)
    launcher = box.ranks(MISMATCH)
    assert main(["attach"]) == 0
    assert f"looks at {launcher.pid} " in capsys.readouterr().err and len(looked_at) == 1

    alone = box.start(sys.executable, "train.py", "7", RANK="7", MASTER_PORT="1")
    until(lambda: psutil.Process(alone.pid).environ().get("RANK") == "7")
    assert main(["attach"]) == 64
    listed = capsys.readouterr().err
    assert "2 jobs" in listed
    assert [int(line.split()[0]) for line in listed.splitlines()[1:]] == [launcher.pid, alone.pid]


def test_a_process_that_runs_no_python(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["attach", str(box.start("sleep", "60").pid)]) == 64
    assert "runs no Python" in capsys.readouterr().err


def test_a_process_that_has_ended(box: Box, capsys: pytest.CaptureFixture[str]) -> None:
    ended = box.start("true")
    until(lambda: psutil.Process(ended.pid).status() == psutil.STATUS_ZOMBIE)
    assert main(["attach", str(ended.pid)]) == 64
    assert "has ended" in capsys.readouterr().err


def test_a_process_that_may_not_be_looked_at(
    box: Box, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def environ(self: psutil.Process) -> dict[str, str]:
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "environ", environ)
    assert main(["attach", str(box.start("sleep", "60").pid)]) == 64
    assert "may not be looked at" in capsys.readouterr().err


REAL = """\
import torch, torch.distributed as dist
def main():
    dist.init_process_group("gloo")
    open(f"{dist.get_rank()}.ready", "w").close()
    if dist.get_rank() == 0:
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(2))
main()
"""


def test_the_real_torch(box: Box) -> None:
    """Names, the wrapper around a collective and its arguments are as the installed torch has them."""
    (box.folder / "real").mkdir()
    (box.folder / "real" / "train.py").write_text(REAL)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    run = [torchrun, "--standalone", "--nproc-per-node", "2", "real/train.py"]
    launcher = box.start(*run, PYTHONPATH="")
    until(lambda: all((box.folder / f"{rank}.ready").exists() for rank in range(2)), 120)
    code, report, _ = box.attach(launcher.pid)
    assert (code, report["cause"], report["proved"]) == (2, "collective-mismatch", True)
    assert [rank["waits"][0]["group"] for rank in report["ranks"]] == ["default", "default"]
    assert [rank["where"]["line"] for rank in report["ranks"]] == [6, 8]


SERVED = """\
import torch, torch.distributed as dist
from torch.distributed.debug import start_debug_server
def main():
    dist.init_process_group("gloo")
    start_debug_server(port=0)
    rank = dist.get_rank()
    open(f"{rank}.ready", "w").close()
    dist.all_reduce(torch.ones(3 + rank))
    dist.barrier()
main()
"""


@pytest.mark.nightly
def test_what_the_debug_server_of_torch_tells(box: Box) -> None:
    """Sizes, which no stack tells: gloo has let rank 0 go on to the next call."""
    (box.folder / "served").mkdir()
    (box.folder / "served" / "train.py").write_text(SERVED)
    # The page that the server draws needs `tabulate`; nobody looks at it here.
    (box.folder / "served" / "tabulate.py").write_text("def tabulate(*rows, **options): return ''")
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    run = [torchrun, "--standalone", "--nproc-per-node", "2", "served/train.py"]
    launcher = box.start(*run, PYTHONPATH="", TORCH_FR_BUFFER_SIZE="100")
    until(lambda: all((box.folder / f"{rank}.ready").exists() for rank in range(2)), 120)
    report: dict[str, Any] = {}

    def stands() -> bool:
        """Rank 1 may be on its way to its call when it is first looked at."""
        nonlocal report
        _, report, _ = box.attach(launcher.pid)
        assert report["cause"] in ("shape-mismatch", "none"), report["cause"]
        return bool(report["proved"]) and report["outcome"] == "hang"

    until(stands, 120)
    assert report["cause"] == "shape-mismatch"
    assert [rank["waits"][0]["seq"] for rank in report["ranks"]] == [2, 1]
    assert not any("sequence numbers" in sentence for sentence in report["not_seen"])


JOBS = Path(__file__).parents[1] / "jobs"


@pytest.mark.nightly
@pytest.mark.skipif(shutil.which("cc") is None, reason="the stand-in device is compiled with cc")
@pytest.mark.parametrize("way", ["spin", "yield", "block"])
@pytest.mark.parametrize(
    ("program", "line"),
    [("device_one_more.py", 14), ("device_left.py", 11), ("well_device_long_kernel.py", 11)],
)
def test_what_holds_a_device_is_not_known_from_outside(
    program: str, line: int, way: str, box: Box
) -> None:
    """Nothing tells from there what was enqueued: the job is said to run, and where ranks wait."""
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    run = [torchrun, "--standalone", "--nproc-per-node", "2", str(JOBS / program)]
    launcher = box.start(*run, PYTHONPATH="", STAND_IN_WAITS=way)
    said = ""

    def waits() -> bool:
        nonlocal said
        code, report, _ = box.attach(launcher.pid)
        assert (code, report["outcome"], report["cause"]) == (3, "running", "none")
        said = report["summary"]
        return "waiting for the device" in said

    until(waits, 120)
    assert f"{program}:{line}" in said
