"""A healthy job goes its own way under the instrument: it saves, prints, asks and ends as without it."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from command_line import Box, python, read_until
from waiting import until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="the guardian and signals of Linux"),
]

# --- signals

SAVES = """\
import signal
received = []
def save(number, _):
    received.append(number)
    print("saving at", signal.Signals(number).name, flush=True)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
    signal.signal(number, save)
print("ready", flush=True)
while not received:
    signal.pause()
input()  # what saving takes: until the test says so
print("saved", len(received), flush=True)
"""


def send(number: int, process: subprocess.Popen[str], target: str) -> None:
    """Send a signal to the command line, to its process group, or to every process of the run."""
    if target == "group":
        os.killpg(process.pid, number)
    elif target == "command line":
        process.send_signal(number)
    else:
        for one in [process, *psutil.Process(process.pid).children(recursive=True)]:
            os.kill(one.pid, number)


TARGETS = ("command line", "group", "everybody")
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1)
QUICK = {(signal.SIGTERM, "everybody"), (signal.SIGINT, "command line")}


@pytest.mark.parametrize(
    ("number", "target"),
    [
        pytest.param(n, t, marks=() if (n, t) in QUICK else pytest.mark.nightly, id=f"{n.name} {t}")
        for n in SIGNALS
        for t in TARGETS
    ],
)
def test_a_job_saves_when_it_is_asked_to(box: Box, number: signal.Signals, target: str) -> None:
    box.write("job.py", SAVES)
    process = box.start(box.words(python("job.py"), ()), stdin=subprocess.PIPE)
    read_until(process, "] ready")
    send(number, process, target)
    said = read_until(process, f"] saving at {number.name}")
    until(box.file.exists)  # the report of this moment, should there be no other
    early = json.loads(box.file.read_text())
    assert early["outcome"] == "running"
    assert early["interrupted"] is (number == signal.SIGINT)
    done = box.finish(process, "saved\n")
    assert "] saved 1" in done.err
    assert done.verdict == ("ok", "none", [])
    assert (done.code, done.report["interrupted"]) == (
        (130, True) if number == signal.SIGINT else (0, False)
    )
    asks_to_end = number != signal.SIGUSR1
    assert (f"{number.name} passed to the job; again ends it now" in said + done.err) is asks_to_end


def test_what_asks_to_end_a_second_time_ends_the_job_at_once(box: Box) -> None:
    box.write("job.py", SAVES)
    process = box.start(box.words(python("job.py"), ()), stdin=subprocess.PIPE)
    read_until(process, "] ready")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # as `timeout` sends it: to the process and to its group
    read_until(process, "again ends it now")
    time.sleep(0.3)  # more than two of one moment may be apart
    process.send_signal(signal.SIGTERM)
    until(lambda: process.poll() is not None)
    done = box.finish(process)
    assert "saved" not in done.err
    assert (done.code, done.report["outcome"], done.report["interrupted"]) == (3, "running", False)


@pytest.mark.nightly
def test_a_job_has_so_many_seconds_to_end_and_no_more(box: Box) -> None:
    box.write("job.py", SAVES)
    process = box.start(box.words(python("job.py"), ["--grace", "1"]), stdin=subprocess.PIPE)
    read_until(process, "] ready")
    process.send_signal(signal.SIGTERM)
    until(lambda: process.poll() is not None)
    done = box.finish(process)
    assert "saving" in done.err and "saved" not in done.err
    assert (done.code, done.report["outcome"]) == (3, "running")


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_what_was_ignored_at_the_start_stays_ignored(box: Box, number: signal.Signals) -> None:
    box.write(
        "job.py", f"import signal\nprint(signal.getsignal({number.value}).name, flush=True)\ninput()\n"
    )
    words = box.words(python("job.py"), ())
    trap = f"trap '' {number.name.removeprefix('SIG')}; exec \"$@\""
    shell = ["sh", "-c", trap, "sh", *words]
    process = box.start(shell, stdin=subprocess.PIPE)
    assert "SIG_IGN" in read_until(process, "SIG_IGN")
    send(number, process, "everybody")
    done = box.finish(process, "go on\n")
    assert (done.code, done.verdict) == (0, ("ok", "none", []))


@pytest.mark.nightly
def test_what_is_left_of_the_command_s_group_gets_signals_too(box: Box) -> None:
    box.write("job.py", SAVES)
    shell = f"exec 3<&0; {sys.executable} job.py <&3 & exit 0"
    process = box.start(box.words(["sh", "-c", shell], ()), stdin=subprocess.PIPE)
    read_until(process, "] ready")
    process.send_signal(signal.SIGTERM)
    read_until(process, "] saving at SIGTERM")
    assert "] saved 1" in box.finish(process, "saved\n").err


@pytest.mark.nightly
def test_ctrl_z_stops_the_job_too_and_it_goes_on_with_the_command_line(box: Box) -> None:
    box.write("job.py", "import os\nprint('pid', os.getpid(), flush=True)\ninput()\nprint('on')\n")
    process = box.start(box.words(python("job.py"), ()), stdin=subprocess.PIPE)
    job = psutil.Process(int(read_until(process, "] pid").split()[-1]))
    tool = psutil.Process(process.pid)
    process.send_signal(signal.SIGTSTP)
    until(lambda: {job.status(), tool.status()} == {psutil.STATUS_STOPPED})
    process.send_signal(signal.SIGCONT)
    until(lambda: psutil.STATUS_STOPPED not in {job.status(), tool.status()})
    done = box.finish(process, "go on\n")
    assert "] on" in done.err
    assert done.code == 0


# --- output


def raw(box: Box, *options: str) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and error of a command line on `job.py`, in bytes."""
    done = subprocess.run(
        box.words(python("job.py"), options),
        cwd=box.folder,
        env=box.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def of_the_job(text: bytes) -> bytes:
    """What the job has printed: without the names before its lines, and the lines of our own."""
    lines = [line for line in text.splitlines(keepends=True) if not re.match(rb"\[ +\d+\.\d s\] ", line)]
    return b"".join(line.removeprefix(b"[job] ") for line in lines)


EVERY_BYTE = """\
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
line = bytes(b for b in range(256) if b not in b"\\n\\r[") + b"\\n"
text = b"".join(b"%08d" % number + line for number in range(100_000))
sys.stdout.buffer.write(text)
sys.stdout.buffer.write(b" 10%\\r 20%\\r 30%\\n")
sys.stdout.flush()
import hashlib
open("digest", "w").write(hashlib.sha256(text).hexdigest()[:2000])
"""


def test_every_byte_of_a_fast_job_arrives_and_no_limit_of_file_sizes_stops_it(box: Box) -> None:
    import hashlib

    box.write("job.py", EVERY_BYTE)
    code, _, err = raw(box)
    assert code == 0
    printed = of_the_job(err)
    text, bar = printed[: -len(b" 10%\r 20%\r 30%\n")], printed[-len(b" 10%\r 20%\r 30%\n") :]
    assert hashlib.sha256(text).hexdigest() == (box.folder / "digest").read_text()
    assert bar == b" 10%\r 20%\r 30%\n"


@pytest.mark.nightly
def test_quiet_shows_no_output_of_the_job(box: Box) -> None:
    box.write("job.py", "print('printed')\n")
    code, out, err = raw(box, "--quiet")
    assert code == 0
    assert b"printed" not in out + err


def test_a_reader_who_does_not_read_is_what_a_job_waits_for(box: Box) -> None:
    """It is the user's own pipe that pushes back: no hang, however long it takes."""
    box.write("job.py", "for _ in range(8000):\n    print('x' * 1000, flush=True)\n")
    words = box.words(python("job.py"), ["--patience", "1", "--stop-on-suspicion"])
    process = box.start(words)
    assert process.stderr is not None
    time.sleep(4)  # this is what is tested: that as long as nobody reads, nothing happens
    assert process.poll() is None
    done = box.finish(process)
    assert (done.code, done.verdict) == (0, ("ok", "none", []))
    assert done.err.count("x" * 1000) == 8000


PRINTS_ON = """\
import signal
signal.signal(signal.SIGTERM, lambda *_: open("ended", "w").close() or exit())
open("ready", "w").close()
while True:
    print("x" * 1000, flush=True)
"""

WRITES_AS_ASYNCIO_DOES = """\
import asyncio, sys
async def main():
    loop = asyncio.get_running_loop()
    pipe = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    writer = asyncio.StreamWriter(*pipe, None, loop)
    for number in range(200):
        writer.write(b"%d\\n" % number)
        await writer.drain()
        await asyncio.sleep(0.001)
asyncio.run(main())
"""


@pytest.mark.nightly
def test_a_program_that_watches_its_output_pipe_finds_it_open(box: Box) -> None:
    box.write("job.py", WRITES_AS_ASYNCIO_DOES)
    code, _, err = raw(box)
    assert code == 0
    assert of_the_job(err) == b"".join(b"%d\n" % number for number in range(200))


def test_a_job_saves_although_nobody_reads_what_is_printed(box: Box) -> None:
    """A terminal that stands still (Ctrl-S) keeps neither signals nor files back."""
    box.write("job.py", PRINTS_ON)
    process = box.start(box.words(python("job.py"), ()))
    until(lambda: (box.folder / "ready").exists())
    time.sleep(1)  # until pipes are full, which nothing tells
    process.send_signal(signal.SIGTERM)
    until(lambda: (box.folder / "ended").exists(), 10)
    until(box.file.exists, 10)
    assert box.finish(process).report["outcome"] == "ok"


@pytest.mark.nightly
def test_when_the_command_line_is_killed_the_guardian_ends_the_job_and_no_broken_pipe(box: Box) -> None:
    box.write("job.py", PRINTS_ON)
    process = box.start(box.words(python("job.py"), ()))
    read_until(process, "x" * 1000)
    process.kill()
    until(lambda: (box.folder / "ended").exists())


# --- a terminal


class Screen:
    """A terminal of 30 lines in which a command line runs."""

    def __init__(self, box: Box, *options: str, job: str = "job.py") -> None:
        far, near = pty.openpty()
        fcntl.ioctl(near, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        words = box.words(python(job), options)
        env = box.env | {"TERM": "xterm"}
        self.process = subprocess.Popen(
            words, cwd=box.folder, env=env, stdin=near, stdout=near, stderr=near, start_new_session=True
        )
        os.close(near)
        self.text = ""
        self._far = far

    def look(self, seconds: float = 0.01) -> str:
        """All that has been written so far."""
        with suppress(OSError):  # at its end
            while select.select([self._far], [], [], seconds)[0]:
                self.text += os.read(self._far, 1 << 16).decode(errors="replace")
        return self.text

    def type(self, text: str) -> None:
        os.write(self._far, text.encode())

    def end(self) -> int:
        until(lambda: self.look() and self.process.poll() is not None)
        self.look()
        os.close(self._far)
        return self.process.returncode


ASKS = """\
import getpass, sys, time
name = input("name? ")
print("hello", name)
secret = getpass.getpass("password? ")
print("length", len(secret))
breakpoint()
print("end")
"""


def test_a_person_is_asked_and_answers(box: Box) -> None:
    box.write("job.py", ASKS)
    screen = Screen(box)
    until(lambda: screen.look().endswith("name? "))
    screen.type("Ada\n")
    until(lambda: "hello Ada" in screen.look() and screen.text.endswith("password? "))
    screen.type("hunter2\n")
    until(lambda: "length 7" in screen.look() and screen.text.endswith("(Pdb) "))
    screen.type("c\n")
    assert screen.end() == 0
    assert "hunter2" not in screen.text
    assert "end\r\n" in screen.text


@pytest.mark.nightly
def test_a_progress_bar_is_shown_as_it_moves(box: Box) -> None:
    box.write(
        "job.py",
        "import sys\nfor share in (10, 20, 30):\n"
        "    sys.stdout.write(f' {share}%\\r')\n    sys.stdout.flush()\n    sys.stdin.readline()\n",
    )
    screen = Screen(box)
    for share in (10, 20, 30):
        until(lambda share=share: f" {share}%" in screen.look())
        screen.type("\n")
    assert screen.end() == 0


@pytest.mark.nightly
def test_output_on_a_terminal_does_not_grow_by_redrawing(box: Box) -> None:
    box.write(
        "job.py",
        "import time\nfor n in range(7000):\n    print('x' * 95, flush=True)\n    time.sleep(0.0005)\n",
    )
    screen = Screen(box)
    begun = time.monotonic()
    assert screen.end() == 0
    seconds = time.monotonic() - begun
    assert screen.text.count("x" * 95) == 7000
    assert len(screen.text) < 7000 * 110 + (seconds * 4 + 2) * 3000 + 5000


# --- what a job leaves

DAEMON = """\
open("daemon", "w").close()
for word in iter(lambda: open("gate").read(), "end"):
    print("y" * 1_000_000, flush=True)  # more than a pipe holds
    open("printed", "w").close()
"""
LEAVES = """\
import os, subprocess, sys
on_purpose = subprocess.Popen([sys.executable, "daemon.py"], start_new_session=True)
by_mistake = subprocess.Popen(["sleep", "600"])
print("pids", on_purpose.pid, by_mistake.pid, flush=True)
while not os.path.exists("daemon"):
    pass
sys.exit(int(sys.argv[1]))
"""


@pytest.mark.parametrize(
    ("code", "options", "stays"),
    [
        (0, [], True),
        pytest.param(0, ["--stop-all"], False, marks=pytest.mark.nightly),
        pytest.param(1, [], False, marks=pytest.mark.nightly),
    ],
)
def test_what_a_job_leaves_running_on_purpose(
    box: Box, code: int, options: list[str], stays: bool
) -> None:
    box.write("job.py", LEAVES)
    box.write("daemon.py", DAEMON)
    os.mkfifo(box.folder / "gate")
    done = box.run(*python("job.py", str(code)), options=options)
    on_purpose, by_mistake = map(int, re.findall(r"\] pids (\d+) (\d+)", done.err)[0])
    assert done.code == code
    assert not psutil.pid_exists(by_mistake)
    assert psutil.pid_exists(on_purpose) is stays
    said = f"left running: pid {on_purpose}, "
    assert any(said in line for line in done.report["evidence"]) is stays
    assert (said in " ".join(done.out.split())) is stays
    if stays:
        assert box.run(*python("-c", "pass")).code == 0  # which ends what runs before have left behind
        (box.folder / "gate").write_text("go on")
        until(lambda: (box.folder / "printed").exists())
        (box.folder / "gate").write_text("end")
        until(lambda: not psutil.pid_exists(on_purpose))


# --- ended in mid-work

FINALLY = """\
import os, time
lock = os.open(os.environ["RANK"] + ".lock", os.O_CREAT | os.O_EXCL)
try:
    print("ready", flush=True)
    time.sleep(600)
finally:
    open("cleaned", "w").close()
    print("not to be shown", flush=True)
"""


def test_a_job_that_is_ended_at_a_limit_runs_its_finally(box: Box) -> None:
    box.write("job.py", FINALLY)
    done = box.run(
        *python("job.py"), options=["--max-seconds", "2"], env={"RANK": "0", "WORLD_SIZE": "1"}
    )
    assert (box.folder / "cleaned").exists()
    assert (done.code, done.report["outcome"]) == (3, "running")
    assert "ready" in done.err and "not to be shown" not in done.err
    lock = str(Path(box.folder, "0.lock"))
    assert any(f"remove it before the next run: rm {lock}" in line for line in done.report["evidence"])
