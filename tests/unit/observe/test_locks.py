"""Who holds a lock: of the kernel, or one that consists of a file."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil
import pytest
from beacon_records import site
from on_disk import sources

from helpers.observe import locks, polling

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")

ME = os.getpid()
NOBODY = 2**22 - 1
KEEPS_OPEN = "import os; f = os.open(path, os.O_CREAT | os.O_EXCL)"
FLOCKS = "import fcntl; f = open(path, 'w'); fcntl.flock(f, fcntl.LOCK_EX)"
LOCKFS = "import fcntl; f = open(path, 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"


@contextmanager
def other(code: str, path: Path) -> Iterator[int]:
    """Another process that has done something with `path` and lives on: its pid."""
    program = f"path = {str(path)!r}; {code}; print(flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield process.pid
        finally:
            process.kill()


def test_a_lock_file_belongs_to_the_process_that_has_it_open(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    assert locks.holder("lock file", str(lock), ME) is None
    with other(KEEPS_OPEN, lock) as pid:
        assert locks.holder("lock file", str(lock), ME) == pid
        (tmp_path / "link").symlink_to(lock)
        assert locks.holder("lock file", str(tmp_path / "link"), ME) == pid
        assert locks.holder("lock file", str(lock), pid) == 0, "a process does not wait for itself"
    assert locks.holder("lock file", str(lock), ME) == 0


def test_whoever_closed_a_lock_file_at_once_may_still_remove_it(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with other("open(path, 'x').close()", lock):
        assert locks.holder(locks.OWN_FILE, str(lock), ME) is None
    with other("pass", lock) as pid, lock.open() as held:
        assert locks.holder(locks.OWN_FILE, str(lock), pid) == ME, held


def named(file: IO[str], text: str) -> None:
    file.truncate(0)
    file.seek(0)
    file.write(text)
    file.flush()


def test_a_lock_file_may_name_its_process(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    host = os.uname().nodename
    with lock.open("w") as file:
        for op in ("lock file", locks.OWN_FILE):
            named(file, f"{ME}\n")
            assert locks.holder(op, str(lock), NOBODY) == ME
            named(file, f"{ME}\n{host}\ntoken\n")
            assert locks.holder(op, str(lock), NOBODY) == ME
            named(file, f"{NOBODY}\n")
            assert locks.holder(op, str(lock), ME) == 0
            named(file, f"{NOBODY}\nanother-machine\n")
            assert locks.holder(op, str(lock), ME) is None, "a process of another machine"


def test_a_wait_that_may_give_up_proves_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(f"{NOBODY}\n")
    assert locks.holder(locks.OWN_FILE, str(lock), ME) == 0
    assert locks.holder(locks.TIMED_FILE, str(lock), ME) is None


def test_a_number_in_a_file_that_is_no_lock_is_no_process(tmp_path: Path) -> None:
    step = tmp_path / "step"
    for number in (NOBODY, ME):
        step.write_text(f"{number}\n")
        assert locks.holder(locks.OWN_FILE, str(step), NOBODY) is None


@pytest.mark.parametrize(
    ("seconds", "found"),
    [(60, 0), (1.5, ME), (0, ME), (-60, ME)],
    ids=["long before", "just before", "then", "after"],
)
def test_a_later_process_has_the_number_in_a_lock_file_by_chance(
    seconds: float, found: int, tmp_path: Path
) -> None:
    """Later by more than the second to which the kernel rounds the time of boot, and one to spare."""
    lock = tmp_path / "lock"
    lock.write_text(f"{ME}\n")
    written = psutil.Process().create_time() - seconds
    os.utime(lock, (written, written))
    assert locks.holder("lock file", str(lock), NOBODY) == found


@pytest.mark.parametrize("text", ["", "0", "3", "1732180000", "held by train.py", "12.5"])
def test_other_text_in_a_lock_file_names_nobody(text: str, tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.write_text(text)
    assert locks.holder("lock file", str(lock), ME) == 0


@pytest.mark.parametrize("mine", [True, False])
def test_what_cannot_be_seen_is_not_held_by_nobody(
    mine: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    monkeypatch.setattr(os, "geteuid", lambda: lock.stat().st_uid if mine else 4711)
    assert locks.holder("lock file", str(lock), ME) == (0 if mine else None)


SHARED = [("ext4", 0), ("tmpfs", 0), ("overlay", 0), ("nfs4", None), ("lustre", None), ("ceph", None)]


@pytest.mark.parametrize(("kind", "found"), SHARED)
def test_another_machine_may_hold_a_lock_file_on_a_network_file_system(
    kind: str, found: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    mounts = [("/", "nfs4" if found == 0 else "ext4"), (str(tmp_path), kind), (f"{tmp_path}/a", "nfs")]
    partitions = [psutil._ntuples.sdiskpart("dev", point, name, "") for point, name in mounts]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: partitions)
    assert locks.holder("lock file", str(lock), ME) == found


@pytest.mark.parametrize(("op", "code"), [("flock", FLOCKS), ("fcntl", LOCKFS)])
def test_a_lock_of_the_kernel_belongs_to_whom_the_kernel_names(
    op: str, code: str, tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    with other(code, lock) as pid, lock.open("w") as file:
        assert locks.holder(op, str(lock), ME) == pid, "one that asks again and again"
        waits = other(code.replace("; fcntl", "; print(flush=True); fcntl"), lock)
        with waits as waiter:
            assert locks.holder(op, str(lock), waiter) == pid
        assert not file.closed
    with lock.open("w") as file:
        assert locks.holder(op, str(lock), ME) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        assert locks.holder("flock", str(lock), NOBODY) == ME


@pytest.mark.parametrize("code", [FLOCKS, LOCKFS])
def test_the_files_that_a_process_has_open_and_another_has_locked(code: str, tmp_path: Path) -> None:
    lock, free = tmp_path / "lock", tmp_path / "free"
    free.touch()
    with other(code, lock) as pid:
        assert locks.held_against(ME) == []
        with lock.open(), free.open():
            assert locks.held_against(ME) == [(str(lock), pid)]
            assert locks.held_against(pid) == [], "what it has locked itself does not count"


AGAIN = [
    ("fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", True),
    ("fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)", True),
    ("fcntl.flock(file, fcntl.LOCK_EX)", False),
    ("os.open(path, os.O_CREAT | os.O_EXCL)", False),
]


@pytest.mark.parametrize(("attempt", "expected"), AGAIN)
@pytest.mark.parametrize("caught", ["BlockingIOError", "OSError", "ValueError"])
def test_a_loop_that_asks_for_a_lock_again_and_again(
    attempt: str, expected: bool, caught: str, tmp_path: Path
) -> None:
    source = f"while True:\n  try:\n    {attempt}\n    break\n  except {caught}:\n    time.sleep(1)"
    program = tmp_path / "program.py"
    program.write_text(source)
    found = polling.asks_again(site(str(program), [6, 6, 4, 17]), sources())
    assert found == (expected and caught != "ValueError")


LOOPS = [
    ("while os.path.exists(path):\n    time.sleep(1)", "/job/lock"),
    ("while path.exists():\n    time.sleep(1)", "/job/lock"),
    ("while self.path.exists():\n    time.sleep(1)", "/job/own"),
    ("while os.path.exists(folder + '/lock'):\n    time.sleep(1)", "/job/lock"),
    ("while (Path(folder) / 'lock').exists():\n    time.sleep(1)", "/job/lock"),
    ("while os.path.exists(os.path.join(folder, 'lock')):\n    time.sleep(1)", "/job/lock"),
    ("while os.path.exists(f'{folder}/lock'):\n    time.sleep(1)", "/job/lock"),
    ("while not os.path.exists(path):\n    time.sleep(1)", None),
    ("while os.path.exists(unknown):\n    time.sleep(1)", ""),
    ("while busy:\n    time.sleep(1)", None),
    ("if os.path.exists(path):\n    time.sleep(1)", None),
    ("for _ in range(9):\n    time.sleep(1)", None),
]
ATTEMPTS = [
    ("os.open(path, os.O_CREAT | os.O_EXCL)", "/job/lock"),
    ("open(path, 'x')", "/job/lock"),
    ("open(path, mode='x')", "/job/lock"),
    ("path.open('x')", "/job/lock"),
    ("path.touch(exist_ok=False)", "/job/lock"),
    ("os.mkdir(path)", "/job/lock"),
    ("path.mkdir()", "/job/lock"),
    ("open(existing)", None),
    ("open(path, 'w')", None),
    ("path.touch()", None),
    ("path.mkdir(exist_ok=True)", None),
]
LOOPS += [
    (f"while True:\n  try:\n    {call}\n    break\n  except FileExistsError:\n    time.sleep(1)", path)
    for call, path in ATTEMPTS
]


@pytest.mark.parametrize(("source", "path"), LOOPS)
def test_a_loop_that_waits_for_a_lock_file(source: str, path: str | None, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(textwrap.dedent(source))
    line = 1 + source[: source.index("time.sleep")].count("\n")
    strings = {"path": "/job/lock", "self.path": "/job/own", "folder": "/job", "existing": "/job/x"}
    place = site(str(program), [line, line, 0, 0], strings=strings)
    assert polling.lock_file(place, sources()) == path


def test_an_attempt_that_does_not_catch_is_no_wait_for_a_lock(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("while True:\n    open(path, 'x')\n    time.sleep(1)")
    place = site(str(program), [3, 3, 0, 0], strings={"path": "/job/lock"})
    assert polling.lock_file(place, sources()) is None


FOR_EVER = [
    "while os.path.exists(path):\n    time.sleep(1)",
    "while True:\n  try:\n    open(path, 'x')\n    break\n  except OSError:\n    time.sleep(1)",
    "while path.exists():\n    print('busy')\n    time.sleep(1)",
]
FOR_A_TIME = [
    "while path.exists() and time.time() < end:\n    time.sleep(1)",
    "while path.exists():\n    time.sleep(1)\n    if old(path):\n        break",
    "while path.exists():\n    time.sleep(1)\n    remove_if_old(path)",
    "while path.exists():\n    time.sleep(1)\n    tries -= 1\n    assert tries > 0",
    "for _ in range(9):\n    time.sleep(1)",
]


@pytest.mark.parametrize("source", [*FOR_EVER, *FOR_A_TIME])
def test_only_a_loop_that_does_nothing_else_waits_for_ever(source: str, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(source)
    line = 1 + source[: source.index("time.sleep")].count("\n")
    place = site(str(program), [line, line, 0, 0])
    assert polling.gives_up(place, sources()) == (source in FOR_A_TIME)


@pytest.mark.parametrize(
    ("name", "told"), [("lock", True), ("train.lock", True), ("lock.py", False), ("lock.ipynb", False)]
)
def test_a_program_about_a_lock_is_no_lock_file(name: str, told: bool, tmp_path: Path) -> None:
    with (tmp_path / name).open("w"):
        assert locks.lock_files([os.getpid()]) == ([str(tmp_path / name)] if told else [])
