"""What a run's folder holds before its job starts, and whom its record names."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from importlib.util import cache_from_source
from pathlib import Path

import psutil
import pytest

from helpers.launch import run_folder


@pytest.fixture
def beacon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A beacon of two modules, neither of them compiled."""
    folder = tmp_path / "beacon"
    (folder / "inject").mkdir(parents=True)
    (folder / "one.py").write_text("ONE = 1\n")
    (folder / "inject" / "sitecustomize.py").write_text("TWO = 2\n")
    monkeypatch.setattr(run_folder, "BEACON", folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    return folder


def furnished(folder: Path) -> list[Path]:
    """The modules of the beacon in the folder of a new run."""
    run_folder.furnish(folder)
    return sorted((folder / "path").rglob("*.py"))


def compiled_from(module: Path) -> tuple[int, int]:
    """Time and size of the source that a compiled file names, as Python compares them (PEP 552)."""
    head = Path(cache_from_source(str(module))).read_bytes()[:16]
    return int.from_bytes(head[8:12], "little"), int.from_bytes(head[12:16], "little")


def test_the_job_finds_the_beacon_compiled(beacon: Path, tmp_path: Path) -> None:
    for run in ("first", "second"):
        modules = furnished(tmp_path / run)
        assert [module.name for module in modules] == ["sitecustomize.py", "one.py"]
        for module in modules:
            assert compiled_from(module) == (int(module.stat().st_mtime), module.stat().st_size)
        (beacon / "one.py").write_text("ONE = 'changed'\n")


def test_nothing_is_written_beside_the_beacon_where_that_is_not_wanted(
    beacon: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert len(furnished(tmp_path / "run")) == 2
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_process_is_named_by_its_pid_and_its_start() -> None:
    pid, start = run_folder.identity(os.getpid())
    assert pid == os.getpid()
    assert start == pytest.approx(psutil.Process().create_time() - psutil.boot_time(), abs=0.02)
    with subprocess.Popen(["true"]) as gone:
        gone.wait()
    assert run_folder.identity(gone.pid) == (gone.pid, 0.0)


def in_the_way(name: Path, what: str) -> None:
    """Put something there that is no folder of our own."""
    if what == "file":
        name.touch()
    elif what == "link":
        name.symlink_to(name.parent)
    else:
        name.mkdir()


@pytest.mark.parametrize("what", ["file", "link", "folder of another"])
def test_what_others_have_put_in_the_way_of_the_runs(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder is taken, and later runs find what was left in it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    user = os.getuid() if what != "folder of another" else os.getuid() + 1
    name = tmp_path / f"stuck-ranks-{user}"
    in_the_way(name, what)
    if what == "folder of another":
        monkeypatch.setattr(os, "getuid", lambda: user)
        monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix, dir: f"{dir}/{prefix}x")  # noqa: A006
        assert run_folder.home() == tmp_path / f"{name.name}-x"
        return
    home = run_folder.home()
    assert home != name and home.name.startswith(f"{name.name}-")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    run_folder.make(home / "job-1", {})
    assert run_folder.home() == home
    assert run_folder.records() == [home / "job-1" / "run.json"]


def test_a_folder_for_temporary_files_that_cannot_be_on_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr(run_folder, "OTHER", str(other))
    for name, place in (("a:b", other), ("a b", tmp_path / "a b"), ("n\nl", tmp_path / "n\nl")):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        assert run_folder.home().parent == place
    monkeypatch.setattr(run_folder, "LONGEST", 3)
    assert run_folder.home().parent == other
