"""Waits for file locks, as logs and tracebacks tell of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_text import found, report

from helpers.report.report import to_json

Told = tuple[str, str, tuple[int, ...]]


ASKS = "DEBUG:filelock:Attempting to acquire lock {} on /shared/data.lock\n"
WAITS = "DEBUG:filelock:Lock {} not acquired on /shared/data.lock, waiting 0.05 seconds ...\n"
HAS = "DEBUG:filelock:Lock {} acquired on /shared/data.lock\n"
LATE = "DEBUG:filelock:Timeout on acquiring lock {} on /shared/data.lock\n"
STEPS = "".join(f"step {number} loss 2.{number}\n" for number in range(60))
VALUE = (
    'Traceback (most recent call last):\n  File "/app/train.py", line 8, in run\nValueError: bad batch\n'
)

LOGS = {
    "one waits for another": (ASKS.format(1) + HAS.format(1) + ASKS.format(2) + WAITS.format(2), True),
    "its last word is that it asks": (ASKS.format(1), True),
    "it asked, and others go on": (ASKS.format(1) + STEPS, False),
    "it waited long ago": (ASKS.format(1) + WAITS.format(1) + STEPS, False),
    "it has the lock": (ASKS.format(1) + WAITS.format(1) + HAS.format(1), False),
    "it gave up": (ASKS.format(1) + WAITS.format(1) + LATE.format(1), False),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_of_filelocks(tmp_path: Path, name: str) -> None:
    text, waits = LOGS[name]
    cause = report(tmp_path, text).verdict.cause
    assert cause == ("file-lock" if waits else "unknown")
    assert ("/shared/data.lock" in report(tmp_path, text).verdict.detail) == waits


def test_a_wait_for_a_lock_alone_is_no_hang(tmp_path: Path) -> None:
    text = ASKS.format(1) + WAITS.format(1)
    assert found(tmp_path, text) == ("running", "file-lock", ())
    limit = "slurmstepd: error: *** JOB 1 ON n0 CANCELLED AT 2026-11-23T12:00:00 DUE TO TIME LIMIT ***\n"
    assert found(tmp_path, text + limit) == ("hang", "file-lock", ())
    assert found(tmp_path, text + VALUE) == ("error", "error", ())


TORCH = "/opt/venv/lib/python3.11/site-packages/torch/utils"
BUILD = f"""\
Traceback (most recent call last):
  File "/app/train.py", line 5, in <module>
    load(name="ext", sources=["ext.cpp"])
  File "{TORCH}/cpp_extension.py", line 1371, in _jit_compile
    baton.wait()
"""
BATON = BUILD + f'  File "{TORCH}/file_baton.py", line 42, in wait\n    time.sleep(self.wait_seconds)\n'
NINJA = BUILD.replace("_jit_compile", "_run_ninja_build").replace("baton.wait()", "subprocess.run(")
CTRL_C = "KeyboardInterrupt\n"


def labelled(rank: int, text: str) -> str:
    return "".join(f"[rank{rank}]: {line}\n" for line in text.splitlines())


BATONS: dict[str, tuple[str, Told]] = {
    "Ctrl-C": (BATON + CTRL_C, ("hang", "file-lock", ())),
    "cut off": (BUILD, ("hang", "file-lock", ())),
    "marked as code": (
        "".join(f"  `{line}`\n" for line in BUILD.splitlines()[1:]),
        ("hang", "file-lock", ()),
    ),
    "of a rank": (labelled(1, BATON + CTRL_C), ("hang", "file-lock", ())),
    "an exception of another rank": (
        labelled(0, VALUE) + labelled(1, BATON + CTRL_C),
        ("error", "error", (0,)),
    ),
    "another rank builds": (
        labelled(0, NINJA + CTRL_C) + labelled(1, BATON + CTRL_C),
        ("error", "unknown", ()),
    ),
    "the wait itself fails": (
        BATON + "OSError: [Errno 116] Stale file handle\n",
        ("error", "error", ()),
    ),
}


@pytest.mark.parametrize("name", BATONS)
def test_a_traceback_that_ends_in_the_wait_for_a_build(tmp_path: Path, name: str) -> None:
    text, told = BATONS[name]
    assert found(tmp_path, text) == told


@pytest.mark.parametrize(
    ("said", "advised"),
    [
        ("ValueError: Couldn't acquire lock on /cache/exp-16-rdv.lock from process 4.", True),
        ("OSError: [Errno 5] Input/output error: '/cache/model.lock'", True),
        ("TypeError: cannot pickle '_thread.lock' object", False),
    ],
)
def test_an_exception_that_names_a_lock_file_gets_the_advice_of_locks(
    tmp_path: Path, said: str, advised: bool
) -> None:
    told = report(tmp_path, said + "\n")
    assert told.verdict.cause == "error"
    assert str(to_json(told)["fix"]).startswith("Put the lock file") == advised


def test_the_process_of_a_lock_that_could_not_be_taken_is_a_rank(tmp_path: Path) -> None:
    text = "ValueError: Couldn't acquire lock on /cache/exp-16-rdv.lock from process 4.\n"
    assert found(tmp_path, text) == ("error", "error", (4,))
