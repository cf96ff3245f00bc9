"""The package: what is in it, by which names, and what building it leaves."""

from __future__ import annotations

import gzip
import importlib
import importlib.metadata
import inspect
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from repository import RECORDINGS, ROOT

import helpers
from helpers.cli.main import main
from helpers.labs import guide_copy
from helpers.model.facts import Report

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PARTS = ("helpers", "notebooks", "docs", "pyproject.toml", "setup.py", "README.md", "LICENSE")
"""All that a wheel is made from."""

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "helpers").rglob("*.py")
    if path.name not in ("__main__.py", "sitecustomize.py")
)


def python(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


# Two names.


def test_every_module_is_one_by_both_names() -> None:
    for number, name in enumerate(MODULES):
        other = name.replace("helpers", "stuck_ranks", 1)
        names = (name, other) if number % 2 else (other, name)  # either may be the first
        one, two = map(importlib.import_module, names)
        assert one is two and one.__name__ == other, name


def test_a_module_is_run_by_the_folders_name() -> None:
    assert "usage: stuck-ranks" in python("-m", "helpers", "--help").stdout
    done = python("-m", "helpers.artifacts.no_such_module")
    assert "No module named helpers.artifacts.no_such_module" in done.stderr


def test_another_copy_of_the_package_is_not_mixed_with_this_one(tmp_path: Path) -> None:
    (tmp_path / "stuck_ranks").mkdir()
    (tmp_path / "stuck_ranks" / "__init__.py").touch()
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import stuck_ranks, helpers"
    assert "ImportError: stuck_ranks has been imported from" in python("-c", program).stderr


# What programs may use.


def test_the_public_names_are_there_and_documented() -> None:
    assert helpers.__all__ == sorted(helpers.__all__)
    for name in helpers.__all__:
        assert name in dir(helpers)
        value = getattr(helpers, name)
        assert name == "__version__" or inspect.getdoc(value)
    assert helpers.Report is Report
    assert inspect.isfunction(helpers.diagnose), "not the package of that name"
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        getattr(helpers, "no_such_name")  # noqa: B009


def test_to_import_the_package_imports_nothing_that_takes_long() -> None:
    program = "import sys, helpers, stuck_ranks; print(*sys.modules)"
    names = set(python("-c", program).stdout.split())
    assert "stuck_ranks" in names
    assert not names & {"torch", "ipywidgets", "msgspec", "psutil", "rich", "stuck_ranks.session"}


def test_a_recording_is_read_by_a_program() -> None:
    report = helpers.read(RECORDINGS / "own_early_stop.jsonl.gz")
    assert (report.verdict.cause, report.verdict.culprits) == ("collective-mismatch", (2,))
    assert helpers.read([str(RECORDINGS / "own_early_stop.jsonl.gz")]).verdict == report.verdict


@pytest.mark.real
@pytest.mark.parametrize("command", ["python -c 'raise SystemExit(3)'", ["python", "-c", "1 / 0"]])
def test_a_job_is_diagnosed_by_a_program(command: str | list[str]) -> None:
    report = helpers.diagnose(command, max_seconds=60)
    assert report.verdict.outcome == "error"


# What is said of it.


def test_the_version_is_that_of_the_metadata(capsys: pytest.CaptureFixture[str]) -> None:
    assert helpers.__version__ == importlib.metadata.version("stuck-ranks")
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == f"stuck-ranks {helpers.__version__}\n"


def test_the_changelog_has_the_version_with_its_date() -> None:
    log = (ROOT / "CHANGELOG.md").read_text()
    version = PYPROJECT["project"]["version"]
    assert re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)$", log, re.MULTILINE)


def test_the_tool_has_no_upper_bound_of_python() -> None:
    assert PYPROJECT["project"]["requires-python"] == ">=3.11"


# What is installed, and what that leaves.


def test_every_room_is_installed_under_the_name_of_the_package() -> None:
    listed = PYPROJECT["tool"]["setuptools"]["packages"]
    rooms = {path.parent.relative_to(ROOT / "helpers") for path in (ROOT / "helpers").rglob("*.py")}
    named = {".".join(("stuck_ranks", *room.parts)) for room in rooms}
    assert listed == sorted(named | {"stuck_ranks.docs"})


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout in which labs have run, and pip has built a wheel into `made`."""
    checkout = tmp_path_factory.mktemp("checkout")
    for name in PARTS:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, checkout / name)
    left = (
        "05_spawn_ports/your_turn.py",
        "05_spawn_ports/.runs/x",
        "03_multigpu_stall/.built/x",
    )
    for name in left:
        (checkout / "notebooks" / name).parent.mkdir(exist_ok=True)
        (checkout / "notebooks" / name).touch()
    words = ("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", "made", ".")
    done = python("-m", "pip", *words, cwd=checkout)
    assert done.returncode == 0, done.stderr
    return checkout


def test_a_wheel_has_nothing_by_the_name_of_the_checkout(built: Path) -> None:
    """A project of the user's may have a package `helpers` of its own."""
    (wheel,) = (built / "made").glob("*.whl")
    with zipfile.ZipFile(wheel) as found:
        names = found.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"stuck_ranks"}
    for name in (
        "py.typed",
        "beacon/inject/sitecustomize.py",
        "diagnose/causes/error.md",
        "docs/report.schema.json",
    ):
        assert f"stuck_ranks/{name}" in names


def test_a_wheel_has_the_guide_in_an_archive(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (wheel,) = (built / "made").glob("*.whl")
    here = unpacked(guide_copy.guide_files())
    with zipfile.ZipFile(wheel) as found:
        archive = found.extract("stuck_ranks/guide.tar.xz", tmp_path)
    monkeypatch.setattr(guide_copy, "ARCHIVE", Path(archive))
    assert unpacked(guide_copy.guide_files()) == here
    assert guide_copy.copy_guide(tmp_path / "guide").conflicts == ()
    assert guide_copy.copy_guide(tmp_path / "guide").written == ()


def unpacked(files: Iterable[tuple[Path, bytes]]) -> dict[Path, bytes]:
    """What the files hold: a recording may be packed again, in another way."""
    return {place: gzip.decompress(it) if place.suffix == ".gz" else it for place, it in files}


def test_building_leaves_nothing_that_make_test_would_meet(built: Path) -> None:
    """`pip install .`, `pipx install .` and `uv tool install .` build in the checkout."""
    left = {path.name for path in built.iterdir()} - {*PARTS, "made"}
    assert left <= {"stuck_ranks.egg-info"}


def test_what_older_builds_have_left_changes_no_lint(tmp_path: Path) -> None:
    """A lesson has a module `build`, which is not the folder `build` of the checkout."""
    lesson = Path("notebooks") / "03_multigpu_stall"
    shutil.copytree(ROOT / lesson, tmp_path / lesson)
    assert "from build import" in (tmp_path / lesson / "prebuilt.py").read_text()
    for name in ("pyproject.toml", ".gitignore"):
        shutil.copy(ROOT / name, tmp_path)
    for name in ("build/lib/stuck_ranks", "dist", "stuck_ranks.egg-info"):
        (tmp_path / name).mkdir(parents=True)
    done = python("-m", "ruff", "check", "--no-cache", ".", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
