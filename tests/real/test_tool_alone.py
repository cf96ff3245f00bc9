"""The tool alone: a wheel, in an environment of its own, for jobs that run in another one."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from contract import SCHEMA
from repository import JOBS, copy_of, listed_files

pytestmark = [pytest.mark.real, pytest.mark.nightly]

WHEELS = Path(sys.prefix) / "wheels"
"""What set-up has kept, since a test has no network."""

MOST = 30
"""Megabytes of files that the tool may take, pip not counted, by promise."""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new source distribution of the checkout, unpacked."""
    checkout, folder = copy_of(tmp_path_factory.mktemp("checkout")), tmp_path_factory.mktemp("made")
    program = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, folder], cwd=checkout, check=True, timeout=120)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def environment(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the tool alone, from a wheel of that source, without a network."""
    made = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(made), "."]
    subprocess.run([*pip, *build], cwd=unpacked, check=True, timeout=120)
    (wheel,) = made.glob("*.whl")
    alone = tmp_path_factory.mktemp("alone") / "venv"
    venv.create(alone, with_pip=False)
    into = ["--python", str(alone / "bin" / "python")]
    install = ["install", "--no-index", "--find-links", str(WHEELS), str(wheel)]
    subprocess.run([*pip, *into, *install], env=outside(), check=True, timeout=120)
    return alone


def outside() -> dict[str, str]:
    """The variables of a shell that knows nothing of this checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def stuck_ranks(alone: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The tool, where the job's own environment is found first."""
    home = Path(sys.executable).parent
    return subprocess.run(
        [alone / "bin" / "stuck-ranks", *words],
        cwd=JOBS,
        env={**outside(), "PATH": f"{home}{os.pathsep}{os.environ['PATH']}", "OMP_NUM_THREADS": "1"},
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


def test_it_says_what_is_there(environment: Path) -> None:
    checked = stuck_ranks(environment, "check")
    assert checked.returncode == 0, checked.stderr
    assert "py-spy" in checked.stdout and "torch" in checked.stdout
    assert "Everything that diagnose, attach, read and explain require is there." in checked.stdout
    seats = stuck_ranks(environment, "check", "--seats", "2")
    assert seats.returncode == 64 and "the guide is not installed" in seats.stderr
    version = stuck_ranks(environment, "--version")
    assert re.fullmatch(r"stuck-ranks \d+\.\d+\.\d+\n", version.stdout)


def test_it_copies_the_guide(environment: Path, tmp_path: Path) -> None:
    copied = stuck_ranks(environment, "guide", tmp_path / "guide")
    assert copied.returncode == 0 and "pip install 'stuck-ranks[labs]'" in copied.stdout
    made = {path.relative_to(tmp_path / "guide") for path in (tmp_path / "guide").rglob("*.*")}
    assert {Path(name) for name in listed_files("notebooks")} <= made


def python(environment: Path, program: str, cwd: Path) -> str:
    words = [environment / "bin" / "python", "-c", program]
    done = subprocess.run(words, cwd=cwd, env=outside(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_program_uses_it_beside_a_package_called_helpers(environment: Path, tmp_path: Path) -> None:
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("NAME = 'theirs'\n")
    program = (
        "import stuck_ranks, helpers\nreport = stuck_ranks.diagnose(['true'])\n"
        "import helpers.__init__\nprint(report.verdict.outcome, helpers.NAME, stuck_ranks.__version__)\n"
        "assert helpers is not stuck_ranks"
    )
    assert python(environment, program, tmp_path).startswith("ok theirs ")
    program = "import stuck_ranks; stuck_ranks.open_lab"
    words = [environment / "bin" / "python", "-c", program]
    done = subprocess.run(words, env=outside(), capture_output=True, text=True, check=False)
    assert "install stuck-ranks[labs]" in done.stderr


def test_its_types_are_seen(environment: Path, tmp_path: Path) -> None:
    client = tmp_path / "client.py"
    client.write_text("import stuck_ranks\noutcome: int = stuck_ranks.read('logs').verdict.outcome\n")
    there = ["--python-executable", environment / "bin" / "python", "--cache-dir", tmp_path / "cache"]
    words = [sys.executable, "-m", "mypy", "--strict", *there, client]
    done = subprocess.run(
        words, cwd=tmp_path, env=outside(), capture_output=True, text=True, check=False
    )
    assert done.stdout.count("error:") == 1, done.stdout
    assert "Incompatible types in assignment" in done.stdout and "'hang'" in done.stdout


def test_the_schema_is_in_the_package(environment: Path, tmp_path: Path) -> None:
    program = (
        "import json; from importlib.resources import files\n"
        "text = (files('stuck_ranks') / 'docs' / 'report.schema.json').read_text()\n"
        "print(json.loads(text)['$id'])"
    )
    assert python(environment, program, tmp_path) == SCHEMA["$id"]


def test_the_tests_run_from_the_source_distribution(unpacked: Path) -> None:
    """There is no repository of git around it."""
    tests = (
        "tests/unit/model",
        "tests/unit/diagnose/test_diagnose.py",
        "tests/unit/tools/test_package.py",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=unpacked,
        env=outside() | {"PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_wheel_has_all_files_of_the_package(environment: Path) -> None:
    """A page of a cause or a style sheet that is left out is missed only when it is needed."""
    (package,) = environment.glob("lib/python*/site-packages/stuck_ranks")
    tracked = {name.removeprefix("helpers/") for name in listed_files("helpers")}
    files = (path.relative_to(package) for path in package.rglob("*") if path.is_file())
    there = {str(path) for path in files if path.suffix != ".pyc" and path.parts[0] != "docs"}
    assert (tracked - {"ARCHITECTURE.md"}) | {"guide.tar.xz"} == there
