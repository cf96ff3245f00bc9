"""The files that set the project up agree with each other, and their scripts decide rightly."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import carry_progress
import fresh
import platformdirs
import pytest
import run_lab
import run_tests
import setup_env
import steady
import yaml
from jupyter_env import configure, dress, jupyter_env, transport
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT

from helpers.labs import progress

CONDA_NAMES = {"pytorch": "torch"}
ONLY_CONDA = {"python", "pip", "cxx-compiler"}


def read(name: str) -> str:
    return (ROOT / name).read_text()


# Pure functions that hold one file against another; each returns what is wrong.


def requirements(pyproject: str) -> dict[str, Requirement]:
    project = tomllib.loads(pyproject)["project"]
    texts = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    return {canonicalize_name(r.name): r for r in map(Requirement, texts)}


def locked_versions() -> dict[str, str]:
    """Name -> version of every package that is locked."""
    locks = [*setup_env.LOCKS.values(), setup_env.TORCH_LOCK]
    found = re.findall(
        r"^([\w.-]+)==([^\s;]+)", "".join(lock.read_text() for lock in locks), re.MULTILINE
    )
    assert len(found) == len(dict(found)) > 150
    return dict(found)


def outside_lock(wanted: Mapping[str, Requirement], locked: Mapping[str, str]) -> list[str]:
    return [
        f"{name}{requirement.specifier} against {locked.get(name)}"
        for name, requirement in wanted.items()
        if name not in locked or not requirement.specifier.contains(locked[name])
    ]


def conda_lists(environment: str) -> tuple[list[str], list[str]]:
    """Return the packages of conda and those of pip."""
    listed = yaml.safe_load(environment)["dependencies"]
    conda = [item for item in listed if isinstance(item, str)]
    pip = [line for item in listed if isinstance(item, dict) for line in item["pip"]]
    return conda, pip


def conda_disagreements(environment: str, pyproject: str) -> list[str]:
    wanted = requirements(pyproject)
    conda, pip = conda_lists(environment)
    ranges = {}
    for text in [*conda, *(line for line in pip if not line.startswith("-"))]:
        requirement = Requirement(text)
        ranges[CONDA_NAMES.get(requirement.name, requirement.name)] = requirement.specifier
    project = tomllib.loads(pyproject)["project"]
    # The guide has an end where the tool has none: all its packages must be there for that Python.
    floor = f"{project['requires-python']},<3.14"
    wrong = [] if str(ranges["python"]) == _sorted(floor) else ["python"]
    for name, specifier in ranges.items():
        if name in ONLY_CONDA:
            continue
        if name not in wanted or wanted[name].specifier != specifier:
            wrong.append(name)
    needed = [*project["dependencies"], *project["optional-dependencies"]["labs"]]
    return wrong + [
        f"{text} is absent" for text in needed if canonicalize_name(Requirement(text).name) not in ranges
    ]


def _sorted(specifier: str) -> str:
    return str(Requirement(f"python{specifier}").specifier)


def lines_without_reason(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not re.search(r"# \w", line)]


def targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))


# The files themselves.


def test_every_dependency_is_in_the_lock_within_its_range() -> None:
    assert outside_lock(requirements(read("pyproject.toml")), locked_versions()) == []


@pytest.mark.parametrize("locked", [{}, {"torch": "2.10.0"}, {"torch": "3.0"}])
def test_a_pin_that_lacks_or_lies_outside_is_found(locked: dict[str, str]) -> None:
    assert outside_lock({"torch": Requirement("torch>=2.11,<2.16")}, locked) != []


def test_every_package_but_torch_is_locked_by_hashes_and_from_no_named_host() -> None:
    for lock in setup_env.LOCKS.values():
        text = lock.read_text()
        listed = [line for line in text.splitlines() if re.match(r"[a-z]", line)]
        hashed = re.findall(r"^[a-z][^\n]* \\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
        assert len(listed) == len(hashed) > 15
        assert not re.search(r"https?:|index-url|find-links|file:", text)
        assert not re.search(r"^(torch|triton|nvidia-.*|cuda-.*)==", text, re.MULTILINE)
    (torch,) = [line for line in setup_env.TORCH_LOCK.read_text().splitlines() if line[0] != "#"]
    assert torch == f"torch=={setup_env.torch_version()}" and re.fullmatch(r"[\d.]+", torch[7:])


def open_ends(locked: Mapping[str, str]) -> list[str]:
    """What installed packages that are locked need here, and the lock does not have."""
    found = set()
    for name in set(locked) & {canonicalize_name(d.name) for d in importlib.metadata.distributions()}:
        for needed in map(Requirement, importlib.metadata.requires(name) or ()):
            other = canonicalize_name(needed.name)
            if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
                continue
            if BY_TORCH.fullmatch(other):
                continue
            if other not in locked or not needed.specifier.contains(locked[other]):
                found.add(f"{name} needs {needed}")
    return sorted(found)


BY_TORCH = re.compile(r"triton|(nvidia|cuda)-.*")
"""What only the CUDA build of torch brings."""


def test_the_locks_leave_nothing_open() -> None:
    """They are installed without a resolver, so all that their packages need must be in them."""
    locked = locked_versions()
    assert open_ends(locked) == []
    assert open_ends({name: version for name, version in locked.items() if name != "jinja2"}) != []
    assert open_ends(locked | {"rich": "2.0"}) != []


def test_what_the_labs_need_is_not_left_to_the_tests() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    named = {name for name, _ in setup_env.pins(setup_env.LOCKS["lab"])} | {"torch"}
    needed = [*project["dependencies"], *project["optional-dependencies"]["labs"]]
    assert {canonicalize_name(Requirement(text).name) for text in needed} <= named
    assert not named & {"pytest", "mypy", "playwright"}


def test_the_environment_for_conda_agrees_with_pyproject() -> None:
    assert conda_disagreements(read("environment.yml"), read("pyproject.toml")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pytorch>=2.11,<2.16", "pytorch>=2.10,<2.16"),
        ("  - rich>=", "  - poor>="),
        ("      - deepspeed>=0.18,<0.20", "      - deepspeed"),
        ("python>=3.11,<3.14", "python>=3.10,<3.14"),
    ],
)
def test_an_environment_that_disagrees_is_found(before: str, after: str) -> None:
    good = read("environment.yml")
    assert before in good
    assert conda_disagreements(good.replace(before, after), read("pyproject.toml")) != []


def test_every_line_of_the_environment_has_a_reason() -> None:
    assert lines_without_reason(read("environment.yml")) == []
    assert lines_without_reason("- a  # why\n- b\n- c #\n") == ["- b", "- c #"]


def test_every_dependency_of_pyproject_has_a_reason() -> None:
    text = read("pyproject.toml")
    lines = [line for line in text.splitlines() if re.match(r'    "[a-z0-9-]+[<>=]', line)]
    assert len(lines) == len(requirements(text))
    assert lines_without_reason("\n".join(lines)) == []


def test_the_checkout_itself_comes_last_and_from_conda_forge_only() -> None:
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["dependencies"][-1]["pip"][-1] == "-e .[labs]"
    assert environment["name"] == "stuck-ranks"
    assert environment["channels"] == ["conda-forge", "nodefaults"]


def test_the_makefile_has_the_targets_that_the_readme_names() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b", read("README.md") + read("CONTRIBUTING.md")))
    assert {"lab", "test", "clean"} <= named
    assert named <= targets(read("Makefile"))
    assert targets("lab: x\ntest : y\n") == {"lab"}


def test_ci_runs_all_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.read_text().splitlines()[-2:] == ["make test", "make nightly"]
    assert os.access(script, os.X_OK)


def test_the_workflow_tests_every_python_builds_tags_and_asks_for_releases_weekly() -> None:
    flow = yaml.safe_load(read(".github/workflows/checks.yml"))
    jobs, events = flow["jobs"], flow[True]  # YAML 1.1 reads the key `on` as true
    runs = {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}
    assert runs["test"] == ["make test PYTHON=python"]
    assert runs["newer-releases"] == ["make upgrade-check PYTHON=python"]
    assert {"python -m build", "python -m twine check --strict dist/*"} < set(runs["wheel"])
    made = set(re.findall(r"make ([a-z-]+)", "\n".join(line for run in runs.values() for line in run)))
    assert made <= targets(read("Makefile"))

    tried = re.findall(r"python(3\.\d+)", read("tools/find_python.sh"))
    assert jobs["test"]["strategy"]["matrix"]["python"] == tried == ["3.11", "3.12", "3.13", "3.14"]
    assert {"pull_request", "push", "schedule"} < set(events) and len(events["schedule"]) == 1
    assert re.fullmatch(r"\d+ \d+ \* \* \d", events["schedule"][0]["cron"])
    assert events["push"]["tags"] == ["v*"] and "refs/tags/v" in jobs["wheel"]["if"]
    assert "schedule" in jobs["newer-releases"]["if"] and "!= 'schedule'" in jobs["test"]["if"]
    assert jobs["wheel"]["needs"] == "test"
    assert flow["permissions"] == {"contents": "read"}
    assert all("timeout-minutes" in job for job in jobs.values())


def test_neither_test_nor_nightly_asks_for_releases() -> None:
    """What is released is no fault of a commit."""
    for name in ("tools/run_tests.py", ".ci/run"):
        assert "upgrade" not in read(name)


# Choosing a Python.


def fake_python(folder: Path, name: str, fits: bool, venv: bool) -> None:
    path = folder / name
    answers = f"*ensurepip*) exit {int(not venv)};; *) exit {int(not fits)};;"
    path.write_text(f'#!/bin/sh\ncase "$2" in {answers} esac\n')
    path.chmod(0o755)


def find_python(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    for tool in ("sh", "basename"):
        (folder / tool).symlink_to(shutil.which(tool) or tool)
    return subprocess.run(
        ["sh", str(ROOT / "tools" / "find_python.sh")],
        env={"PATH": str(folder), **env},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_first_python_that_fits_and_runs_is_taken(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3.11", fits=False, venv=True)  # such as pyenv's empty commands
    fake_python(tmp_path, "python3.12", fits=True, venv=False)
    fake_python(tmp_path, "python3.13", fits=True, venv=True)
    fake_python(tmp_path, "python3", fits=True, venv=True)
    assert find_python(tmp_path).stdout == "python3.13\n"


def test_a_python_without_venv_is_named_in_one_sentence(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3.12", fits=True, venv=False)
    done = find_python(tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "python3.12-venv" in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_python_is_one_sentence_and_a_named_one_is_not_replaced(tmp_path: Path) -> None:
    fake_python(tmp_path, "python3", fits=True, venv=True)
    done = find_python(tmp_path, PYTHON=str(tmp_path / "nowhere"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Stuck Ranks needs Python 3.11, 3.12, 3.13 or 3.14")
    assert done.stderr.count("\n") == 1


# Choosing PyTorch, and setting up.


CPU = f"{setup_env.torch_version()}+cpu"
USUAL = setup_env.torch_version()
EXTRA = ["--extra-index-url", setup_env.CPU_INDEX]


@pytest.mark.parametrize(
    ("system", "driver", "own", "of_cpu_index", "build"),
    [
        ("Linux", False, [USUAL], [CPU], ("CPU", EXTRA)),
        ("Linux", False, [USUAL, CPU], [], ("CPU", [])),  # a folder of wheels
        ("Linux", False, [USUAL], [], ("CUDA", [])),
        ("Linux", True, [USUAL], [CPU], ("CUDA", [])),
        ("Darwin", False, [USUAL], [CPU], ("usual", [])),
        ("Linux", False, ["1.0"], ["1.0+cpu"], None),
    ],
)
def test_without_a_driver_the_cpu_build_comes_from_where_it_is_offered(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    system: str,
    driver: bool,
    own: list[str],
    of_cpu_index: list[str],
    build: tuple[str, list[str]] | None,
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(shutil, "which", lambda _: "nvidia-smi" if driver else None)
    found = {(): (own, ""), ("--index-url", setup_env.CPU_INDEX): (of_cpu_index, "")}
    monkeypatch.setattr(setup_env, "offered", lambda pip, package, *options: found[options])
    if build is None:
        with pytest.raises(setup_env.SetupError, match=r"^PyTorch .* has none for Python"):
            setup_env.choose_torch()
        return
    assert setup_env.choose_torch() == build
    why = "neither pip's index nor" in (said := capsys.readouterr().out)
    assert why == (build[0] == "CUDA" and not driver)
    assert ("PIP_FIND_LINKS" in said) == why


def test_what_comes_is_announced_and_too_little_disk_is_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_env.announce(["lab"], "CPU", 80.0)
    assert capsys.readouterr().out == (
        f"Packages to download: PyTorch {USUAL}, CPU build, 0.19 GB; other packages, 0.12 GB. "
        "Free disk: 80.0 GB.\n"
    )
    setup_env.announce(["lab", "test"], None, 80.0)
    assert capsys.readouterr().out == (
        "Packages to download: other packages, 0.21 GB. Free disk: 80.0 GB.\n"
    )
    with pytest.raises(setup_env.SetupError, match=r"needs 12 GB of free disk in .*: make room"):
        setup_env.announce(["lab"], "CUDA", 5.0)


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of its own with two packages to install; pip finds a folder of wheels and no index."""
    root, wheels = tmp_path / "a checkout", tmp_path / "wheels"
    wheels.mkdir()
    root.mkdir()
    locks = {"lab": root / "requirements.lock", "test": root / "requirements-test.lock"}
    for name, value in {
        "ROOT": root,
        "VENV": root / ".venv",
        "PIP": (str(root / ".venv" / "bin" / "python"), "-m", "pip"),
        "LOCKS": locks,
        "TORCH_LOCK": root / "requirements-torch.lock",
    }.items():
        monkeypatch.setattr(setup_env, name, value)
    monkeypatch.setenv("STUCK_RANKS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    (root / "pyproject.toml").write_text(PROJECT)
    (root / "build_here.py").write_text(BACKEND)
    wheel(wheels, "torch", "1.0+cpu")
    (root / "requirements-torch.lock").write_text("torch==1.0\n")
    for kind, lock in locks.items():
        digest = wheel(wheels, f"for-{kind}", "1.0")
        lock.write_text(f"for-{kind}==1.0 \\\n    --hash=sha256:{digest}\n")
    return root


PROJECT = """\
[build-system]
requires = []
build-backend = "build_here"
backend-path = ["."]
[project]
name = "stuck-ranks"
version = "0.1.0"
dependencies = ["for-lab"]
"""

BACKEND = """\
from zipfile import ZipFile

SAID = "stuck_ranks-0.1.0.dist-info/"


def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "stuck_ranks-0.1.0-py3-none-any.whl"
    with ZipFile(f"{folder}/{name}", "w") as file:
        file.writestr(SAID + "METADATA", "Metadata-Version: 2.1\\nName: stuck-ranks\\nVersion: 0.1.0\\n"
                      "Requires-Dist: for-lab\\n")
        tags = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        file.writestr(SAID + "WHEEL", "Wheel-Version: 1.0\\n" + tags)
        file.writestr(SAID + "RECORD", "")
    return name


build_editable = build_wheel
"""


def wheel(folder: Path, name: str, version: str) -> str:
    """A wheel without content; its SHA-256."""
    title = f"{name.replace('-', '_')}-{version}"
    path = folder / f"{title}-py3-none-any.whl"
    said = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(f"{title}.dist-info/METADATA", said)
        file.writestr(
            f"{title}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{title}.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def steps(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What pip was run for, since this was last asked."""
    return re.findall(r"^((?:Installing|Keeping) .*) \.\.\.$", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.nightly
def test_the_set_up_goes_on_where_it_was_cut_off_and_installs_nothing_twice(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packages, torch, here, alone = (
        "Installing the packages",
        "Installing PyTorch 1.0",
        "Installing this checkout",
        "Keeping the packages of the tool alone",
    )
    assert setup_env.main(["lab"]) == 0
    assert steps(capsys) == [packages, torch, here]
    assert (checkout / ".venv" / "stamp-lab").exists()
    assert setup_env.main(["lab"]) == 0  # pyproject.toml has changed, for example
    assert steps(capsys) == [here]
    (torn,) = checkout.glob(".venv/lib/*/site-packages/for_lab-*")
    (torn / "RECORD").unlink()
    assert setup_env.main(["test"]) == 0
    assert steps(capsys) == [packages, here, alone]
    assert {wheel.name.partition("-")[0] for wheel in checkout.glob(".venv/wheels/*.whl")} >= {"for_lab"}
    assert setup_env.main(["test"]) == 0
    assert steps(capsys) == [here]


@pytest.mark.nightly
def test_what_cannot_be_had_is_one_sentence_and_leaves_no_stamp(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = setup_env.LOCKS["lab"]
    lock.write_text(lock.read_text()[:-5] + "dead\n")
    assert setup_env.main(["lab"]) == 1
    said = capsys.readouterr()
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in said.out
    assert re.fullmatch(
        r"The set-up cannot go on\. Installing the packages failed; .*pip\.log\.\n", said.err
    )

    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setattr(setup_env, "CPU_INDEX", "http://127.0.0.1:9/cpu")
    assert setup_env.main(["lab"]) == 1
    assert capsys.readouterr().err == (
        "The set-up cannot go on. PyTorch 1.0 cannot be installed because the package index cannot be "
        "reached.\n"
    )
    assert not list(checkout.glob(".venv/stamp-*"))


# Trying both commands as a new user.


def test_what_was_announced_is_read_from_the_newest_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    setup_env.announce(["lab", "test"], None, 80.0)
    setup_env.announce(["lab"], "CPU", 80.0)
    said = capsys.readouterr().out
    assert fresh.announced(said, torch_is_here=False) == pytest.approx(310.0)
    assert fresh.announced(said, torch_is_here=True) == pytest.approx(120.0)


# Starting JupyterLab.


def test_jupyter_reads_and_writes_nothing_in_the_home() -> None:
    base = {"PATH": "/usr/bin", "PYTHONPATH": "/x", "JUPYTER_PATH": "/y", "HOME": "/home/me"}
    env = jupyter_env(Path("/c/.venv"), Path("/c/.venv/jupyter"), base)
    assert env["PATH"] == "/c/.venv/bin:/usr/bin"
    assert not {"PYTHONPATH", "JUPYTER_PATH"} & set(env)
    folders = {name: value for name, value in env.items() if re.search(r"JUPYTER|IPYTHON", name)}
    assert len(folders) == 6
    assert all(value.startswith("/c/.venv/jupyter/") for value in folders.values())


def test_where_the_checkout_cannot_be_written_jupyter_writes_to_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_lab.private(tmp_path) == tmp_path / "jupyter"
    monkeypatch.setattr(os, "access", lambda folder, _: folder != tmp_path)
    assert run_lab.private(tmp_path) == platformdirs.user_state_path("stuck-ranks") / "jupyter"
    (tmp_path / "jupyter").mkdir()
    assert run_lab.private(tmp_path) == tmp_path / "jupyter"


# Progress, which nothing but Reset removes.


@pytest.mark.parametrize(
    "env",
    [
        {"STUCK_RANKS_STATE": "/own", "XDG_STATE_HOME": "/xdg", "HOME": "/home/me"},
        {"XDG_STATE_HOME": "/xdg", "HOME": "/home/me"},
        {"XDG_STATE_HOME": "relative", "HOME": "/home/me"},
        {"STUCK_RANKS_STATE": "", "XDG_STATE_HOME": "", "HOME": "/home/me"},
    ],
)
def test_progress_is_carried_to_where_the_labs_look_for_it(
    env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("STUCK_RANKS_STATE", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert carry_progress.state(env, platform.system()) == progress.folder()
    jupyter = jupyter_env(Path("/c/.venv"), Path("/c/.venv/jupyter"), env)
    assert jupyter.get("STUCK_RANKS_STATE") == env.get("STUCK_RANKS_STATE")


class Old:
    """A checkout in whose .venv progress is kept, and a home.

    Args:
        folder: where both are made.
    """

    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "checkout", folder / "home" / "state"
        self.venv = self.root / ".venv"
        self.kept = self.venv / "jupyter" / "progress"
        self.kept.mkdir(parents=True)
        self.env = {"STUCK_RANKS_STATE": str(self.home)}
        for name in ("01", "02", "03"):
            self.write(self.kept / f"{name}.json", "old", 1000.0)

    @staticmethod
    def write(file: Path, text: str, when: float) -> None:
        file.write_text(text)
        os.utime(file, (when, when))

    def carried(self) -> dict[str, str]:
        return {file.name: file.read_text() for file in self.home.iterdir()}


@pytest.fixture
def old(tmp_path: Path) -> Old:
    return Old(tmp_path)


def test_progress_is_carried_once_and_replaces_nothing_newer(old: Old) -> None:
    old.home.mkdir(parents=True)
    old.write(old.home / "01.json", "newer", 2000.0)
    old.write(old.home / "02.json", "older", 500.0)
    for _ in range(2):
        carry_progress.carry(old.venv, old.env)
        assert old.carried() == {"01.json": "newer", "02.json": "old", "03.json": "old"}
        assert not old.kept.exists()


def test_progress_stays_where_it_is_wanted_there_or_is_another_user_s(
    old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_progress.carry(old.venv, {"STUCK_RANKS_STATE": str(old.kept)})
    monkeypatch.setattr(os, "getuid", lambda: 4711)
    carry_progress.carry(old.venv, old.env)
    assert len(list(old.kept.iterdir())) == 3 and not old.home.exists()


def test_a_home_that_cannot_be_written_is_told_and_nothing_is_lost(
    old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    old.home.parent.write_text("no folder")
    monkeypatch.setattr(setup_env, "VENV", old.venv)
    monkeypatch.setattr(setup_env, "PIP", (str(old.venv / "bin" / "python"), "-m", "pip"))
    monkeypatch.setenv("STUCK_RANKS_STATE", str(old.home))
    with pytest.raises(carry_progress.CarryError, match=r"^Your progress stays in .+STATE.+\.$"):
        setup_env.make_venv()
    assert len(list(old.kept.iterdir())) == 3


def test_a_new_environment_leaves_progress_alone(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_env, "VENV", old.venv)
    monkeypatch.setattr(setup_env, "PIP", (str(old.venv / "bin" / "python"), "-m", "pip"))
    monkeypatch.setenv("STUCK_RANKS_STATE", str(old.home))
    (old.venv / "bin").mkdir()
    (old.venv / "bin" / "python").write_text("broken")
    setup_env.make_venv()
    assert (old.venv / "bin" / "pip").exists() and not old.kept.exists()
    assert set(old.carried()) == {"01.json", "02.json", "03.json"}


@pytest.mark.skipif(shutil.which("make") is None, reason="runs make")
def test_make_clean_leaves_progress_alone(old: Old) -> None:
    (old.root / "tools").mkdir()
    for name in ("Makefile", "tools/find_python.sh", "tools/carry_progress.py"):
        shutil.copy(ROOT / name, old.root / name)
    (old.home / "jupyter").mkdir(parents=True)
    env = {**os.environ, **old.env, "PYTHON": sys.executable}
    clean = ["make", "clean"]
    refused = subprocess.run(clean, cwd=old.root, env=env | {"PYTHON": "/nowhere"}, capture_output=True)
    assert refused.returncode != 0 and len(list(old.kept.iterdir())) == 3
    for _ in range(2):
        subprocess.run(clean, cwd=old.root, env=env, check=True)
        assert not old.venv.exists()
        assert {file.name for file in old.home.iterdir()} == {"jupyter", "01.json", "02.json", "03.json"}


KEPT = {"stuck-ranks-saved", "notebooks/1/your_turn1", "benchmarks/gpu/gpu.tar.gz"}
"""What a user has saved or written, and an archive that takes a GPU to make again."""


@pytest.mark.skipif(shutil.which("make") is None, reason="runs make")
def test_make_clean_removes_what_git_ignores_but_for_what_is_the_user_s(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    patterns = [line for line in read(".gitignore").splitlines() if not line.startswith("#")]
    made = {pattern.replace("*", "1").rstrip("/") for pattern in patterns}
    assert made > KEPT
    in_depth = {f"notebooks/deep/{name}" for name in ("__pycache__", ".runs", ".built")}
    for name in made | in_depth:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch() if "core" in name or "." in path.name[1:] else path.mkdir()
    subprocess.run(["make", "clean"], cwd=tmp_path, check=True)
    assert {name for name in made | in_depth if (tmp_path / name).exists()} == KEPT


def test_kernels_are_reached_by_sockets_where_the_folder_takes_them(tmp_path: Path) -> None:
    with TemporaryDirectory(dir="/tmp") as short:
        assert transport(Path(short) / "runtime") == "ipc"
        assert list((Path(short) / "runtime").iterdir()) == []
    assert transport(tmp_path / ("r" * 100)) == "tcp"


def test_jupyterlab_asks_nothing_about_news_and_opens_markdown_rendered(tmp_path: Path) -> None:
    configure(tmp_path)
    configure(tmp_path)
    config = json.loads((tmp_path / "etc/jupyter/labconfig/page_config.json").read_text())
    assert config == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}
    settings = json.loads((tmp_path / "share/jupyter/lab/settings/overrides.json").read_text())
    viewers = settings["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]
    assert viewers == {"markdown": "Markdown Preview"}
    editor = settings["@jupyterlab/fileeditor-extension:plugin"]
    assert editor == {"editorConfig": {"lineWrap": False}}


def test_no_listing_of_a_notebook_is_broken(tmp_path: Path) -> None:
    dress(tmp_path)
    dress(tmp_path)
    assert json.loads((tmp_path / "jupyter_server_config.json").read_text())["LabApp"]["custom_css"]
    assert "white-space: pre;" in (tmp_path / "custom" / "custom.css").read_text()


def test_the_lab_listens_on_loopback_and_allows_root_only_to_root(tmp_path: Path) -> None:
    screen = {"DISPLAY": ":0"}
    mine = run_lab.lab_arguments(tmp_path, screen, 1000, "Linux")
    assert "--ServerApp.ip=127.0.0.1" in mine
    assert f"--ServerApp.root_dir={tmp_path}" in mine
    assert "--LabApp.default_url=/lab" in mine
    assert not {"--allow-root", "--no-browser"} & set(mine)
    assert "--allow-root" in run_lab.lab_arguments(tmp_path, screen, 0, "Linux")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "index.ipynb").touch()
    begin = "--LabApp.default_url=/lab/tree/notebooks/index.ipynb"
    assert begin in run_lab.lab_arguments(tmp_path, screen, 1000, "Linux")


@pytest.mark.parametrize(
    ("env", "system", "opens"),
    [
        ({"DISPLAY": ":0"}, "Linux", True),
        ({}, "Darwin", True),
        ({"WSL_DISTRO_NAME": "Debian"}, "Linux", True),
        ({}, "Linux", False),
        ({"DISPLAY": ":10", "SSH_CONNECTION": "a 1 b 22"}, "Linux", False),
    ],
)
def test_a_browser_opens_only_where_someone_sees_it(
    tmp_path: Path, env: dict[str, str], system: str, opens: bool
) -> None:
    arguments = run_lab.lab_arguments(tmp_path, env, 1000, system)
    assert ("--no-browser" not in arguments) is opens


SERVER = {"url": "http://127.0.0.1:8890/", "port": 8890, "token": "t0k"}


def test_the_welcome_names_the_address_and_over_ssh_the_tunnel() -> None:
    opened = "lab/tree/notebooks/index.ipynb"
    here = run_lab.welcome(SERVER, opened, {}, "me", "node1")
    assert "http://127.0.0.1:8890/lab/tree/notebooks/index.ipynb?token=t0k\n" in here
    assert "ssh" not in here
    there = run_lab.welcome(
        SERVER, opened, {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.1 22"}, "me", "node1"
    )
    assert "    ssh -L 8890:127.0.0.1:8890 me@node1\n" in there
    other = run_lab.welcome(SERVER, opened, {"SSH_CONNECTION": "10.0.0.9 5000 10.0.0.1 2222"}, "me", "n")
    assert "ssh -p 2222 -L" in other


@pytest.mark.nightly
def test_one_address_is_printed_and_its_token_is_the_user_s_alone() -> None:
    command = [sys.executable, str(ROOT / "tools" / "run_lab.py"), "--no-browser"]
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, **pipe) as running:
        said = ""
        while "Stop it" not in said and (line := running.stdout.readline()):
            said += line
        address = re.search(r"http://\S+", said)
        # JupyterLab answers after it has printed what it prints at its start.
        with urllib.request.urlopen(address[0], timeout=60) as page:
            assert page.status == 200
        (kept,) = run_lab.private(run_lab.VENV).glob(f"runtime/token-{running.pid}")
        assert kept.stat().st_mode & 0o777 == 0o600 and kept.read_text() in address[0]
        running.terminate()
        said += running.communicate(timeout=60)[0]
    assert len(re.findall(r"https?://|file://", said)) == 1
    assert not kept.exists()


# Running the tests.


def test_what_make_test_leaves_out_the_nightly_or_weekly_run_does() -> None:
    pieces = {}
    for run in ("test", "nightly"):
        for lane in run_tests.lanes("python", run, Path("guide")):
            for step in filter(lambda step: step.is_pytest, lane):
                assert step.command[:4] == ("python", "-m", "pytest", "-m")
                pieces.setdefault(step.command[5:], []).append(step.command[4])
    quick, nightly = "not nightly and not weekly", "nightly and not weekly"
    assert set(map(tuple, pieces.values())) == {(quick, nightly)}
    ((weekly,),) = run_tests.lanes("python", "weekly", Path("guide"))
    assert weekly.command[4] == "weekly" and pieces[weekly.command[5:]]
    said = {word for words in pieces for word in words}
    parts = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    assert {"guide", *parts} <= said


def test_counts_are_read_from_pytests_report(tmp_path: Path) -> None:
    report = tmp_path / "r.xml"
    report.write_text(
        '<testsuites><testsuite tests="9" failures="2" errors="1" skipped="3"/></testsuites>'
    )
    assert str(run_tests.count_report(report, 1)) == "3 passed, 3 failed, 3 skipped"
    report.write_text('<testsuites><testsuite tests="4"/></testsuites>')
    assert str(run_tests.count_report(report, 0)) == "4 passed, 0 failed"
    assert str(run_tests.count_report(report, 3)) == "4 passed, 1 failed"  # it broke off
    assert str(run_tests.count_report(tmp_path / "none.xml", 2)) == "0 passed, 1 failed"


def test_all_steps_run_and_one_failure_fails_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = run_tests.Step("bad", (sys.executable, "-c", "raise SystemExit(3)"))
    good = run_tests.Step("good", (sys.executable, "-c", ""))
    absent = run_tests.Step("absent", (str(tmp_path / "nowhere"),))
    assert run_tests.run([(bad, good, absent)], os.environ, tmp_path) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "1 passed, 2 failed"
    assert re.search(r"bad +FAILED", said)
    assert re.search(r"good +ok", said)
    assert run_tests.run([(good,)], os.environ, tmp_path) == 0


def test_a_lane_beside_another_is_printed_after_it_and_counts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of the two waits until the other has begun: one after the other, they would not end."""
    meet = "import pathlib, sys\npathlib.Path(sys.argv[1]).touch()\n"
    meet += "while not pathlib.Path(sys.argv[2]).exists(): pass\nprint('met', sys.argv[1][-1])"
    one, two = str(tmp_path / "1"), str(tmp_path / "2")
    first = run_tests.Step("first", (sys.executable, "-c", meet, one, two))
    second = run_tests.Step("second", (sys.executable, "-c", meet, two, one))
    assert run_tests.run([(first,), (second,)], os.environ, tmp_path) == 0
    said = capfd.readouterr().out
    assert said.index("met 1") < said.index("== second") < said.index("met 2")
    assert said.splitlines()[-1] == "2 passed, 0 failed"


STOPPED = """
import run_tests, signal, sys
from pathlib import Path

stubborn = "import signal, sys, time, pathlib\\n"
stubborn += "for number in (signal.SIGINT, signal.SIGTERM): signal.signal(number, signal.SIG_IGN)\\n"
stubborn += "pathlib.Path(sys.argv[1]).touch(); print(end='', flush=True); signal.pause()"
folder = Path(sys.argv[1])

def step(name):
    return run_tests.Step(name, (sys.executable, "-c", stubborn, str(folder / name)))

def chromium():
    if sys.argv[2] == "before":
        import subprocess
        subprocess.run([sys.executable, "-c", stubborn, str(folder / "before")])

run_tests.lanes = lambda *_: [(step("a"), step("c")), (step("b"), step("d"))]
run_tests.provide_chromium = chromium
run_tests.configure = lambda _: None
run_tests.with_outputs = lambda folder: folder
sys.exit(run_tests.main([]))
"""
"""`make test` of steps that do not end by themselves, nor by a request to."""


@pytest.mark.parametrize("begun", [["a", "b"], ["before"]])
def test_ctrl_c_ends_what_runs_in_five_seconds_with_one_line_and_starts_nothing(
    tmp_path: Path, begun: list[str]
) -> None:
    command = [sys.executable, "-c", STOPPED, str(tmp_path), begun[0]]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) as running:
        while not all((tmp_path / name).exists() for name in begun):
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        said, _ = running.communicate(timeout=5)
    assert running.returncode == 130
    assert said.splitlines()[-1].startswith("Stopped: ")
    assert "Traceback" not in said and "FAILED" not in said
    assert {file.name for file in tmp_path.iterdir()} == set(begun)


# Repeating them.


def test_rounds_count_for_the_code_that_they_ran() -> None:
    page = (
        steady.HEAD.format(code="abc")
        + "| 1 | c | d | quiet | 9 | 0 | 1 | 5.1 |\n| 2 | c | d | quiet | 8 | 1 | 1 | 5.1 |\n"
    )
    assert steady.failures(page, "abc") == [0, 1]
    assert steady.failures(page, "abd") == steady.failures("", "abc") == []
