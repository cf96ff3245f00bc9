"""The tool alone: a wheel, in an environment of its own, for jobs that run in another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from repository import JOBS, ROOT, copy_of

pytestmark = [pytest.mark.real, pytest.mark.nightly]

WHEELS = Path(sys.prefix) / "wheels"
"""What set-up has kept, since a test has no network."""

MOST = 30
"""Megabytes of files that the tool may take, pip not counted, by promise."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the tool alone in it, installed without a network from a new wheel."""
    checkout, made = copy_of(tmp_path_factory.mktemp("checkout")), tmp_path_factory.mktemp("made")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(made), "."]
    subprocess.run([*pip, *build], cwd=checkout, check=True, timeout=120)
    (wheel,) = made.glob("*.whl")
    alone = tmp_path_factory.mktemp("alone") / "venv"
    venv.create(alone, with_pip=False)
    into = ["--python", str(alone / "bin" / "python")]
    install = ["install", "--no-index", "--find-links", str(WHEELS), str(wheel)]
    subprocess.run([*pip, *into, *install], check=True, timeout=120)
    return alone


def stuck_ranks(alone: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The tool, where the job's own environment is found first."""
    home = Path(sys.executable).parent
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [alone / "bin" / "stuck-ranks", *words],
        cwd=JOBS,
        env={**outside, "PATH": f"{home}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_it_takes_little_room(environment: Path) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    files = [path for path in packages.rglob("*") if path.is_file()]
    files += [environment / "bin" / name for name in ("stuck-ranks", "py-spy")]
    assert sum(path.stat().st_size for path in files) < MOST * 10**6
    names = {path.name for path in packages.iterdir()}
    assert names.isdisjoint({"torch", "lightning", "IPython", "jupyterlab"})


def test_it_diagnoses_a_job_of_another_environment(environment: Path, tmp_path: Path) -> None:
    report, recording = tmp_path / "report.json", tmp_path / "run.rec"
    options = ["--json", report, "--record", recording, "--max-seconds", "60"]
    program = ["torchrun", "--standalone", "--nproc-per-node=3", "chooses_in_one_line.py"]
    done = stuck_ranks(environment, "diagnose", *options, "--", *program)
    assert done.returncode == 2, done.stderr
    told = json.loads(report.read_text())
    assert (told["cause"], told["proved"]) == ("collective-mismatch", True)
    assert told["parting"]["kind"] == "ifexp"
    again = stuck_ranks(environment, "read", "--json", tmp_path / "again.json", recording)
    assert again.returncode == 2, again.stderr
    assert json.loads((tmp_path / "again.json").read_text())["summary"] == told["summary"]


def test_it_explains_and_says_what_it_has_not(environment: Path) -> None:
    explained = stuck_ranks(environment, "explain", "file-lock")
    assert explained.returncode == 0 and "lock" in explained.stdout
    refused = stuck_ranks(environment, "lab", "05")
    assert refused.returncode == 64 and "run `make lab`" in refused.stderr


def test_the_wheel_has_all_files_of_the_package(environment: Path) -> None:
    """A page of a cause or a style sheet that is left out is missed only when it is needed."""
    (package,) = environment.glob("lib/python*/site-packages/stuck_ranks")
    listed = subprocess.run(
        ["git", "ls-files", "helpers"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tracked = {line.removeprefix("helpers/") for line in listed.stdout.splitlines()}
    files = (path for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert tracked == {str(path.relative_to(package)) for path in files}
