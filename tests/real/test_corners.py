"""Corners of Python and of Unix in which a job does the same with the instrument as without it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from both_ways import Behaviour, Lab
from pythons import python

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="namespaces and /proc of Linux"),
]

SUPPORTED = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def same(lab: Lab, program: str, *command: str) -> Behaviour:
    """What a program does both ways: the same."""
    lab.write(program)
    plain, watched = lab.plain(*command, "job.py"), lab.watched(*command, "job.py")
    assert watched == plain
    return plain


def not_seen(lab: Lab) -> str:
    return " ".join(json.loads(lab.report.read_text())["not_seen"])


# --- interpreters

SUB_INTERPRETERS = """
import sys, threading, time
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
inside = '''
import os, sys, time
ours = [name for name in (*sys.modules, *sys.path) if "_beacon" in name or "stuck-ranks-" in name]
os.write(1, repr([ours, type(os.kill).__name__, "sitecustomize" in sys.modules]).encode() + b"\\\\n")
end = time.monotonic() + {}
def deep(n):
    return deep(n - 1) if n else 0
while time.monotonic() < end:
    deep(20)
'''
def run(seconds):
    for _ in range(3):
        one = interpreters.create()
        interpreters.run_string(one, inside.format(seconds))
        interpreters.destroy(one)
threads = [threading.Thread(target=run, args=(seconds,)) for seconds in (0, 0.2, 0.4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("end")
"""


@pytest.mark.nightly
@pytest.mark.parametrize("version", SUPPORTED)
def test_sub_interpreters(lab: Lab, version: str) -> None:
    """With an interpreter lock of each its own, since 3.12, and without."""
    done = same(lab, SUB_INTERPRETERS, python(version))
    assert (done.code, done.lines[0]) == (0, "[[], 'builtin_function_or_method', False]")


CALLS = """
import functools, multiprocessing, os, pickle, signal, sys, time, traceback
sys.stderr = sys.stdout
def tried(call):
    try:
        call()
    except BaseException:
        traceback.print_exc()
if __name__ == "__main__":
    for function in (os._exit, os.kill, os.waitpid, sys.exit):
        print(pickle.dumps(function), function)
    for method in ("fork", "spawn", "forkserver"):
        for target, args in ((os._exit, (3,)), (functools.partial(os._exit, 4), ())):
            child = multiprocessing.get_context(method).Process(target=target, args=args)
            child.start(); child.join(); print(child.exitcode)
    tried(lambda: os.kill(2**22 + 5, 0))
    tried(lambda: os.waitpid(2**22 + 5, 0))
    tried(lambda: sys.exit("bye"))
    tried(lambda: os._exit("no number"))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    child = os.fork()
    if not child:
        time.sleep(60)
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    tried(lambda: os.waitpid(child, 0))
    os.kill(child, signal.SIGKILL)
    print(os.waitpid(child, 0)[1])
    if hasattr(os, "unshare"):
        tried(lambda: os.unshare(1 << 30))
        tried(lambda: os.setns(0))
    print(sorted(name for name in os.environ if name.startswith("PYTHON") and name != "PYTHONPATH"))
"""


@pytest.mark.nightly
@pytest.mark.parametrize("version", SUPPORTED)
def test_functions_of_which_notes_are_taken(lab: Lab, version: str) -> None:
    lab.env["TMPDIR"] = "/tmp"  # the path of a forkserver's socket may have 107 bytes
    lines = same(lab, CALLS, python(version), "-W", "always").lines
    assert [code for code in "34" for _ in range(3)] == [line for line in lines if line in ("3", "4")]
    assert "KeyboardInterrupt" in lines and "SystemExit: bye" in lines


GIVEN_BACK = """
import gc, queue, subprocess, sys, threading, time, weakref
gc.disable()
count, freed, enough = 0, 0, threading.Event()
class Checkpoint:
    password, step = "x", 3
def gone():
    global freed
    freed += 1
    if freed == count:
        enough.set()
def hold(place, seconds):
    checkpoint = Checkpoint()
    weakref.finalize(checkpoint, gone)
    state = {"model": checkpoint, "step": 7}
    place(seconds)
    return state["step"], checkpoint.step
def joins(seconds):
    thread = threading.Thread(target=time.sleep, args=(seconds,))
    thread.start()
    thread.join()
def gets(seconds):
    try:
        queue.Queue().get(timeout=seconds)
    except queue.Empty:
        pass
def waits(seconds):
    subprocess.run([sys.executable, "-S", "-c", "import time; time.sleep(%f)" % seconds])
places = [time.sleep, joins, gets, waits, lambda seconds: threading.Event().wait(seconds)]
rounds = [(place, seconds) for seconds in (0.2, 0.4, 1.2) for place in places]
count = len(rounds) + 3
threads = [threading.Thread(target=hold, args=how) for how in rounds]
for thread in threads: thread.start()
for seconds in (0.2, 0.4, 1.2): hold(time.sleep, seconds)
print(enough.wait(30), freed)
for thread in threads: thread.join()
"""


@pytest.mark.parametrize(
    "version", ["3.11", *(pytest.param(v, marks=pytest.mark.nightly) for v in SUPPORTED if v != "3.11")]
)
def test_what_a_job_gives_back_is_free_at_once(lab: Lab, version: str) -> None:
    """No look keeps a frame, and what it names, until a cycle is collected, if ever."""
    assert same(lab, GIVEN_BACK, python(version)).lines == ["True 18"]


NAMESPACES = """
import os, sys, time
try:
    os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWPID)
except OSError as error:
    print(error)
    sys.exit(0)
ends, goes_on = os.pipe()
for first in (True, False):
    if not os.fork():
        if not os.fork():
            time.sleep(0.8)  # time enough for a beacon that would end what has lost its guardian
            os.write(1, b"grandchild\\n")
            os._exit(0)
        os.write(1, b"%d %d %d\\n" % (os.wait()[1], os.getpid() == 1, os.getppid()))
        if first:  # with the first process of a namespace the kernel ends all others
            os.close(goes_on)
            os.read(ends, 1)
        os._exit(0)
os.close(goes_on)
print(os.wait()[1], os.wait()[1])
"""


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.12", "3.13", "3.14"])
def test_namespaces(lab: Lab, version: str) -> None:
    """Only a process with one thread enters a user namespace; in a pid namespace nobody is known."""
    same(lab, NAMESPACES, python(version))


@pytest.mark.nightly
def test_a_command_in_a_pid_namespace_of_its_own(lab: Lab) -> None:
    inner = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*inner, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody make a pid namespace")
    same(lab, "import os, time\ntime.sleep(5)\nprint(os.getpid())\n", *inner, sys.executable)
    assert "in a namespace of its own" in not_seen(lab)


OLD = "import sys, time\nprint('sitecustomize' in sys.modules)\ntime.sleep(4)\nraise KeyError(3)\n"


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["2.7", "3.6", "3.7"])
@pytest.mark.parametrize("own", [False, True], ids=["", "its own sitecustomize"])
def test_a_python_that_is_too_old(lab: Lab, version: str, own: bool) -> None:
    if own:
        (lab.folder / "sitecustomize.py").write_text("import sys; sys.stdout.write('own\\n')\n")
        lab.env["PYTHONPATH"] = str(lab.folder)
    assert same(lab, OLD, python(version)).lines.count("own") == own
    assert f"Python {version} is older than 3.8" in not_seen(lab)


# --- descriptors, folders


def test_what_the_caller_hands_down(lab: Lab) -> None:
    """A program that a shell gives as a descriptor, and a descriptor that the job closes early."""
    lab.write(
        "import os, sys\nread, write = int(sys.argv[2]), int(sys.argv[3])\n"
        "print(sorted(map(int, os.listdir('/proc/self/fd')))[:3], open(sys.argv[1]).read())\n"
        "os.close(write)\nprint(os.read(read, 1))\n"
    )
    outer = (
        "import os, subprocess, sys\nread, write = os.pipe()\n"
        "for end in (read, write): os.set_inheritable(end, True)\n"
        "script = f'exec \"$@\" {read} {write}'\n"
        "command = sys.argv[1:] + [sys.executable, 'job.py', '/dev/fd/9', str(read), str(write)]\n"
        "file = os.open('text', os.O_RDONLY); os.dup2(file, 9)\n"
        "child = subprocess.Popen(command, close_fds=False); os.close(write); sys.exit(child.wait())\n"
    )
    (lab.folder / "text").write_text("handed down")
    (lab.folder / "outer.py").write_text(outer)
    tool = str(Path(sys.executable).with_name("stuck-ranks"))
    for front in ([], [tool, "diagnose", "--"]):
        done = subprocess.run(
            [sys.executable, "outer.py", *front],
            cwd=lab.folder,
            env=lab.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        text = done.stdout + done.stderr
        assert "[0, 1, 2] handed down" in text and "b''" in text, text


def test_a_process_to_which_systemd_gives_sockets(lab: Lab) -> None:
    """LISTEN_PID names the process that they are for: the command, not the instrument."""
    lab.write(
        "import os\nown = str(os.getpid())\n"
        "print([os.environ.get(n) == own for n in ('LISTEN_PID', 'WATCHDOG_PID', 'OTHER_PID')])\n"
    )
    env = 'export LISTEN_PID=$$ WATCHDOG_PID=$$ OTHER_PID=1 LISTEN_FDS=0; exec "$@"'
    tool = str(Path(sys.executable).with_name("stuck-ranks"))
    done = subprocess.run(
        ["sh", "-c", env, "sh", tool, "diagnose", "--", sys.executable, "job.py"],
        cwd=lab.folder,
        env=lab.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "[True, True, False]" in done.stderr


def test_a_notebook_hands_nothing_down(lab: Lab) -> None:
    from helpers.launch.launch import launch

    read, write = os.pipe()
    os.set_inheritable(write, True)
    run = launch([sys.executable, "-I", "-c", "import time; time.sleep(60)"], env=lab.env)
    try:
        os.close(write)
        assert os.read(read, 1) == b""
    finally:
        run.close()
        os.close(read)


REMOVED = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'


@pytest.mark.nightly
@pytest.mark.parametrize("text", ["print('a')", "raise KeyError(3)"])
def test_a_working_folder_that_has_been_removed(lab: Lab, text: str) -> None:
    tool = str(Path(sys.executable).with_name("stuck-ranks"))
    done = []
    for front in ([], [tool, "diagnose", "--"]):
        command = ["sh", "-c", REMOVED, "sh", *front, sys.executable, "-c", text]
        done.append(lab.plain(*command))
    assert done[0].code == done[1].code
    assert {f"[job] {line}" for line in done[0].lines} <= {*done[1].lines}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["a:b", "a b", "n\nl", os.fsdecode(b"\xff"), "x" * 250], ids=ascii)
def test_a_folder_for_temporary_files(lab: Lab, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    lab.env["TMPDIR"] = str(tmp_path / name)
    lab.write("import sys\nprint('stuck_ranks_beacon' in sys.modules)\n")
    assert lab.watched(sys.executable, "job.py").lines == ["True"]


# --- options


OPTIONS: list[tuple[list[str], dict[str, str]]] = [
    (["-E"], {}),
    (["-I"], {}),
    (["-s", "-u"], {"PYTHONNOUSERSITE": "1"}),
    (["-W", "error", "-bb"], {"PYTHONSAFEPATH": "1"}),
    (["-W", "always", "-X", "warn_default_encoding"], {}),
    (["-X", "dev", "-X", "frozen_modules=off"], {}),
    (["-OO"], {"PYTHONWARNINGS": "error", "PYTHONFAULTHANDLER": "1"}),
    ([], {"PYTHONMALLOC": "debug", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONTRACEMALLOC": "1"}),
    (["-i", "-q"], {"PYTHONDEVMODE": "1"}),
]

FORKS = """
import os, sys, time
print(sys.flags, sys.path)
time.sleep(0.7)  # time enough for a look at a thread that has not moved
for _ in range(3):
    if not os.fork():
        os._exit(0)
    print(os.wait()[1])
"""


@pytest.mark.nightly
@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13", "3.14"])
@pytest.mark.parametrize(("flags", "variables"), OPTIONS, ids=str)
def test_options(lab: Lab, version: str, flags: list[str], variables: dict[str, str]) -> None:
    """Nothing of the beacon's is printed: no warning of a file, an encoding or a fork."""
    lab.env = {name: text for name, text in lab.env.items() if not name.startswith("PYTHON")} | variables
    same(lab, FORKS, python(version), *flags)
