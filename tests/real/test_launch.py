"""Real processes under a real guardian: what they inherit, and that nothing of them is left."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest
import waiting
from repository import ROOT

from helpers.launch import guardian, run_folder
from helpers.launch import launch as launch_module
from helpers.launch.launch import Launch, LaunchError, launch
from helpers.launch.leftovers import reap_leftovers
from helpers.launch.processes import CLOCK, is_alive
from helpers.session import Session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

Start = Callable[..., Launch]

until = partial(waiting.until, seconds=10)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for the runs of one test."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return tmp_path / f"stuck-ranks-{os.getuid()}"


@pytest.fixture
def start() -> Iterator[Start]:
    """`launch`, with every run closed at the end of the test."""
    runs = []

    def begin(*command: str, **options: object) -> Launch:
        runs.append(launch(command, **options))  # type: ignore[arg-type]
        return runs[-1]

    yield begin
    for run in runs:
        run.close()
        assert left(run.run_id) == []
        assert not run.folder.exists()


def left(run_id: str) -> list[int]:
    """Living processes with that run id in their environment."""
    mark = f"STUCK_RANKS_ID={run_id}".encode()
    found = []
    for pid in psutil.pids():
        try:
            if mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                found.append(pid)
        except OSError:
            continue
    return found


PRINTED: dict[str, bytes] = {}
"""What has been read of each run so far."""


def log(run: Launch) -> str:
    with suppress(ValueError):  # it is closed
        for _, data in run.output.read(0):
            PRINTED[run.run_id] = PRINTED.get(run.run_id, b"") + data
    return PRINTED.get(run.run_id, b"").decode(errors="surrogateescape")


def output(run: Launch) -> str:
    """All that a short command writes."""
    until(lambda: run.poll() is not None)
    return log(run)


def says(run: Launch, word: str) -> None:
    until(lambda: word in log(run))


PYTHON = (sys.executable, "-I", "-S", "-c")  # without the beacon, which has its own tests
DAEMON = "import os, time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  "
IGNORES = "trap '' TERM; echo ignores; while :; do sleep 9; done"
HOLDS_GIL = (
    "import ctypes, signal; signal.signal(signal.SIGTERM, print); print('holds', flush=True); "
    "ctypes.PyDLL(None).sleep(99)"
)


# --- a command that ends by itself


@pytest.mark.real
@pytest.mark.parametrize(
    ("script", "status"),
    [("exit 0", 0), ("exit 3", 3 << 8), ("kill -SEGV $$", signal.SIGSEGV)],
)
def test_the_status_of_the_command(start: Start, script: str, status: int) -> None:
    before = time.time()
    run = start("sh", "-c", script)
    assert before <= run.started <= time.time()
    until(lambda: run.poll() is not None)
    assert os.waitstatus_to_exitcode(run.poll() or 0) == os.waitstatus_to_exitcode(status)
    assert run.reaped()[run.pid] == run.poll()
    assert run.processes() == []


@pytest.mark.real
def test_standard_error_goes_to_the_same_file_in_order(start: Start) -> None:
    run = start("sh", "-c", "echo one; echo two >&2; echo three")
    assert output(run) == "one\ntwo\nthree\n"


# --- a command that cannot start


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ([], "no command is given"),
        ([""], "no command is given"),
        (["no-such-program"], "command not found: no-such-program"),
        (["./no-such-program"], "command not found: ./no-such-program"),
        (["./notes.txt"], "./notes.txt is not executable"),
        (["notes.txt"], "notes.txt is not executable"),
        (["./folder"], "./folder is not executable"),
        (["sh", "a\0b"], "a command and its environment cannot hold a NUL character"),
    ],
)
def test_wrong_usage_is_known_before_anything_starts(
    command: list[str], sentence: str, tmp_path: Path, place: Path
) -> None:
    (tmp_path / "notes.txt").write_text("words")
    (tmp_path / "folder").mkdir()
    with pytest.raises(LaunchError) as caught:
        launch(command, cwd=tmp_path, env={"PATH": f"{os.defpath}:."})
    assert str(caught.value) == sentence
    assert not place.exists()


def test_a_missing_folder(tmp_path: Path, place: Path) -> None:
    with pytest.raises(LaunchError, match=r"^no such folder: .*gone$"):
        launch(["true"], cwd=tmp_path / "gone")
    assert not place.exists()


@pytest.mark.real
@pytest.mark.parametrize(
    ("text", "reason"),
    [("no program", "Exec format error"), ("#!/no/such/sh\n", "No such file or directory")],
)
def test_a_file_that_the_system_cannot_run(text: str, reason: str, tmp_path: Path, place: Path) -> None:
    program = tmp_path / "program"
    program.write_text(text)
    program.chmod(0o755)
    with pytest.raises(LaunchError) as caught:
        launch([str(program)])
    assert str(caught.value) == f"{program} cannot be started: {reason}"
    assert list(place.iterdir()) == []


@pytest.mark.real
def test_a_guardian_that_cannot_start(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr(launch_module, "GUARDIAN", place / "guardian.py")
    with pytest.raises(LaunchError, match=r"^the guardian .* did not start: .*'guardian'"):
        launch(["true"])
    assert list(place.iterdir()) == []


# --- what the command inherits


@pytest.mark.real
def test_a_program_is_found_in_the_given_path_and_runs_in_the_given_folder(
    start: Start, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "hello"
    program.write_text('#!/bin/sh\necho "$0"; pwd -P\n')
    program.chmod(0o755)
    by_path = start("hello", cwd=tmp_path, env={"PATH": f"bin:{os.defpath}"})
    assert output(by_path) == f"{program}\n{tmp_path.resolve()}\n"
    by_name = start("bin/hello", cwd=tmp_path)
    assert output(by_name) == f"bin/hello\n{tmp_path.resolve()}\n"


@pytest.mark.real
def test_the_environment_is_the_given_one_and_the_run_s_own(start: Start) -> None:
    given = {"PATH": os.defpath, "WORD": "caf\udce9 \u00fc", "PYTHONPATH": "/old"}
    run = start("env", "-0", env=given)
    seen = dict(entry.split("=", 1) for entry in output(run).rstrip("\0").split("\0"))
    path = str(run.folder / "path")
    assert seen == given | {
        "STUCK_RANKS_RUN": str(run.folder),
        "STUCK_RANKS_ID": run.run_id,
        "STUCK_RANKS_PATH": path,
        "STUCK_RANKS_GUARDIAN": str(run.guardian_pid),
        "PYTHONPATH": f"{path}:/old",
    }
    without = start("sh", "-c", "echo $PYTHONPATH", env={"PATH": os.defpath, "PYTHONPATH": ""})
    assert output(without) == f"{without.folder / 'path'}\n"


@pytest.mark.real
def test_umask_and_limits_are_the_caller_s(start: Start) -> None:
    old = os.umask(0o027)
    try:
        run = start("sh", "-c", "umask; ulimit -n; ulimit -c")
    finally:
        os.umask(old)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert output(run).split()[:2] == ["0027", str(files)]
    assert stat.S_IMODE(run.folder.stat().st_mode) == 0o700


@pytest.mark.real
def test_the_command_has_no_file_but_its_standard_streams(start: Start) -> None:
    stray = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(stray, True)
    try:
        run = start("sh", "-c", "echo ready; read line")  # a program that starts opens its libraries
        says(run, "ready")
        assert sorted(os.listdir(f"/proc/{run.pid}/fd")) == ["0", "1", "2"]
    finally:
        os.close(stray)


@pytest.mark.real
@pytest.mark.parametrize("stdin", ["silent", "inherit"])
def test_signals_are_those_of_a_normally_started_program(start: Start, stdin: str) -> None:
    """From a command line, what it ignores and blocks itself is the job's, too; from a notebook, not."""
    # Of the C library's own two, 32 and 33, its posix_spawn leaves another trace than its fork.
    question = ["grep", "-E", "Sig(Blk|Ign|Cgt)", "/proc/self/status"]
    normal = subprocess.run(question, capture_output=True, text=True, check=True).stdout

    def without(status: str) -> list[int]:
        return [int(line.split()[1], 16) & ~(3 << 31) for line in status.splitlines()]

    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM})
    try:
        if stdin == "inherit":
            normal = subprocess.run(question, capture_output=True, text=True, check=True).stdout
        run = start(*question, stdin=stdin)
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert without(output(run)) == without(normal)


@pytest.mark.real
def test_the_command_has_a_process_group_of_its_own(start: Start) -> None:
    run = start("cat")
    assert os.getpgid(run.pid) == run.pid
    assert os.getsid(run.pid) == run.guardian_pid


@pytest.mark.real
def test_silent_input_neither_delivers_nor_ends(start: Start) -> None:
    script = "import select; print('ready', select.select([0], [], [], 0.3)[0], flush=True); "
    run = start(*PYTHON, script + "input()")
    says(run, "ready []")
    assert run.poll() is None


@pytest.mark.real
@pytest.mark.parametrize("terminal", [False, True])
def test_inherited_input_is_the_caller_s(terminal: bool, tmp_path: Path) -> None:
    far, near = os.openpty() if terminal else os.pipe()[::-1]
    script = (
        "import sys, time; from helpers.launch.launch import launch\n"
        "run = launch([sys.executable, '-I', '-c', 'print(input())'], stdin='inherit')\n"
        "while run.poll() is None: time.sleep(0.01)\n"
        "print(*(data.decode() for _, data in run.output.read(0))); run.close()"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=near, stdout=subprocess.PIPE) as owner:
        os.write(far, b"hello from the caller\n")
        assert owner.communicate(timeout=60)[0].strip() == b"hello from the caller"
    os.close(far)
    os.close(near)


# --- stop


@pytest.mark.real
def test_stop_ends_what_resists(start: Start) -> None:
    """One job of everything that a plain SIGTERM to the command leaves behind."""
    parts = {
        "ignores": ["sh", "-c", IGNORES],
        "holds": [*PYTHON, HOLDS_GIL],
        "daemon": [*PYTHON, DAEMON + "print('daemon', flush=True); time.sleep(99)"],
        "stopped": ["sh", "-c", "echo stopped; kill -STOP $$"],
        "cleared": ["env", "-i", "setsid", "sh", "-c", "echo cleared; exec sleep 99"],
    }
    script = f"import subprocess\nfor c in {list(parts.values())}: subprocess.Popen(c)\ninput()"
    run = start(*PYTHON, script)
    for word in parts:
        says(run, word)
    until(lambda: any(p.status() == psutil.STATUS_STOPPED for p in run.processes()))
    everything = run.processes()
    assert len(everything) >= len(parts) + 1
    assert set(left(run.run_id)) <= {process.pid for process in everything}
    run.stop()
    assert left(run.run_id) == []
    assert not any(process.is_running() for process in everything)
    assert run.processes() == []
    assert run.poll() == signal.SIGTERM
    run.stop()


@pytest.mark.real
def test_programs_clean_up_on_sigterm(start: Start) -> None:
    script = (
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('cleaned'), sys.exit(7)))\n"
        "print('ready', flush=True); signal.pause()"
    )
    run = start(*PYTHON, script)
    says(run, "ready")
    run.stop()
    assert "cleaned" in log(run)
    assert run.poll() == 7 << 8


@pytest.mark.real
def test_an_orphan_is_seen_and_its_status_known(start: Start) -> None:
    script = DAEMON + "print(os.getpid(), flush=True); open(os.environ['GATE']).read(); os._exit(9)"
    gate = Path(tempfile.gettempdir()) / "gate"
    os.mkfifo(gate)
    run = start(*PYTHON, script, env=os.environ | {"GATE": str(gate)})
    says(run, "\n")
    orphan = int(log(run))
    until(lambda: [process.pid for process in run.processes()] == [orphan])
    assert psutil.Process(orphan).ppid() == run.guardian_pid
    gate.write_text("go")
    until(lambda: orphan in run.reaped())
    assert os.waitstatus_to_exitcode(run.reaped()[orphan]) == 9


@pytest.mark.real
def test_a_process_that_only_carries_the_run_s_id(start: Start) -> None:
    run = start("cat")
    mark = {"STUCK_RANKS_ID": run.run_id}
    words = ["sh", "-c", "echo ready; read line"]  # while it starts, its environment reads as empty
    with subprocess.Popen(
        words, env=os.environ | mark, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as escaped:
        assert escaped.stdout is not None
        escaped.stdout.readline()
        assert {process.pid for process in run.processes()} == {run.pid, escaped.pid}
        run.stop()
        assert escaped.wait() == -signal.SIGTERM


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_no_signal_ends_the_guardian_and_one_that_it_gets_too_is_not_passed_on(
    start: Start, number: signal.Signals
) -> None:
    script = f"import signal\nfor n in ({number}, {signal.SIGUSR2}): signal.signal(n, print)\n"
    run = start(*PYTHON[:-1], "-uc", script + "print('ready')\nwhile True: signal.pause()")
    says(run, "ready")
    os.kill(run.guardian_pid, number)
    run.signal(number, time.monotonic())
    run.signal(signal.SIGUSR2, time.monotonic())
    says(run, f"{signal.SIGUSR2.value} ")
    assert log(run).split()[:2] == ["ready", str(signal.SIGUSR2.value)]
    run.signal(number, time.monotonic() + guardian.SAME)
    says(run, f"\n{number.value} ")
    assert run.poll() is None


@pytest.mark.real
@pytest.mark.parametrize("asked", [True, False])
def test_without_its_guardian_the_job_ends_too(start: Start, asked: bool) -> None:
    run = start("sh", "-c", f"setsid sh -c {IGNORES!r}")
    says(run, "ignores")
    os.kill(run.guardian_pid, signal.SIGKILL)
    if asked:
        run.stop()
        assert left(run.run_id) == []
    until(lambda: left(run.run_id) == [])
    until(lambda: run.poll() == signal.SIGKILL)


@pytest.mark.real
def test_a_guardian_that_does_not_answer(start: Start) -> None:
    run = start("cat")
    os.kill(run.guardian_pid, signal.SIGSTOP)
    run.stop()
    assert left(run.run_id) == []
    assert not psutil.pid_exists(run.guardian_pid)


@pytest.mark.real
def test_no_status_is_lost_and_nothing_blocks_while_nobody_reads(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    os.mkfifo(tmp_path / "output" / "job")
    script = (
        "import os\n"
        "for i in range(300):\n"
        "  child = os.fork()\n"
        "  if not child: os._exit(i % 7 if os.fork() == 0 else 0)\n"
        "  os.waitpid(child, 0)"
    )
    command = [os.fsencode(word) for word in (*PYTHON, script)]
    job = {"path": command[0], "command": command, "env": {}, "silent": True, "mark": b"NO=1"}
    lifeline, stop = os.pipe()
    events, report = os.pipe()
    fcntl.fcntl(events, fcntl.F_SETPIPE_SZ, 4096)
    arguments = [str(lifeline), str(report), str(tmp_path), str(os.getpid())]
    with (
        os.fdopen(events, "rb") as stream,
        subprocess.Popen(
            [*PYTHON, launch_module.START_GUARDIAN, guardian.__file__, *arguments],
            pass_fds=(lifeline, report),
            start_new_session=True,
        ),
    ):
        os.close(lifeline)
        os.close(report)
        os.write(stop, guardian.as_line(job | {"group": None, "default": []}))
        started = guardian.from_line(stream.readline())["started"]
        until(lambda: not psutil.pid_exists(started))
        os.write(stop, guardian.as_line({"stop": True}))
        *rest, last = map(guardian.from_line, stream)
        os.close(stop)
    assert last == {"empty": True}
    assert sum(event["reaped"] == started for event in rest) == 1
    statuses = [event["status"] for event in rest if event["reaped"] != started]
    assert sorted(statuses) == sorted((i % 7) << 8 for i in range(300))


# --- an owner that dies, and an interrupt

OWNER = """
import os, sys
from helpers.launch.launch import launch
run = launch(["sh", "-c", "setsid sh -c '{job}' & echo ready; sleep 99"])
while b"ready" not in b"".join(data for _, data in run.output.read(1)):
    pass
copy = os.fork() if {fork} else None
if copy == 0:
    sys.stdin.read()
    os._exit(0)
print(run.folder, run.guardian_pid, copy, flush=True)
sys.stdin.read()
"""


class Owner:
    """A process that owns a run and waits; `fork`: with a copy of itself that outlives it."""

    def __init__(self, fork: bool = False) -> None:
        script = OWNER.format(job="trap : TERM; sleep 99 & wait; sleep 99", fork=fork)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        folder, guardian_pid, _ = self.process.stdout.readline().split()
        self.folder = Path(folder)
        self.guardian = psutil.Process(int(guardian_pid))
        until(lambda: len(self.guardian.children(recursive=True)) == 4)
        self.job = self.guardian.children(recursive=True)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def nothing_left(self) -> bool:
        return not any(map(is_alive, [self.guardian, *self.job]))

    def close(self) -> None:
        """Let the copy go as well."""
        self.kill()
        self.process.communicate()


@pytest.fixture
def own() -> Iterator[Callable[..., Owner]]:
    owners = []

    def begin(**options: bool) -> Owner:
        owners.append(Owner(**options))
        return owners[-1]

    yield begin
    for owner in owners:
        owner.close()
        until(owner.nothing_left)


@pytest.mark.real
@pytest.mark.parametrize("fork", [False, True], ids=["alone", "with a copy"])
def test_nothing_is_left_when_the_owner_is_killed(own: Callable[..., Owner], fork: bool) -> None:
    owner = own(fork=fork)
    owner.kill()
    until(owner.nothing_left)
    assert left(owner.folder.name) == []
    assert not owner.folder.exists()


@pytest.mark.real
def test_leftovers_of_a_dead_owner_are_reaped(own: Callable[..., Owner]) -> None:
    """The guardian dies while its owner cannot see it, then the owner dies."""
    owner, other = own(), own()
    assert reap_leftovers() == 0
    owner.process.send_signal(signal.SIGSTOP)
    owner.guardian.kill()
    owner.kill()
    assert len(left(owner.folder.name)) == len(owner.job)
    assert reap_leftovers() == 1
    assert left(owner.folder.name) == []
    assert not owner.folder.exists()
    assert len(left(other.folder.name)) == len(other.job)
    assert other.folder.exists()


@pytest.mark.real
def test_the_next_run_removes_the_folder_of_a_lab_whose_process_was_killed(place: Path) -> None:
    script = (
        "import os, signal; from helpers.labs.lab import RunFolder\n"
        "folder = RunFolder(); print(folder.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    new = place / "job-that-is-being-made"
    new.mkdir()
    assert Path(done.stdout.strip()) in place.iterdir()
    assert Session(["true"]).start().wait(60).verdict.outcome == "ok"
    assert list(place.iterdir()) == [new]


@pytest.mark.real
def test_a_run_that_reaps_is_part_of_no_leftover(start: Start) -> None:
    """It was started from a shell of a run whose own instrument was killed."""
    run = start("cat")
    record = json.loads((run.folder / "run.json").read_text())
    run_folder.write_record(run.folder, record | {"owner": [run.pid, 0.0], "processes": []})
    script = "from helpers.launch.leftovers import reap_leftovers; print(reap_leftovers())"
    inside = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"STUCK_RANKS_ID": run.run_id},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (inside.returncode, inside.stdout) == (0, "0\n")
    assert [process.pid for process in run.processes()] == [run.pid]
    assert reap_leftovers([run.pid]) == 0
    assert reap_leftovers() == 1


@pytest.mark.real
def test_a_leftover_guardian_is_found_by_pid_and_start(own: Callable[..., Owner]) -> None:
    owner = own()
    owner.guardian.suspend()
    owner.kill()
    record = json.loads((owner.folder / "run.json").read_text())
    guardian = owner.guardian
    since_boot = pytest.approx(guardian.create_time() - psutil.boot_time(), abs=CLOCK)
    assert record["processes"][0] == [guardian.pid, since_boot]
    assert reap_leftovers() == 1
    assert owner.nothing_left()


@pytest.mark.real
def test_a_run_on_another_machine_is_no_leftover(start: Start) -> None:
    run = start("true")
    gone = {"owner": [run.pid, 0.0], "processes": []}
    here = run_folder.place()
    run_folder.write_record(run.folder, gone | {"place": ["elsewhere", *here[1:]]})
    assert reap_leftovers() == 0
    run_folder.write_record(run.folder, gone | {"place": here})
    assert reap_leftovers() == 1
    assert not run.folder.exists()


@pytest.mark.real
@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_run_is_no_leftover_because_the_clock_is_set(
    start: Start, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start("cat")
    boot = psutil.boot_time()
    with monkeypatch.context() as patch:
        patch.setattr("psutil._pslinux.boot_time", lambda: boot + seconds)
        assert reap_leftovers() == 0
    assert [process.pid for process in run.processes()] == [run.pid]


@pytest.mark.real
def test_a_run_from_before_the_machine_was_started_anew_has_no_processes(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its owner and its processes have the numbers, and the age, of others that live now."""
    run, other = start("cat"), start("cat")
    record = json.loads((run.folder / "run.json").read_text())
    old = run.folder.with_name("job-old")
    old.mkdir()
    processes = json.loads((other.folder / "run.json").read_text())["processes"]
    run_folder.write_record(old, record | {"boot": "another", "processes": processes})
    assert reap_leftovers() == 1
    assert not old.exists()
    assert [process.pid for process in other.processes()] == [other.pid]


@pytest.mark.real
@pytest.mark.parametrize(
    ("where", "name"),
    [
        (run_folder, "write_record"),
        (run_folder, "_write"),
        (subprocess.Popen, "_get_devnull"),
        (launch_module, "as_line"),
        (launch_module, "from_line"),
        (threading.Thread, "start"),
    ],
)
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_while_it_starts_leaves_nothing(
    where: object, name: str, after: bool, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = getattr(where, name)

    def interrupted(*args: object, **options: object) -> None:
        if after:
            original(*args, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(where, name, interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch(["sleep", "99"])
    monkeypatch.undo()
    assert list(place.iterdir()) == []
    assert psutil.Process().children(recursive=True) == []


# --- the run directory


@pytest.mark.real
def test_the_run_directory(start: Start, place: Path) -> None:
    old = os.umask(0)
    try:
        run = start("cat", kind_of_run="lab")
    finally:
        os.umask(old)
    assert run.folder == place / run.run_id
    assert run.run_id.startswith("lab-")
    for folder in (place, run.folder):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((run.folder / "output" / "job").stat().st_mode) == 0o600
    beacon = ROOT / "helpers" / "beacon"
    package = run.folder / "path" / "stuck_ranks_beacon"
    assert {file.name for file in package.glob("*.py")} == {file.name for file in beacon.glob("*.py")}
    assert (run.folder / "path" / "sitecustomize.py").exists()
    assert (run.folder / "records").is_dir()
    record = json.loads((run.folder / "run.json").read_text())
    assert record["command"] == ["cat"]
    assert record["owner"][0] == os.getpid()
    assert [pid for pid, _ in record["processes"]] == [run.guardian_pid, run.pid]


@pytest.mark.real
def test_close_removes_the_directory(start: Start) -> None:
    run = start("cat")
    run.close()
    assert left(run.run_id) == []
    run.close()
    assert not run.folder.exists()


# --- where there is no /proc


@pytest.mark.skipif(shutil.which("ps") is None, reason="needs ps")
def test_ps_gives_the_same_parents() -> None:
    by_ps = guardian._parents_by_ps()
    assert by_ps[os.getpid()] == os.getppid()
    assert guardian.parents()[os.getpid()] == os.getppid()


def test_a_job_that_fills_the_disk_at_once_goes_on(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = run_folder.write_record

    def on_full_disk(folder: Path, record: dict[str, object]) -> None:
        if record["processes"]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(folder, record)

    monkeypatch.setattr(run_folder, "write_record", on_full_disk)
    run = start("sh", "-c", "exit 7")
    until(lambda: run.poll() is not None)
    assert os.waitstatus_to_exitcode(run.poll() or 0) == 7
