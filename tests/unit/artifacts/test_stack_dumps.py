"""Stacks that py-spy and faulthandler have printed, and the error files of torchelastic."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from helpers.artifacts import error_file, faulthandler_text, pyspy_dump
from helpers.observe.account import UnreadableError

TEXT = """\
Process 4242: /usr/bin/python3.11 -u train.py --steps 5
Python v3.11.7 (/usr/bin/python3.11)

Thread 4242 (idle): "MainThread"
    __futex_abstimed_wait_common (libc.so.6)
    all_reduce (torch/distributed/distributed_c10d.py:3252)
        Arguments:
            tensor: <Tensor at 0x7f1e64a1b0b0>
    wrapper (torch/distributed/c10d_logger.py:83)
    train (train.py:15)
        Arguments:
            step: 3
        Locals:
            name: "first"
            token: "abc"
    <module> (train.py:40)
Thread 4250 (active+gil): "prefetch"
    next_batch (data/loader.py:7)
    Thread.run (threading.py:982)
"""


def test_a_text_of_py_spy() -> None:
    told = pyspy_dump.from_text(TEXT.splitlines(), "rank3.txt")
    assert told is not None
    assert (told.pid, told.command[-1], told.busy) == (4242, "5", False)
    main, other = told.threads
    assert [(frame[0], frame[1], frame[2], frame[3]) for frame in main["frames"]] == [
        ("torch/distributed/distributed_c10d.py", 3252, "all_reduce", False),
        ("torch/distributed/c10d_logger.py", 83, "wrapper", False),
        ("train.py", 15, "train", True),
        ("train.py", 40, "<module>", True),
    ]
    assert main["main"] and not other["main"]
    assert main["call"] is not None and main["call"]["op"] == "all_reduce"
    assert main["native"] == {"call": "futex", "fd": None, "target": None, "limited": True}
    assert main.get("values", {})[2] == {"step": "3", "name": '"first"'}
    assert [frame[3] for frame in other["frames"]] == [True, False]


def test_a_text_without_its_head() -> None:
    """On Linux the main thread has the number of its process."""
    told = pyspy_dump.from_text(TEXT.splitlines()[3:], "rank3.txt")
    assert told is not None
    assert (told.pid, told.command) == (4242, ())
    assert [thread["main"] for thread in told.threads] == [True, False]


def test_a_main_thread_that_waits_for_threads_of_autograd_is_at_work() -> None:
    hook = "Thread 4260 (active)\n    reduce_gradients (job/hooks.py:7)\n"
    told = pyspy_dump.from_text(f"{TEXT}{hook}".splitlines(), "rank3.txt")
    assert told is not None and told.busy


def test_what_py_spy_prints_of_this_process() -> None:
    """Its own words, of the version that is installed."""
    python = "import time\ndef wait():\n    print('in', flush=True)\n    time.sleep(600)\nwait()"
    process = subprocess.Popen([sys.executable, "-c", python], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "in\n"
        words = ["py-spy", "dump", "--nonblocking", "--pid", str(process.pid)]
        text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
        words = [*words, "--json", "--locals"]
        value = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    except subprocess.CalledProcessError as problem:
        pytest.skip(f"py-spy may not look here: {problem.stderr}")
    finally:
        process.kill()
        process.communicate()
    assert pyspy_dump.is_json(value)
    of_text, of_json = pyspy_dump.from_text(text.splitlines(), "a"), pyspy_dump.from_json(value, "a")
    assert of_text is not None
    for told in (of_text, of_json):
        (thread,) = told.threads
        assert told.pid == process.pid
        assert [frame[2] for frame in thread["frames"]] == ["wait", "<module>"]


@pytest.mark.parametrize(
    "value", [[{"pid": 1, "thread_id": 2, "frames": 3}], [{"pid": "x", "thread_id": 1, "frames": []}]]
)
def test_json_that_py_spy_does_not_write(value: object) -> None:
    assert pyspy_dump.is_json(value)
    with pytest.raises(UnreadableError):
        pyspy_dump.from_json(value, "a")


FATAL = """\
Fatal Python error: Aborted

Thread 0x00007f1a (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/usr/lib/python3.11/threading.py", line 982 in run

Current thread 0x00007f1b [python] (most recent call first):
  File "/opt/site-packages/torch/distributed/distributed_c10d.py", line 3252 in all_reduce
  File "/home/user/train.py", line 15 in train
  File "/home/user/train.py", line 40 in <module>

Extension modules: numpy._core
"""


def test_a_text_of_faulthandler() -> None:
    told = faulthandler_text.account(FATAL.splitlines(), "rank0.err")
    assert told is not None
    main = next(thread for thread in told.threads if thread["main"])
    assert [(frame[1], frame[3]) for frame in main["frames"]] == [(3252, False), (15, True), (40, True)]
    assert faulthandler_text.account(["Thread 0x01 (most recent call first):"], "a") is None


ERROR = {
    "message": {
        "message": "ValueError: no such split",
        "extraInfo": {
            "py_callstack": "\n".join(
                (
                    "Traceback (most recent call last):",
                    '  File "/home/user/train.py", line 9, in main',
                    "    load()",
                    "ValueError: no such split",
                )
            ),
            "timestamp": "1700000000",
        },
    }
}


def test_an_error_file() -> None:
    assert error_file.is_error_file(ERROR)
    told = error_file.account(ERROR, "/tmp/run/attempt_0/1/error.json")
    assert told.error is not None
    assert (told.local_rank, told.exit_code) == (1, 1)
    assert (told.error["type"], told.error["message"]) == ("ValueError", "no such split")
    assert told.error["frames"] == [("/home/user/train.py", 9, "main", True)]


@pytest.mark.parametrize(
    "value", [{"message": "Signal 9 (SIGKILL)"}, {"message": {"message": "x", "extraInfo": 3}}]
)
def test_an_error_file_with_less_in_it(value: dict[str, object]) -> None:
    assert error_file.is_error_file(value)
    assert error_file.account(value, "error.json").error is not None
