"""The command line as scripts depend on it: exit codes, the JSON, interrupts, strange surroundings."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from command_line import Box, Done, python, read_until, running
from contract import violations
from repository import ROOT
from waiting import until

from helpers.cli import watch
from helpers.cli.main import main

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="the guardian and signals of Linux"),
]

SCRIPT = Path(sys.executable).with_name("stuck-ranks")
EXPORT = 'export PYTHONPATH="$STUCK_RANKS_PATH:$PYTHONPATH"'

# A rank that asks for a lock which it holds: a hang that is proved, for which torch is not needed. What
# it prints first says that it is there; when SIGUSR1 releases the lock it ends well.
BLOCKED = (
    "import os, signal, threading\n"
    "lock = threading.Lock()\n"
    "signal.signal(signal.SIGUSR1, lambda *_: lock.release())\n"
    "print('blocks', os.getpid(), flush=True)\n"
    "with lock:\n"
    "    with lock:\n"
    "        print('continued', flush=True)\n"
    "        os._exit(0)\n"
)
ONE_RANK = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
OUTPUT = "import sys, time\nprint('here', flush=True)\nprint('err', file=sys.stderr, flush=True)\n"

# Two children that resist: one ignores SIGTERM, one is stopped, both in sessions of their own. Their
# pids and that of the job itself go to the file `pids` once all are ready.
RESISTS = """\
import os, subprocess, sys, time
ignores = "trap '' TERM; echo ready; while :; do sleep 9; done"
stops = "echo ready; kill -STOP $$; sleep 99"
pids = [os.getpid()]
for script in (ignores, stops):
    child = subprocess.Popen(["setsid", "sh", "-c", script], stdout=subprocess.PIPE)
    child.stdout.readline()
    pids.append(child.pid)
open("pids.new", "w").write(" ".join(map(str, pids)))
os.rename("pids.new", "pids")
time.sleep(600)
"""


def assert_gone(pids: Sequence[int]) -> None:
    """All of these processes end. That they do so in 2 s is for the score to say."""
    alive = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            alive.append(psutil.Process(pid))
    deadline = time.monotonic() + 60
    for process in alive:
        with suppress(psutil.NoSuchProcess):
            while process.status() != psutil.STATUS_ZOMBIE:
                assert time.monotonic() < deadline, f"{process} is left"
                time.sleep(0.01)


# --- wrong usage: 64, nothing started, no JSON


def test_wrong_usage_starts_nothing(box: Box) -> None:
    done = box.run(words=[sys.executable, "-m", "helpers", "diagnose", "touch", "ran"])
    assert (done.code, done.out, len(done.err.splitlines())) == (64, "", 1)
    assert list(box.folder.iterdir()) == box.runs() == []


def test_a_file_that_is_no_regular_file_is_never_replaced(box: Box) -> None:
    """As root, putting a file in the place of /dev/null would break the machine."""
    device = box.folder / "null"
    with suppress(OSError):  # not everywhere allowed
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    if not device.exists():
        pytest.skip("making a device is not allowed here")
    before = device.stat()
    done = box.run(words=[sys.executable, "-m", "helpers", "diagnose", "--json", "null", "--", "true"])
    assert done.code in (0, 64), done.err
    after = device.stat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)


# --- exit codes and the JSON


def test_a_command_that_ends_well_at_once(box: Box) -> None:
    done = box.run("true")
    assert (done.code, done.verdict) == (0, ("ok", "none", []))
    report = done.report
    assert report["interrupted"] is False
    assert report["job"]["command"] == ["true"] and report["job"]["exit_code"] == 0
    assert report["where"] is None and report["ranks"] == []
    assert report["summary"] in done.out
    assert box.runs() == []


def test_a_command_that_fails_at_once(box: Box) -> None:
    done = box.run("false")
    assert (done.code, done.verdict) == (1, ("error", "unknown", []))
    assert done.report["job"]["exit_code"] == 1


def test_a_command_that_a_signal_ends(box: Box) -> None:
    done = box.run("sh", "-c", "kill -SEGV $$")
    assert (done.code, done.report["outcome"]) == (1, "error")
    assert (done.report["job"]["exit_code"], done.report["job"]["signal"]) == (None, 11)


@pytest.mark.parametrize(
    ("script", "text", "says", "line"),
    [
        ("no_such.py", None, "No such file", None),
        ("broken.py", "import os\n\ndef f(:\n", "SyntaxError", 3),
        ("data.py", "\x89PNG\x00\x01 this is a picture", "Error", None),
        ("indented.py", "import os\n  x = 1\n", "IndentationError", 2),
    ],
)
def test_a_script_that_python_cannot_run(
    box: Box, script: str, text: str | None, says: str, line: int | None
) -> None:
    if text is not None:
        box.write(script, text)
    done = box.run(*python(script))
    assert (done.code, done.verdict) == (1, ("error", "error", []))
    report = done.report
    assert report["ranks"] == []
    assert says in report["summary"]
    if line is not None:
        assert (report["where"]["file"], report["where"]["line"]) == (script, line)


def test_a_module_that_does_not_exist(box: Box) -> None:
    done = box.run(*python("-m", "no_such_module"))
    assert (done.code, done.verdict) == (1, ("error", "error", []))
    assert done.report["ranks"] == [] and "no_such_module" in done.report["summary"]


def test_an_exception_with_its_line(box: Box) -> None:
    box.write("job.py", "def load():\n    raise ValueError('no data')\n\n\nload()\n")
    done = box.run(*python("job.py"))
    assert (done.code, done.report["outcome"], done.report["cause"]) == (1, "error", "error")
    assert done.report["where"] == {"file": "job.py", "line": 2, "function": "load"}
    assert "ValueError: no data" in done.report["summary"]


def test_a_proved_hang_is_2(box: Box) -> None:
    box.write("job.py", BLOCKED)
    done = box.run(*python("job.py"), env=ONE_RANK)
    assert (done.code, done.verdict) == (2, ("hang", "missing-rank", [0]))
    report = done.report
    assert report["proved"] is True
    assert report["where"] == {"file": "job.py", "line": 6, "function": "<module>"}
    assert [(rank["rank"], rank["state"]) for rank in report["ranks"]] == [(0, "waiting")]


def test_still_running_at_max_seconds_is_3(box: Box) -> None:
    """The limit leaves the interpreter time to start, even where the machine is busy."""
    box.write("job.py", OUTPUT + "while True: pass\n")
    done = box.run(*python("job.py"), options=["--max-seconds", "2.5"])
    assert (done.code, done.report["outcome"]) == (3, "running")
    assert done.report["seconds"]["verdict"] >= 2.5
    assert done.report["job"]["exit_code"] is None


@pytest.mark.nightly
def test_a_suspicion_becomes_the_outcome_at_max_seconds(box: Box) -> None:
    box.write("job.py", SLEEPS)
    options = ["--max-seconds", "6", "--patience", "1"]
    done = box.run(*python("job.py"), options=options, env=ONE_RANK)
    assert (done.code, done.verdict) == (2, ("hang", "missing-rank", [0]))
    report = done.report
    assert report["proved"] is False and report["interrupted"] is False
    assert (report["where"]["file"], report["where"]["line"]) == ("job.py", 2)
    assert report["seconds"]["verdict"] >= 6


def test_stop_on_suspicion_does_not_wait_for_max_seconds(box: Box) -> None:
    box.write("job.py", SLEEPS)
    options = ["--stop-on-suspicion", "--patience", "2"]
    done = box.run(*python("job.py"), options=options, env=ONE_RANK)
    assert (done.code, done.verdict) == (2, ("hang", "missing-rank", [0]))
    assert done.report["proved"] is False


@pytest.mark.nightly
def test_a_suspicion_alone_ends_nothing(box: Box) -> None:
    box.write("job.py", "import time\ntime.sleep(4)\n")
    done = box.run(*python("job.py"), options=["--patience", "1"], env=ONE_RANK)
    assert (done.code, done.report["outcome"]) == (0, "ok")


def test_the_command_after_the_dashes_is_never_parsed(box: Box) -> None:
    done = box.run(*python("-c", "import sys; print(sys.argv[1:])", "--json", "x", "--", "--help"))
    assert done.code == 0
    assert "['--json', 'x', '--', '--help']" in done.err
    assert sorted(box.folder.iterdir()) == []


def test_the_job_s_output_is_relayed_with_a_prefix(box: Box) -> None:
    box.write("job.py", OUTPUT)
    done = box.run(*python("job.py"))
    assert any(line.startswith("[") and line.endswith("] here") for line in done.err.splitlines())
    assert any(line.startswith("[") and line.endswith("] err") for line in done.err.splitlines())
    assert "here" not in done.out


@pytest.mark.parametrize("program", ["true", "false"])
def test_json_on_stdout_is_all_that_is_there(box: Box, program: str) -> None:
    words = [sys.executable, "-m", "helpers", "diagnose", "--json", "-", "--", program]
    done = box.run(words=words)
    report = json.loads(done.out)
    assert violations(report) == []
    assert done.code == (0 if program == "true" else 1)
    assert report["summary"] in done.err


def test_the_json_replaces_an_old_one_and_keeps_nothing_beside_it(box: Box) -> None:
    box.file.write_text("old")
    assert box.run("true").report["outcome"] == "ok"
    assert sorted(path.name for path in box.file.parent.iterdir()) == ["job", "report.json", "temp"]


def test_the_installed_command_is_the_same(box: Box) -> None:
    words = [str(SCRIPT), "diagnose", "--json", str(box.file), "--", "false"]
    assert box.run(words=words).verdict == ("error", "unknown", [])


@pytest.mark.parametrize("gone", ["stdout", "stderr"])
def test_a_reader_that_has_gone_costs_no_verdict(box: Box, gone: str) -> None:
    """`stuck-ranks ... | head -1` and the like."""
    reader, writer = os.pipe()
    os.close(reader)
    other = {"stdout": "stderr", "stderr": "stdout"}[gone]
    box.write("job.py", OUTPUT * 3 + "raise ValueError\n")
    done = subprocess.run(
        box.words(python("job.py"), ()),
        cwd=box.folder,
        env=box.env,
        stdin=subprocess.DEVNULL,
        check=False,
        timeout=60,
        **{gone: writer, other: subprocess.DEVNULL},
    )
    os.close(writer)
    assert json.loads(box.file.read_text())["outcome"] == "error"
    assert done.returncode == 1


# --- Ctrl-C, kill


def start_resisting(box: Box) -> tuple[subprocess.Popen[str], list[int]]:
    box.write("job.py", RESISTS)
    process = box.start(box.words(python("job.py"), ()))
    until(lambda: (box.folder / "pids").exists())
    return process, [int(pid) for pid in (box.folder / "pids").read_text().split()]


def interrupted(box: Box, process: subprocess.Popen[str]) -> Done:
    """Ctrl-C now; what the contract says of it holds."""
    process.send_signal(signal.SIGINT)
    done = box.finish(process)
    assert done.code == 130, done.err
    assert done.report["interrupted"] is True
    assert box.runs() == []
    return done


def test_ctrl_c_before_anything_has_started(box: Box) -> None:
    """There is no report then, since there is no run; nothing is left all the same."""
    python, *words = box.words(["sleep", "600"], ())
    process = box.start([python, "-X", "importtime", *words])
    read_until(process, "argparse")  # in Python's own start, before that, the exit code is Python's
    process.send_signal(signal.SIGINT)
    done = box.finish(process)
    assert done.code in (130, -signal.SIGINT)
    assert box.runs() == []


@pytest.mark.parametrize("attempt", range(3))
def test_ctrl_c_while_the_command_starts(box: Box, attempt: int) -> None:
    process = box.start(box.words(["sleep", "600"], ()))
    until(lambda: box.runs())
    time.sleep(attempt * 0.02)  # not a wait: three moments of the start
    assert interrupted(box, process).report["job"]["command"] == ["sleep", "600"]


def test_ctrl_c_while_the_job_imports(box: Box) -> None:
    slow = "for _ in range(20): time.sleep(0.05)\n"
    box.write("heavy.py", f"import time\n{slow}print('importing', flush=True)\ntime.sleep(600)\n")
    box.write("job.py", "import heavy\n")
    process = box.start(box.words(python("job.py"), ()))
    read_until(process, "] importing")
    report = interrupted(box, process).report
    assert (report["outcome"], report["cause"]) == ("error", "error")
    assert "KeyboardInterrupt" in report["summary"]
    assert report["where"] == {"file": "heavy.py", "line": 4, "function": "<module>"}


def test_ctrl_c_in_a_hang_that_nothing_proves(box: Box) -> None:
    process, pids = start_resisting(box)
    read_until(process, "running")
    report = interrupted(box, process).report
    assert (report["outcome"], report["culprits"]) == ("error", [0])
    assert "KeyboardInterrupt" in report["summary"]
    assert_gone(pids)


def test_ctrl_c_twice(box: Box) -> None:
    process, pids = start_resisting(box)
    process.send_signal(signal.SIGINT)
    until(lambda: not psutil.pid_exists(pids[0]))  # the end of the run has begun
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    done = box.finish(process)
    assert done.code == 130
    assert done.report["interrupted"] is True
    assert_gone(pids)
    assert box.runs() == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_when_the_command_line_is_ended_nothing_is_left(
    box: Box, number: int, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    process, pids = start_resisting(box)
    process.send_signal(number)
    if number == signal.SIGKILL:
        process.wait(60)
        assert_gone(pids)
    else:
        assert box.finish(process).code != 0
        assert_gone(pids)
    assert running(processes_left()) == []


def test_when_the_command_line_is_killed_while_the_command_starts_nothing_is_left(
    box: Box, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    process = box.start(box.words(["sleep", "600"], ()))
    until(lambda: box.runs())
    process.kill()
    process.wait(60)
    assert running(processes_left()) == []


# --- surroundings in which the beacon cannot ride, or rides in a strange place


FAILS_LATE = "import time\ntime.sleep(4)\nraise ValueError('late')\n"
SLEEPS = "import time\ntime.sleep(600)\n"


BEHIND = "stuck-ranks diagnose -- COMMAND"


@pytest.mark.parametrize(
    ("wrapper", "cure"),
    [
        pytest.param(["env", "-u", "PYTHONPATH"], EXPORT, id="unset"),
        pytest.param(["env", "-i"], BEHIND, id="cleared", marks=pytest.mark.nightly),
    ],
)
def test_a_wrapper_that_drops_the_path(box: Box, wrapper: list[str], cure: str) -> None:
    """The error is read from what the job printed; what could not be seen is said, with the cure."""
    box.write("job.py", FAILS_LATE)
    done = box.run(*wrapper, *python("job.py"))
    report = done.report
    assert (done.code, report["outcome"], report["cause"]) == (1, "error", "error")
    assert "ValueError: late" in report["summary"]
    assert report["where"] == {"file": "job.py", "line": 3, "function": "<module>"}
    assert any(cure in sentence for sentence in report["not_seen"]), report["not_seen"]
    assert cure in " ".join(done.out.split())


@pytest.mark.nightly
def test_an_instrument_behind_such_a_wrapper_sees_all(box: Box) -> None:
    box.write("job.py", FAILS_LATE)
    inside = [f"{name}={os.environ[name]}" for name in ("PATH", "STUCK_RANKS_TEST_SESSION")]
    place = f"TMPDIR={box.env['TMPDIR']}"
    report = box.run(words=["env", "-i", *inside, place, *box.words(python("job.py"), [])]).report
    assert report["not_seen"] == []
    assert report["ranks"][0]["where"]["line"] == 3


def test_a_process_without_a_beacon_is_named_at_once_and_read_from_outside(box: Box) -> None:
    box.write("job.py", SLEEPS)
    done = box.run(*python("-I", "job.py"), options=["--max-seconds", "6"])
    assert any("runs with -I: no beacon" in sentence for sentence in done.report["not_seen"])
    assert any("read from outside, by py-spy" in sentence for sentence in done.report["not_seen"])
    (rank,) = done.report["ranks"]
    assert rank["rank"] == 0
    assert rank["where"] == {"file": "job.py", "line": 2, "function": "<module>"}


@pytest.mark.nightly
def test_the_advice_for_such_a_wrapper_works(box: Box) -> None:
    box.write("job.py", FAILS_LATE)
    inner = f"unset PYTHONPATH; {EXPORT}; exec {shlex.join(python('job.py'))}"
    report = box.run("sh", "-c", inner).report
    assert report["not_seen"] == []
    assert report["ranks"][0]["where"]["line"] == 3


@pytest.mark.nightly
@pytest.mark.parametrize("flag", ["-I", "-E", "-S", "-IS"])
def test_a_python_that_takes_no_beacon_in(box: Box, flag: str) -> None:
    box.write("job.py", FAILS_LATE)
    done = box.run(*python(flag, "job.py"))
    report = done.report
    assert (done.code, report["outcome"], report["cause"]) == (1, "error", "error")
    assert report["where"]["line"] == 3
    assert any(f"runs with {flag}: no beacon" in sentence for sentence in report["not_seen"])


@pytest.mark.nightly
def test_without_a_beacon_it_still_runs_to_the_limit(box: Box) -> None:
    box.write("job.py", SLEEPS)
    done = box.run("env", "-u", "PYTHONPATH", *python("job.py"), options=["--max-seconds", "6"])
    assert done.code in (2, 3)
    assert any(EXPORT in sentence for sentence in done.report["not_seen"])


def test_a_job_with_a_package_called_helpers(box: Box) -> None:
    """The installed package has a name of its own, and imports nothing by the name of the checkout."""
    box.write("helpers/__init__.py", "NAME = 'theirs'\n")
    box.write("job.py", "import helpers\nprint('name', helpers.NAME)\n")
    del box.env["PYTHONPATH"]
    for front in ([str(SCRIPT)], [sys.executable, "-m", "stuck_ranks"]):
        words = [*front, "diagnose", "--json", str(box.file), "--", *python("job.py")]
        done = box.run(words=words)
        assert done.code == 0, done.err
        assert "] name theirs" in done.err
        box.file.unlink()


def test_a_job_with_modules_named_like_those_the_instrument_uses(box: Box) -> None:
    box.write("rich.py", "raise RuntimeError('this is the job\\'s own rich')\n")
    box.write("psutil.py", "NAME = 'theirs'\n")
    box.write("job.py", "import psutil\nprint('name', psutil.NAME)\n")
    del box.env["PYTHONPATH"]
    words = [str(SCRIPT), "diagnose", "--json", str(box.file), "--", *python("job.py")]
    done = box.run(words=words)
    assert done.code == 0, done.err
    assert "] name theirs" in done.err


def test_a_job_in_an_environment_of_its_own(box: Box, tmp_path: Path) -> None:
    """A Python without torch and without this package: the beacon needs neither."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    box.write(
        "job.py",
        "import importlib.util\n"
        "assert importlib.util.find_spec('torch') is None\n"
        "assert importlib.util.find_spec('psutil') is None\n"
        "raise ValueError('mine')\n",
    )
    del box.env["PYTHONPATH"]
    words = [str(SCRIPT), "diagnose", "--json", str(box.file), "--"]
    done = box.run(words=[*words, str(tmp_path / "venv" / "bin" / "python"), "job.py"])
    report = done.report
    assert (done.code, report["outcome"], report["cause"]) == (1, "error", "error")
    assert "ValueError: mine" in report["summary"]
    assert report["where"] == {"file": "job.py", "line": 4, "function": "<module>"}
    assert report["not_seen"] == []


def test_a_job_with_a_sitecustomize_of_its_own(box: Box) -> None:
    box.write("site/sitecustomize.py", "import builtins\nbuiltins.greeting = 'from sitecustomize'\n")
    box.write("job.py", "import sitecustomize\nprint(greeting, sitecustomize.__file__)\n")
    path = os.pathsep.join((str(box.folder / "site"), str(ROOT)))
    done = box.run(*python("job.py"), env={"PYTHONPATH": path})
    assert done.code == 0, done.err
    assert f"] from sitecustomize {box.folder / 'site' / 'sitecustomize.py'}" in done.err


# --- what two kills at once leave behind


def killed_with_its_guardian(box: Box, job: str) -> tuple[Path, list[int]]:
    """The folder and the processes of a run that nobody ends any more: with a beacon, a rank would."""
    box.write("job.py", job)
    process = box.start(box.words(python("-I", "job.py"), []))
    until((box.folder / "pids").exists)
    (folder,) = box.runs()
    until(lambda: len(json.loads((folder / "run.json").read_text())["processes"]) == 2)
    guardian = json.loads((folder / "run.json").read_text())["processes"][0][0]
    process.send_signal(signal.SIGSTOP)  # it must not see the end of its guardian before its own
    os.kill(guardian, signal.SIGKILL)
    process.kill()
    process.wait()
    pids = [int(word) for word in (box.folder / "pids").read_text().split()]
    assert all(psutil.pid_exists(pid) for pid in pids)
    return folder, pids


def test_the_next_run_removes_what_two_kills_at_once_left_behind(box: Box) -> None:
    _, pids = killed_with_its_guardian(box, RESISTS)
    assert box.run("true").code == 0
    assert_gone(pids)
    assert box.runs() == []


def test_attach_to_a_job_whose_instrument_was_killed_stops_nothing(box: Box) -> None:
    job = "import os, signal\nopen('new', 'w').write(str(os.getpid()))\nos.rename('new', 'pids')\n"
    folder, (pid,) = killed_with_its_guardian(box, job + "signal.pause()\n")
    words = [sys.executable, "-m", "helpers", "attach", "--json", str(box.file), str(pid)]
    assert box.run(words=words).report["ranks"][0]["pid"] == pid
    assert running([psutil.Process(pid)])
    assert box.runs() == [folder]
    assert box.run("true").code == 0
    assert_gone([pid])


# --- options


def test_keep_running_reports_at_the_verdict_and_lets_the_job_go_on(box: Box) -> None:
    box.write("job.py", BLOCKED)
    process = box.start(box.words(python("job.py"), ["--keep-running"]), env=ONE_RANK)
    pid = int(read_until(process, "] blocks").split()[-1])
    until(box.file.exists, 20)  # the report is there while the job still stands
    assert process.poll() is None
    assert psutil.pid_exists(pid)
    assert json.loads(box.file.read_text())["outcome"] == "hang"
    os.kill(pid, signal.SIGUSR1)
    done = box.finish(process)
    assert "] continued" in done.err
    assert (done.code, done.verdict) == (2, ("hang", "missing-rank", [0]))
    assert done.report["interrupted"] is False


def test_keep_running_until_ctrl_c_keeps_the_verdict_s_exit_code(box: Box) -> None:
    box.write("job.py", BLOCKED)
    process = box.start(box.words(python("job.py"), ["--keep-running"]), env=ONE_RANK)
    pid = int(read_until(process, "] blocks").split()[-1])
    read_until(process, "Rank 0 is waiting for a lock that it already holds")
    until(box.file.exists, 10)
    process.send_signal(signal.SIGINT)
    done = box.finish(process)
    assert (done.code, done.verdict) == (2, ("hang", "missing-rank", [0]))
    assert_gone([pid])


def test_keep_running_goes_on_when_the_report_cannot_be_written_and_writes_it_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(
        f"open('pid', 'w').write(str(__import__('os').getpid()))\n{BLOCKED}"
    )
    monkeypatch.chdir(tmp_path)
    for name, value in ONE_RANK.items():
        monkeypatch.setenv(name, value)
    write = watch.write_atomically

    def no_space_yet(path: Path, text: str) -> None:
        monkeypatch.setattr(watch, "write_atomically", write)
        os.kill(int(Path("pid").read_text()), signal.SIGUSR1)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(watch, "write_atomically", no_space_yet)
    words = ["diagnose", "--keep-running", "--json", "report", "--", *python("job.py")]
    assert main(words) == 2
    assert "] continued" in capfd.readouterr().err
    assert json.loads(Path("report").read_text())["cause"] == "missing-rank"


@pytest.mark.parametrize(
    "kind", ["hang", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("error", "ok"))]
)
def test_a_record_is_read_to_the_same_verdict(box: Box, kind: str) -> None:
    program = {"hang": BLOCKED, "error": "raise ValueError('x')\n", "ok": "print()\n"}[kind]
    box.write("job.py", program)
    done = box.run(*python("job.py"), options=["--record", "kept/", "--html", "live"], env=ONE_RANK)
    assert done.report["outcome"] == kind
    read = [sys.executable, "-m", "helpers", "read", "kept", "--html", "again"]
    again = box.run(words=read)
    assert again.code == done.code
    assert without_times(again.out) == without_times(done.out)
    assert [("verdict at" in out) for out in (again.out, done.out)] == [kind != "ok"] * 2
    for page in ("live", "again"):
        assert "<svg" in (box.folder / page).read_text(), "a page has the picture of the run"


def without_times(text: str) -> list[str]:
    """The report but for the seconds, which only the run itself can tell."""
    return re.sub(r"\b(stall|verdict) at\s+\d+\.\d\s+s", r"\1", text).split()


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_report_that_finds_no_space_is_printed_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], option: str
) -> None:
    def write(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(watch, "write_atomically", write)
    file = tmp_path / "report.json"
    assert main(["diagnose", option, str(file), "--", "true"]) == 70
    shown = capfd.readouterr()
    assert "The job ended well" in shown.out
    assert f"stuck-ranks: {file} cannot be written: No space left on device\n" in shown.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", '{"recording": 1}'])
def test_a_record_that_is_none(box: Box, text: str) -> None:
    box.write("record", text)
    done = box.run(words=[sys.executable, "-m", "helpers", "read", "record"])
    assert done.code == 64
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize("text", ["no record", '{"v": 1}\n'])
def test_a_text_that_tells_nothing_is_read_all_the_same(box: Box, text: str) -> None:
    box.write("record", text)
    done = box.run(words=[sys.executable, "-m", "helpers", "read", "record"])
    assert done.code == 3
    assert f"record:1: {text.strip()}" in done.out


def test_the_input_is_passed_through(box: Box) -> None:
    done = box.run(*python("-c", "print('hello', input())"), text="Ada\n")
    assert done.code == 0
    assert "] hello Ada" in done.err


def test_the_end_of_the_input_is_passed_through(box: Box) -> None:
    done = box.run("cat", text="")
    assert done.code == 0
