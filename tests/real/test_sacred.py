"""A job does the same with the instrument as without it, but for where its output goes.

Each program runs twice, plainly and under `diagnose`; exit code, text and noted facts are compared.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tempfile
import zipapp
from contextlib import suppress
from pathlib import Path

import pytest
from both_ways import NOTE, Lab

from helpers.session import Event, Sample, Session

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="signals and forks of Linux"),
]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


INTERPRETER = (
    NOTE
    + """
import sys, signal, warnings, gc, resource, threading
ours = ("STUCK_RANKS_", "PYTHONPATH")
note({
    "path": sys.path,
    "argv": sys.argv,
    "excepthook": sys.excepthook is sys.__excepthook__,
    "threading hook": threading.excepthook is threading.__excepthook__,
    "displayhook": sys.displayhook is sys.__displayhook__,
    "unraisable": sys.unraisablehook is sys.__unraisablehook__,
    "threads": [threading.active_count(), [t.name for t in threading.enumerate()]],
    "main thread": threading.current_thread() is threading.main_thread(),
    "signals": {s.name: repr(signal.getsignal(s)) for s in signal.valid_signals()
                if isinstance(s, signal.Signals)},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "wakeup": signal.set_wakeup_fd(-1),
    "timer": signal.getitimer(signal.ITIMER_REAL),
    "trace": [sys.gettrace() is None, sys.getprofile() is None, threading.gettrace() is None],
    "recursion": sys.getrecursionlimit(),
    "switch": sys.getswitchinterval(),
    "filters": repr(warnings.filters),
    "finders": [repr(type(finder)) + getattr(finder, "__name__", "") for finder in sys.meta_path],
    "hooks": len(sys.path_hooks),
    "gc": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks)],
    "environment": {k: v for k, v in os.environ.items() if not k.startswith(ours)
                    and k not in ("_", "SHLVL", "PWD", "OLDPWD")},
    "cwd": os.getcwd(),
    "nice": os.nice(0),
    "affinity": sorted(os.sched_getaffinity(0)),
    "umask": os.umask(os.umask(0)),
    "limits": [resource.getrlimit(r) for r in (resource.RLIMIT_AS, resource.RLIMIT_NOFILE)],
    "files": sorted(os.listdir("/proc/self/fd"), key=int)[:3],
    "encodings": [sys.stdout.encoding, sys.stderr.encoding, sys.getfilesystemencoding()],
    "errors": [sys.stdout.errors, sys.stderr.errors],
    "flags": repr(sys.flags),
    "orig": sys.orig_argv,
    "bytecode": sys.dont_write_bytecode,
    "globals": sorted(globals()),
    "builtins": sorted(dir(__builtins__)),
    "names": [os.waitpid.__name__, os._exit.__name__, os.kill.__name__],
})
"""
)


def test_the_interpreter_is_as_the_job_expects_it(lab: Lab) -> None:
    facts = lab.both(INTERPRETER).facts
    assert facts["threads"] == [1, ["MainThread"]]
    assert facts["excepthook"] is True


FLAGS = [["-O", "-X", "dev", "-s"], ["-W", "error", "-P", "-B", "-u", "-bb"]]


@pytest.mark.parametrize("flags", FLAGS, ids=" ".join)
def test_the_interpreter_with_other_options(lab: Lab, flags: list[str]) -> None:
    lab.both(INTERPRETER, *flags)


def test_the_interpreter_with_variables(lab: Lab) -> None:
    lab.env |= {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONFAULTHANDLER": "1"}
    lab.both(INTERPRETER)


def test_a_job_without_a_sitecustomize_sees_none(lab: Lab) -> None:
    lab.both("import sys\nprint('sitecustomize' in sys.modules)\nimport sitecustomize\n")


def test_random_numbers(lab: Lab) -> None:
    lab.both(
        NOTE + "import random\n"
        "random.seed(7); seeded = [random.random() for _ in range(5)]\n"
        "import torch\n"
        "start = torch.initial_seed() == torch.default_generator.initial_seed()\n"
        "torch.manual_seed(7)\n"
        "note([seeded, start, torch.randn(5).tolist(), torch.get_num_threads(),"
        " torch.randperm(20).tolist()])\n"
    )


def test_open_files(lab: Lab) -> None:
    """The job may count on the lowest free number, and closes what it does not know."""
    lab.both(
        NOTE + "file = open(os.devnull)\nfirst = file.fileno()\n"
        "os.closerange(3, 64)\n"
        "import time; time.sleep(0.6)\n"
        "print('still here', flush=True)\n"
        "note(first)\n"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("print('a'); print('b')", 0),
        ("import sys; sys.exit(3)", 3),
        ("import sys; sys.exit('in words')", 1),
        ("raise KeyError('k')", 1),
        ("import os; os._exit(4)", 4),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -15),
        ("import os; os.abort()", -6),
        ("import ctypes; ctypes.string_at(0)", -11),
        ("raise KeyboardInterrupt", -2),
        ("import sys; sys.stdout.write('no newline'); sys.stdout.flush()", 0),
        ("import os; os.write(1, b'raw\\n'); os.system('echo child')", 0),
        ("import sys; print('x' * 100_000, flush=True); print('ü€', file=sys.stderr)", 0),
    ],
    ids=lambda value: str(value)[:40].replace("/", "|"),
)
def test_ends(lab: Lab, text: str, code: int) -> None:
    assert lab.both(text + "\n").code == code


HOOK = """
import sys
def hook(kind, value, traceback):
    print("hook got", kind.__name__, value)
sys.excepthook = hook
raise ValueError("late")
"""


def test_a_hook_of_the_job_is_called(lab: Lab) -> None:
    done = lab.both(HOOK)
    assert (done.code, done.lines) == (1, ["hook got ValueError late"])


ATEXIT = (
    NOTE
    + """
import atexit, threading, weakref
order = []
atexit.register(note, order)
atexit.register(order.append, "first registered")
atexit.register(order.append, "last registered")
threading._register_atexit(order.append, "threads")
class Kept: pass
kept = Kept()
weakref.finalize(kept, order.append, "finalizer")
"""
)


def test_the_order_at_exit(lab: Lab) -> None:
    facts = lab.both(ATEXIT).facts
    assert facts == ["threads", "finalizer", "last registered", "first registered"]


FORK = r"""
import os, sys, time
time.sleep(0.5)
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
pid = os.fork()
os.write(1, b"both\n")
if pid == 0:
    sys.exit(6)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


def test_forks(lab: Lab) -> None:
    """With the newer Pythons, a fork while a second thread runs is a warning, here an error."""
    assert lab.both(FORK, "-W", "error").lines == ["6", "both", "both"]


THREAD_COUNT = (
    NOTE
    + """
import os
note(len(os.listdir("/proc/self/task")))
"""
)


def test_no_thread_is_added_but_that_of_the_beacon(lab: Lab) -> None:
    """A watchdog of `faulthandler` would be one: it reads frames without the interpreter lock."""
    lab.write(THREAD_COUNT)
    assert lab.plain(sys.executable, "job.py").facts == 1
    assert lab.watched(sys.executable, "job.py").facts == 2


PREEXEC = """
import os, subprocess, time
time.sleep(0.5)
for _ in range(5):
    run = subprocess.run(["sh", "-c", "echo $NAME; umask"], preexec_fn=lambda: os.umask(0o77),
                         env={"NAME": "n"}, capture_output=True, text=True)
    print(run.stdout.split(), run.returncode)
try:
    subprocess.run(["true"], preexec_fn=lambda: 1 / 0)
except subprocess.SubprocessError as error:
    print(error)
print(subprocess.Popen(["false"]).wait())
"""


def test_subprocesses_with_a_function_before_exec(lab: Lab) -> None:
    lines = lab.both(PREEXEC, "-W", "error").lines
    assert lines.count("['n', '0077'] 0") == 5


POOL = """
import multiprocessing
def square(n):
    return n * n
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(5)))
    child = multiprocessing.get_context("spawn").Process(target=exit, args=(7,))
    child.start(); child.join(); print(child.exitcode)
"""


def test_multiprocessing(lab: Lab) -> None:
    # A forkserver's socket is below TMPDIR, and its path may have 107 bytes (Linux, unix(7)).
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        lab.env["TMPDIR"] = short
        assert lab.both(POOL).code == 0


LATER = (
    NOTE
    + """
import faulthandler, time
file = open("dump.txt", "w+")
time.sleep(0.5)
faulthandler.dump_traceback_later(0.8, file=file)
end = time.monotonic() + 1.6
while time.monotonic() < end: time.sleep(0.01)
file.seek(0)
first = file.read().count("Timeout (")
faulthandler.dump_traceback_later(0.3, file=file)
faulthandler.cancel_dump_traceback_later()
end = time.monotonic() + 0.8
while time.monotonic() < end: time.sleep(0.01)
file.seek(0)
note([first, file.read().count("Timeout (")])
"""
)


def test_a_timer_of_the_job_for_its_own_stacks(lab: Lab) -> None:
    """`faulthandler.dump_traceback_later` has one slot a process: it is the job's."""
    assert lab.both(LATER).facts == [1, 1]


LATER_BY_NAME = (
    NOTE
    + """
from faulthandler import cancel_dump_traceback_later, dump_traceback_later
import time
file = open("dump.txt", "w+")
dump_traceback_later(1.0, exit=True, file=file)
time.sleep(30)
"""
)


def test_a_timer_that_ends_the_job(lab: Lab) -> None:
    assert lab.both(LATER_BY_NAME).code == 1


EXEC = """
import os, sys, time
time.sleep(0.5)
print("before", flush=True)
os.execv(sys.executable, [sys.executable, "-c", "import threading; print('after', "
                          "threading.active_count()); raise SystemExit(9)"])
"""


def test_a_program_that_replaces_itself(lab: Lab) -> None:
    done = lab.both(EXEC)
    assert (done.code, done.lines) == (9, ["after 1", "before"])


REDIRECTS = """
import os, sys
file = open("own.log", "w")
os.dup2(file.fileno(), 1)
print("to my own file", flush=True)
print("to stderr", file=sys.stderr)
os.system("echo from a child")
pid = os.fork()
if pid == 0:
    print("after the fork", flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print("after the fork", flush=True)
"""


def test_output_that_the_job_redirects_itself_stays_where_it_is(lab: Lab) -> None:
    lab.write(REDIRECTS)
    seen = []
    for run in (lab.plain, lab.watched):
        behaviour = run(sys.executable, "job.py")
        seen.append((behaviour, (lab.folder / "own.log").read_text()))
    assert seen[0] == seen[1]
    assert seen[0][1].count("after the fork") == 2


SIGNALS = """
import os, signal, threading, time
got = []
for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGCHLD, signal.SIGTERM):
    signal.signal(number, lambda n, frame: got.append(signal.Signals(n).name))
    os.kill(os.getpid(), number)
signal.setitimer(signal.ITIMER_REAL, 0.1)
time.sleep(0.5)
print(got)
print(signal.sigtimedwait([signal.SIGUSR1], 0))
worker = threading.Thread(target=print, args=("in a thread",))
worker.start(); worker.join()
try:
    os.kill(os.getpid(), 0)
    os.kill(2**22 + 5, 0)
except ProcessLookupError as error:
    print(error)
"""


def test_signals_reach_the_job_s_own_handlers(lab: Lab) -> None:
    names = "['SIGUSR1', 'SIGUSR2', 'SIGALRM', 'SIGCHLD', 'SIGTERM', 'SIGALRM']"
    assert names in lab.both(SIGNALS).lines


WAITS = """
import os, asyncio, subprocess, time
pid = os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", "exit 3")
print(os.waitpid(-1, 0)[1] >> 8)
try:
    os.waitpid(-1, 0)
except ChildProcessError as error:
    print(error)
pid = os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", "exit 4")
print(os.wait4(pid, 0)[1] >> 8)
async def run():
    child = await asyncio.create_subprocess_exec("sh", "-c", "exit 5")
    return await child.wait()
print(asyncio.run(run()))
print(subprocess.call(["sh", "-c", "kill -KILL $$"]))
print(os.popen("exit 2").close() >> 8)
"""


def test_waiting_for_children(lab: Lab) -> None:
    assert lab.both(WAITS).code == 0


THREADS = """
import os, sys, threading, time
released = threading.Event()
def deep(n):
    released.wait() if n == 0 else deep(n - 1)
for _ in range(30):
    threading.Thread(target=deep, args=(50,)).start()
print(threading.active_count())
released.set()
names = {}
def counted(held):
    counts = []
    for _ in range(20):  # a look that is just going on holds it for its few milliseconds
        counts.append(sys.getrefcount(held))
        time.sleep(0.01)
    return min(counts)
def local(value=[]):
    held = object()
    names["count"] = counted(held)
    time.sleep(1.5)
    names["after"] = counted(held)
local()
print(names)
"""


def test_being_looked_at_changes_nothing(lab: Lab) -> None:
    """Reading a frame's variables may keep them alive longer than the job does."""
    lab.both(THREADS)


LATE = (
    NOTE
    + """
import sys, time
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(2))
loaded, names = set(sys.modules), set(vars(torch))
if dist.get_rank() == 1:
    time.sleep(3)  # long enough for the other one to be looked at closely
dist.all_reduce(torch.ones(2))
if dist.get_rank() == 0:
    note([sorted(set(sys.modules) - loaded), sorted(set(vars(torch)) - names)])
dist.destroy_process_group()
"""
)


@pytest.mark.nightly
def test_a_rank_that_waits_loads_nothing_meanwhile(lab: Lab) -> None:
    """The lines of its calls are read from torch's recorder, which may import a part of torch."""
    lab.write(LATE)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    found = lab.watched(torchrun, "--standalone", "--nproc-per-node=2", "job.py")
    assert (found.code, found.facts) == (0, [[], []])


CROWDED = (
    NOTE
    + """
import resource, socket, threading, time
resource.setrlimit(resource.RLIMIT_NOFILE, (2500, 4096))
held = threading.Event()
def deep(n):
    held.wait() if n == 0 else deep(n - 1)
for _ in range(200):
    threading.Thread(target=deep, args=(20,), daemon=True).start()
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2000)]
while not os.path.exists("seen"): time.sleep(0.05)
note([threading.active_count(), len(sockets)])
"""
)


def test_two_hundred_threads_and_two_thousand_sockets(lab: Lab) -> None:
    """The job ends as soon as every port is seen. What it costs is measured in benchmarks/."""
    lab.write(CROWDED)
    session = Session([sys.executable, "job.py"], cwd=lab.folder, env=lab.env, max_seconds=180)

    def end_when_seen(event: Event) -> None:
        ranks = event.snapshot.ranks if isinstance(event, Sample) else ()
        if any(rank.process is not None and len(rank.process.ports) == 2000 for rank in ranks):
            (lab.folder / "seen").touch()

    session.subscribe(end_when_seen)
    report = session.start().wait(240)
    assert (report.verdict.outcome, report.snapshot.job.exit_code, lab.noted()) == ("ok", 0, [201, 2000])


@pytest.mark.parametrize("what", ["gone", "a file"])
def test_a_beacon_that_cannot_write_does_no_harm(lab: Lab, what: str) -> None:
    """The run's own records disappear under a running job."""
    remove = "shutil.rmtree(os.path.join(os.environ['STUCK_RANKS_RUN'], 'records'))\n"
    if what == "a file":
        remove += "open(os.path.join(os.environ['STUCK_RANKS_RUN'], 'records'), 'w').close()\n"
    lab.write(f"import os, shutil, time\n{remove}time.sleep(0.8)\nprint('done')\nos._exit(6)\n")
    done = lab.watched(sys.executable, "job.py")
    assert (done.code, done.lines) == (6, ["done"])


CUSTOM = (
    NOTE
    + """
import builtins, sys
note([getattr(builtins, "seen", None), "sitecustomize" in sys.modules, "usercustomize" in sys.modules])
"""
)


def test_the_jobs_own_sitecustomize_and_usercustomize(lab: Lab) -> None:
    """Both run, once each, in their order; a virtual environment has no place for the second."""
    own = lab.folder / "site"
    own.mkdir()
    for name in ("sitecustomize", "usercustomize"):
        adds = f"builtins.seen = getattr(builtins, 'seen', []) + [{name!r}]\n"
        (own / f"{name}.py").write_text(f"import builtins\n{adds}")
    lab.env["PYTHONPATH"] = str(own)
    lab.write(CUSTOM)
    command = (sys._base_executable, "job.py")  # type: ignore[attr-defined]
    plain, watched = lab.plain(*command), lab.watched(*command)
    assert plain == watched
    assert plain.facts == [["sitecustomize", "usercustomize"], True, True]


BLOCKED = (
    NOTE
    + """
import pathlib, time
def blocked(task):
    (mask,) = [line.split()[1] for line in task.read_text().splitlines() if line.startswith("SigBlk")]
    return int(mask, 16)
tasks = [pathlib.Path("/proc/self/task") / name / "status" for name in os.listdir("/proc/self/task")]
note({task.parent.name == str(os.getpid()): hex(blocked(task)) for task in tasks})
"""
)


def test_a_signal_to_the_process_finds_only_the_jobs_own_threads(lab: Lab) -> None:
    """The kernel may give it to any thread that does not block it, and then no call of the job ends."""
    lab.write(BLOCKED)
    masks = lab.watched(sys.executable, "job.py").facts
    everything = {n for n in range(1, 65) if n not in (signal.SIGKILL, signal.SIGSTOP)}
    seen = {n for n in everything if int(masks["false"], 16) >> (n - 1) & 1}
    assert masks["true"] == "0x0"
    assert everything - seen <= {32, 33}, "the C library keeps these two to itself"


FAULTHANDLER = (
    NOTE
    + """
import faulthandler, os, signal, time
file = open("dump.txt", "w+")
faulthandler.register(signal.SIGUSR1, file=file)
os.kill(os.getpid(), signal.SIGUSR1)
faulthandler.unregister(signal.SIGUSR1)
signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
os.kill(os.getpid(), signal.SIGUSR1)
faulthandler.enable(file=file)
time.sleep(0.5)
file.seek(0)
note([file.read().count("Current thread"), faulthandler.is_enabled()])
print("crashes", flush=True)
faulthandler._sigsegv()
"""
)


def test_a_faulthandler_of_the_job(lab: Lab) -> None:
    """Its dumps on a signal and its stacks of a crash stay the job's."""
    crashed = []
    lab.write(FAULTHANDLER)
    for run in (lab.plain, lab.watched):
        done = run(sys.executable, "job.py")
        crashed.append((done, (lab.folder / "dump.txt").read_text().count("Segmentation fault")))
    assert crashed[0] == crashed[1]
    assert (crashed[0][0].code, crashed[0][1]) == (-11, 1)


TRACED = (
    NOTE
    + """
import sys, threading, time
lines, calls = [], []
def work():
    total = 0
    for n in range(3):
        total += n
    time.sleep(0.5)
    return total
def tracer(frame, event, arg):
    if frame.f_code.co_filename == __file__:
        lines.append([frame.f_lineno, event])
    else:
        lines.append(["elsewhere", frame.f_code.co_filename])
    return tracer
threading.settrace(tracer)
threading.setprofile(lambda frame, event, arg: calls.append(event))
worker = threading.Thread(target=work)
worker.start(); worker.join()
sys.settrace(tracer)
work()
sys.settrace(None)
mine = [line for line in lines if line[0] != "elsewhere" or "beacon" in line[1]]
note([mine, len(calls) > 0, sys.getprofile() is None])
"""
)


def test_a_tracer_sees_the_jobs_lines_only(lab: Lab) -> None:
    lab.both(TRACED)


def test_coverage(lab: Lab) -> None:
    """It measures the same lines, whatever way it has of following them."""
    pytest.importorskip("coverage")
    lab.write("import time\nfor n in range(3):\n    time.sleep(0.2)\nif n > 5:\n    print(n)\n")
    measure = [sys.executable, "-m", "coverage", "run", "--data-file=.cover", "job.py"]
    report = [sys.executable, "-m", "coverage", "report", "--data-file=.cover", "-m"]
    shown = []
    for run in (lab.plain, lab.watched):
        assert run(*measure).code == 0
        shown.append(lab.plain(*report).lines)
    assert shown[0] == shown[1]
    assert any("5" in line and "80%" in line for line in shown[0])


FORK_IN_THREAD = """
import os, threading, time
time.sleep(0.3)
ends = []
def forks():
    for code in range(5):
        pid = os.fork()
        if pid == 0:
            os._exit(code)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
threads = [threading.Thread(target=forks) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(ends), threading.active_count())
"""


def test_forks_in_threads(lab: Lab) -> None:
    assert lab.both(FORK_IN_THREAD).lines == [f"{sorted(list(range(5)) * 4)} 1"]


DESCRIPTORS = """
import os, subprocess, sys, time
time.sleep(0.5)
shows = "import os; print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4])"
for options in ({}, {"close_fds": False}, {"pass_fds": (0,)}, {"start_new_session": True}):
    print(subprocess.run([sys.executable, "-I", "-c", shows], capture_output=True, **options).stdout)
read, write = os.pipe()
os.set_inheritable(write, True)
child = subprocess.Popen(["true"], close_fds=False)
child.wait(); os.close(write)
print(os.read(read, 1))
"""


def test_descriptors_of_children(lab: Lab) -> None:
    """None of the beacon's is handed down: a pipe ends when the job's own ends are closed."""
    assert lab.both(DESCRIPTORS).code == 0


SURROUNDINGS = """
import os, sys, time
if os.environ["PLACE"] == "deleted":
    os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
else:
    os.mkdir("fixed"); os.chmod("fixed", 0o555); os.chdir("fixed")
time.sleep(0.5)
print(sorted(os.listdir()), flush=True)
if os.fork() == 0:
    raise SystemExit(0)
os.wait()
raise ValueError("from here")
"""


@pytest.mark.parametrize("place", ["deleted", "read-only"])
def test_a_strange_working_directory(lab: Lab, place: str) -> None:
    lab.env["PLACE"] = place
    lab.write(SURROUNDINGS)
    done = []
    for run in (lab.plain, lab.watched):
        done.append(run(sys.executable, "job.py"))
        for left in ("gone", "fixed"):
            with suppress(OSError):
                (lab.folder / left).rmdir()
    assert done[0] == done[1]
    report = json.loads(lab.report.read_text())
    assert "ValueError: from here" in report["summary"]


def test_a_zipped_program(lab: Lab) -> None:
    inside = lab.folder / "inside"
    inside.mkdir()
    text = NOTE + "import sys\nnote([sys.argv, sys.path])\nprint(__file__)\n"
    (inside / "__main__.py").write_text(text)
    zipapp.create_archive(inside, lab.folder / "job.pyz")
    command = (sys.executable, "job.pyz", "word")
    assert lab.plain(*command) == lab.watched(*command)


def test_an_interactive_python_that_reads_a_pipe(lab: Lab) -> None:
    program = "import sys\nprint(sys.flags.interactive, sys.ps1)\n1 + 1\nraise SystemExit(4)\n"
    run = f"printf '%s' \"$PROGRAM\" | {shlex.quote(sys.executable)} -i -q"
    lab.env["PROGRAM"] = program
    plain, watched = lab.plain("sh", "-c", run), lab.watched("sh", "-c", run)
    assert watched == plain
    assert plain.code == 4


OBJECTS = (
    NOTE
    + """
import gc, time, tracemalloc, sys
gc.collect(); gc.freeze(); gc.disable()
before = len(gc.get_objects())
time.sleep(1.5)
grown = len(gc.get_objects()) - before
gc.enable()
gc.set_debug(gc.DEBUG_SAVEALL)
note([grown < 500, gc.collect() >= 0, len(gc.garbage) < 500])
"""
)


def test_what_the_garbage_collector_finds(lab: Lab) -> None:
    """The beacon leaves no growing heap behind, collected or not."""
    assert lab.both(OBJECTS).facts == [True, True, True]


PYTHONS = [
    path
    for pattern in ("usr/bin/python3.*[0-9]", "usr/local/bin/python3.*[0-9]")
    for path in Path("/").glob(pattern)
] + list(Path.home().glob(".pyenv/versions/3.*/bin/python3"))


def version(python: Path) -> tuple[int, ...]:
    told = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in told.split()[1].split(".")[:2])


def some_pythons() -> dict[tuple[int, ...], str]:
    """The oldest of this machine, the oldest that carries the beacon, and the newest."""
    found = {version(path): str(path) for path in PYTHONS}
    carries = [number for number in sorted(found) if number >= (3, 8)]
    return {number: found[number] for number in {min(found), carries[0], carries[-1]}}


@pytest.mark.skipif(not PYTHONS, reason="there is no other Python")
def test_other_pythons(lab: Lab) -> None:
    """Python 3.8 and newer carry the beacon; an older one runs as if nobody watched."""
    lab.write("import sys, time\nprint(sys.version_info[:2])\ntime.sleep(0.6)\nraise KeyError(3)\n")
    for number, python in some_pythons().items():
        plain, watched = lab.plain(python, "job.py"), lab.watched(python, "job.py")
        assert plain == watched, python
        report = json.loads(lab.report.read_text())
        assert report["where"]["line"] == 4
        assert number < (3, 8) or not report["not_seen"], report["not_seen"]


FULL = """
import os, resource, time
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
end = time.monotonic() + 4
while time.monotonic() < end:
    time.sleep(0.1)
    sum(range(1000))
os._exit(3)
"""


def test_a_beacon_on_a_full_disk_is_no_witness(lab: Lab) -> None:
    """The process counts as one without a beacon, and the report says why."""
    lab.write(FULL)
    assert lab.watched(sys.executable, "job.py").code == 3
    report = json.loads(lab.report.read_text())
    assert any("cannot be written" in sentence for sentence in report["not_seen"])
