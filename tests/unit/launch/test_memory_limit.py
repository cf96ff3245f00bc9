"""What limits the memory of a job: on trees of files, and with the kernel where it allows that."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from repository import ROOT

from helpers.labs import machine
from helpers.launch import memory_limit
from helpers.launch.control_group import ControlGroup, group_parents, memory_groups, remove
from helpers.launch.launch import LaunchError, launch
from helpers.launch.leftovers import reap_leftovers
from helpers.launch.memory_limit import (
    Limit,
    LimitError,
    Monitor,
    OwnGroup,
    Scope,
    candidates,
    enforcer,
    too_large,
)
from helpers.model.facts import Snapshot
from helpers.observe import memory
from helpers.observe.memory import Kills
from helpers.observe.observer import Observer
from helpers.observe.sampler import Sampler
from helpers.session import Session

GROUPS = group_parents()
needs_group = pytest.mark.skipif(not GROUPS, reason="no memory control group can be made here")

TAKE = """
import time
kept = []
while True:
    kept.append(bytearray(b"x" * 5_000_000))
    time.sleep(0.02)
"""


def tree(folder: Path, files: Mapping[str, str]) -> tuple[Path, Path]:
    """The mounts of control groups and of /proc, made of files."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder / "cgroup", folder / "proc"


V2 = {
    "proc/self/cgroup": "0::/user/app/shell\n",
    "cgroup/cgroup.controllers": "cpu memory\n",
    "cgroup/user/app/cgroup.subtree_control": "cpu memory\n",
    "cgroup/user/app/cgroup.procs": "",
    "cgroup/user/app/shell/cgroup.subtree_control": "",
    "cgroup/user/app/shell/cgroup.procs": "1\n",
}
V1 = {
    "proc/self/cgroup": "4:memory:/job/step\n0::/\n",
    "cgroup/memory/cgroup.procs": "",
    "cgroup/memory/memory.limit_in_bytes": "9\n",
    "cgroup/memory/job/step/cgroup.procs": "1\n",
    "cgroup/memory/job/step/memory.limit_in_bytes": "9\n",
}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (V2, [(2, "user/app")]),
        (V2 | {"cgroup/user/app/cgroup.subtree_control": "cpu\n"}, []),
        (V1, [(1, "memory/job/step")]),
        (V1 | {"proc/self/cgroup": "4:memory:/docker/on/the/host\n"}, [(1, "memory")]),
        (V1 | {"proc/self/cgroup": "0::/\n"}, []),
        ({"proc/self/cgroup": "0::/\n", "cgroup/cgroup.controllers": "memory\n"}, []),
        ({}, []),
    ],
    ids=["v2", "v2 hands no memory on", "v1", "v1 in a container", "no memory", "own root", "macOS"],
)
def test_where_groups_can_be_made(
    tmp_path: Path, files: dict[str, str], found: list[tuple[int, str]]
) -> None:
    root, proc = tree(tmp_path, files)
    parents = group_parents(root, proc)
    assert [(parent.version, parent.folder) for parent in parents] == [
        (version, root / name) for version, name in found
    ]


@pytest.mark.parametrize(
    ("version", "stall", "settings"),
    [
        (2, False, {"memory.max": "7000000", "memory.swap.max": "0"}),
        (1, False, {"memory.limit_in_bytes": "7000000", "memory.oom_control": "0"}),
        (1, True, {"memory.limit_in_bytes": "7000000", "memory.oom_control": "1"}),
    ],
)
def test_a_group_gets_its_limit(
    tmp_path: Path, version: int, stall: bool, settings: dict[str, str]
) -> None:
    group = OwnGroup(ControlGroup(version, tmp_path, tmp_path), Limit(7, stall))
    words = group.open("a run")
    assert words[-1] == str(tmp_path / "a run" / "cgroup.procs")
    assert settings.items() <= {f.name: f.read_text() for f in (tmp_path / "a run").iterdir()}.items()


@pytest.mark.parametrize(
    ("version", "file", "text", "kills", "full"),
    [
        (2, "memory.events", "low 0\noom 3\noom_kill 2\n", 2, False),
        (1, "memory.oom_control", "oom_kill_disable 0\nunder_oom 1\noom_kill 1\n", 1, False),
        (1, "memory.oom_control", "oom_kill_disable 1\nunder_oom 1\noom_kill 0\n", 0, True),
        (1, "memory.oom_control", "oom_kill_disable 1\nunder_oom 0\noom_kill 0\n", 0, False),
    ],
)
def test_what_the_kernel_has_counted(
    tmp_path: Path, version: int, file: str, text: str, kills: int, full: bool
) -> None:
    group = OwnGroup(ControlGroup(version, tmp_path, tmp_path), Limit(7, "disable 1" in text))
    group.open("run")
    (tmp_path / "run" / file).write_text(text)
    view = group.view()
    assert (view.megabytes, view.kills, view.full) == (7, kills, full)
    assert f"version {version}" in view.enforcer


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("0::/user/job\n", "cgroup/user/job/memory.events"),
        ("4:memory:/job\n0::/\n", "cgroup/memory/job/memory.oom_control"),
        ("4:memory:/docker/on/the/host\n", "cgroup/memory/memory.oom_control"),
    ],
    ids=["v2", "v1", "v1 in a container"],
)
def test_kills_are_counted_in_the_group_of_the_job_even_when_it_has_ended(
    tmp_path: Path, group: str, file: str
) -> None:
    counts = tmp_path / file
    root, proc = tree(tmp_path, {"proc/42/cgroup": group, file: "oom 7\noom_kill 5\n"})
    kills = Kills(42, root, proc)
    assert kills.count() == 0
    counts.write_text("oom 9\noom_kill 7\n")
    (proc / "42/cgroup").unlink()
    assert kills.count() == 2
    counts.unlink()
    assert kills.count() == 2


def room(files: Mapping[str, str], folder: Path) -> int | None:
    root, proc = tree(folder, files)
    return machine.memory_room(root, proc)


def test_the_tightest_group_around_a_process_says_how_much_memory_is_left(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/job/step\n",
        "cgroup/job/step/memory.max": "max\n",
        "cgroup/job/step/memory.current": "10\n",
        "cgroup/job/memory.max": "1000\n",
        "cgroup/job/memory.current": "400\n",
        "cgroup/memory.max": "5000\n",
        "cgroup/memory.current": "900\n",
    }
    assert room(files, tmp_path) == 600


@pytest.mark.parametrize(("limit", "left"), [("1000", 0), ("2000", 500), ("9223372036854771712", None)])
def test_memory_left_in_a_container_with_version_1(tmp_path: Path, limit: str, left: int | None) -> None:
    files = {
        "proc/self/cgroup": "5:cpu:/\n4:rdma,memory:/docker/abc\nnonsense\n",
        "cgroup/memory/memory.limit_in_bytes": f"{limit}\n",
        "cgroup/memory/memory.usage_in_bytes": "1500\n",
    }
    assert room(files, tmp_path) == left


def test_where_no_control_group_is_mounted_none_limits(tmp_path: Path) -> None:
    assert memory_groups("self", tmp_path, tmp_path) == []
    assert room({}, tmp_path) is None


class Killed:
    """A run whose command, process 42, was killed at once."""

    pid, folder = 42, None

    def __init__(self) -> None:
        self.started = time.time()

    def poll(self) -> int:
        return signal.SIGKILL

    def reaped(self) -> dict[int, int]:
        return {}

    def processes(self) -> list[psutil.Process]:
        return []


def test_a_job_in_a_group_of_its_own_is_counted_there_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = f"proc/{os.getpid()}/cgroup", "proc/42/cgroup"
    events = {"cgroup/ours/memory.events": "oom_kill 3\n", "cgroup/job/memory.events": "oom_kill 5\n"}
    root, proc = tree(tmp_path, {ours: "0::/ours\n", theirs: "0::/job\n", **events})
    monkeypatch.setattr(memory, "Kills", partial(Kills, root=root, proc=proc))
    sampler = Sampler(Killed(), ["job"], tmp_path, "silent")
    observer = Observer(sampler.watched)
    assert observer.take(sampler.look()).memory_kills == 0
    tree(tmp_path, {"cgroup/ours/memory.events": "oom_kill 9\n"})
    assert observer.take(sampler.look()).memory_kills == 0
    tree(tmp_path, {"cgroup/job/memory.events": "oom_kill 6\n"})
    assert observer.take(sampler.look()).memory_kills == 1


def test_where_nothing_is_counted_nothing_was_killed(tmp_path: Path) -> None:
    assert Kills(42, *tree(tmp_path, {})).count() == 0


def test_a_scope_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, proc = tree(tmp_path, {**V2, "user/bus": ""})
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "user"))
    monkeypatch.setattr(memory_limit.shutil, "which", lambda name: f"/bin/{name}")
    [_, scope] = candidates(Limit(7), root, proc)
    assert isinstance(scope, Scope)
    words = scope.open("a-run")
    assert words[0] == "/bin/systemd-run"
    assert words[-1] == "--"
    assert {"--user", "--scope", "--unit=a-run", "MemoryMax=7000000"} <= set(words)
    place = proc / "42"
    place.mkdir()
    (place / "cgroup").write_text("0::/user/app\n")
    (root / "user/app/memory.events").write_text("oom_kill 1\n")
    scope.watch(type("Run", (), {"pid": 42}))
    assert scope.view().kills == 1
    (root / "user/app/memory.events").unlink()
    assert scope.view().kills == 1


def test_only_version_1_stalls_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, proc = tree(tmp_path, V2)
    assert candidates(Limit(7, stall=True), root, proc) == []
    with pytest.raises(LimitError, match="version 1"):
        enforcer(Limit(7, stall=True), root, proc)
    monkeypatch.setattr("helpers.session.enforcer", lambda limit: enforcer(limit, root, proc))
    with pytest.raises(LaunchError, match="version 1"):
        Session([sys.executable, "-c", ""], memory_limit=Limit(7, stall=True)).start()


def test_where_no_group_works_a_monitor_does_it(tmp_path: Path) -> None:
    """A tree of files is no control group: the trial leaves files behind in it, so it is not empty."""
    root, proc = tree(tmp_path, V1)
    step = root / "memory/job/step"
    (step / "cgroup.procs").unlink()
    step.chmod(0o500)
    try:
        assert isinstance(enforcer(Limit(7), root, proc), Monitor)
    finally:
        # So that an ordinary user can remove it, and what root was let leave in it.
        for folder in (step, *(path for path in step.rglob("*") if path.is_dir())):
            folder.chmod(0o700)


@pytest.mark.parametrize(("sizes", "victim"), [([3, 5, 2], 1), ([3, 3, 4], None), ([], None)])
def test_the_largest_is_killed_above_the_limit_only(sizes: list[int], victim: int | None) -> None:
    names: Any = range(len(sizes))
    assert too_large(dict(zip(names, sizes, strict=True)), 9 if victim is not None else 10) == victim


def run(limit: Limit) -> tuple[Snapshot, Any]:
    """The only rank of a job takes more and more memory, until a verdict."""
    env = os.environ | {"RANK": "0", "WORLD_SIZE": "1"}
    session = Session([sys.executable, "-c", TAKE], env=env, memory_limit=limit, max_seconds=60)
    return session.start().wait().snapshot, session


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="sees memory in /proc")
def test_a_monitor_kills_and_says_what_it_may_miss(
    monkeypatch: pytest.MonkeyPatch, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    monkeypatch.setattr("helpers.session.enforcer", Monitor)
    snapshot, session = run(Limit(200))
    assert snapshot.memory_kills >= 1
    assert session.report.verdict.cause == "out-of-memory"
    assert any("a monitor" in line for line in session.report.verdict.evidence)
    assert any("less than" in line for line in snapshot.not_seen)
    assert processes_left() == []


@pytest.mark.real
@needs_group
@pytest.mark.parametrize("stall", [False, True])
def test_the_kernel_limits_a_job_and_its_group_is_removed(
    stall: bool, processes_left: Callable[[], list[psutil.Process]]
) -> None:
    if stall and all(parent.version != 1 for parent in GROUPS):
        pytest.skip("only control groups of version 1 stall processes")
    snapshot, session = run(Limit(200, stall))
    report = session.report
    assert report.verdict.cause == "out-of-memory"
    assert report.verdict.outcome == ("hang" if stall else "error")
    assert any("the kernel" in line for line in report.verdict.evidence)
    assert snapshot.not_seen == ()
    assert processes_left() == []
    assert session._limit.group.name.startswith("job-")
    assert not session._limit.group.exists()


@pytest.mark.real
@needs_group
def test_a_group_is_removed_when_its_owner_is_killed(
    processes_left: Callable[[], list[psutil.Process]],
) -> None:
    kind = f"killed-{os.getpid()}"
    code = (
        "from helpers.launch.launch import launch\n"
        "from helpers.launch.memory_limit import Limit, enforcer\n"
        f"launch(['sleep', '60'], kind_of_run={kind!r}, limit=enforcer(Limit(100)))\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    owner = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)
    assert owner.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 4.0
    while groups_left(kind) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert groups_left(kind) == []
    assert processes_left() == []


@pytest.mark.real
@needs_group
def test_a_group_is_removed_with_what_a_killed_guardian_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kind = f"guarded-{os.getpid()}"
    started = launch(["sleep", "60"], kind_of_run=kind, limit=enforcer(Limit(100)))
    try:
        assert groups_left(kind) != []
        psutil.Process(started.guardian_pid).kill()
    finally:
        started.close()
    assert groups_left(kind) == []
    assert reap_leftovers() == 0


def test_to_remove_a_group_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove(tmp_path / "gone")


def groups_left(kind: str) -> list[Path]:
    """The groups of runs of a kind; groups of other kinds may belong to other people's runs."""
    return [path for parent in GROUPS for path in parent.folder.glob(f"{kind}-*")]
