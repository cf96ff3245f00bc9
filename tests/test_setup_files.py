"""The files that set the project up agree with each other, and their scripts decide rightly."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import make_lock
import pytest
import run_lab
import run_tests
import setup_env
import yaml
from jupyter_env import jupyter_env, no_announcements
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
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


def pins(lock: str) -> dict[str, str]:
    found = {}
    for line in lock.splitlines():
        if line and not line.startswith("#"):
            name, version = line.split("==")
            found[canonicalize_name(name)] = version
    return found


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
    wrong = [] if str(ranges["python"]) == _sorted(project["requires-python"]) else ["python"]
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
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


# The files themselves.


def test_every_dependency_is_in_the_lock_within_its_range() -> None:
    assert outside_lock(requirements(read("pyproject.toml")), pins(read("requirements.lock"))) == []


@pytest.mark.parametrize("locked", [{}, {"torch": "2.10.0"}, {"torch": "3.0"}])
def test_a_pin_that_lacks_or_lies_outside_is_found(locked: dict[str, str]) -> None:
    assert outside_lock({"torch": Requirement("torch>=2.11,<2.16")}, locked) != []


def test_the_lock_has_no_local_versions_and_no_cuda_packages() -> None:
    locked = pins(read("requirements.lock"))
    assert len(locked) > 100
    assert [v for v in locked.values() if not re.fullmatch(r"[0-9][0-9a-z.]*", v)] == []
    assert [name for name in locked if make_lock.LEFT_OUT.match(name)] == []


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
    assert environment["dependencies"][-1]["pip"][-1] == "-e ."
    assert environment["name"] == "stuck-ranks"
    assert environment["channels"] == ["conda-forge", "nodefaults"]


def test_the_makefile_has_the_targets_that_the_readme_names() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b", read("README.md")))
    assert {"lab", "test", "clean"} <= named
    assert named <= targets(read("Makefile"))
    assert targets("lab: x\ntest : y\n") == {"lab"}


def test_ci_runs_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.read_text().splitlines()[-1] == "exec make test"
    assert os.access(script, os.X_OK)


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
    assert done.stderr.startswith("Stuck Ranks needs Python 3.11, 3.12 or 3.13")
    assert done.stderr.count("\n") == 1


# Choosing PyTorch, and setting up.


def never_asked() -> bool:
    pytest.fail("the index was asked without need")


@pytest.mark.parametrize(("answers", "build"), [(True, setup_env.CPU), (False, setup_env.UNKNOWN)])
def test_without_a_driver_the_cpu_build_is_taken_if_its_index_answers(
    answers: bool, build: setup_env.Build
) -> None:
    assert setup_env.choose_build("Linux", False, lambda: answers) == build


def test_with_a_driver_or_on_macos_the_index_is_not_asked() -> None:
    assert setup_env.choose_build("Linux", True, never_asked) == setup_env.CUDA
    assert setup_env.choose_build("Darwin", False, never_asked) == setup_env.SMALL


def test_too_little_disk_is_refused_in_one_sentence() -> None:
    setup_env.check_disk(setup_env.CPU, setup_env.CPU.needed_bytes)
    with pytest.raises(setup_env.SetupError, match=r"needs 12 GB of .* 5\.0 GB are free"):
        setup_env.check_disk(setup_env.CUDA, 5 * setup_env.GB)


def test_the_pin_of_torch_is_read_from_the_lock() -> None:
    assert setup_env.torch_pin(read("requirements.lock")) == pins(read("requirements.lock"))["torch"]
    with pytest.raises(setup_env.SetupError):
        setup_env.torch_pin("torchmetrics==1.9.0\n# torch==2.13.0\n")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the set-up's inputs, without an environment."""
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    monkeypatch.setattr(setup_env, "LOCK", tmp_path / "requirements.lock")
    monkeypatch.setattr(setup_env, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(setup_env, "cpu_index_answers", lambda: True)
    monkeypatch.setattr(setup_env, "has_nvidia_driver", lambda: False)
    return tmp_path


def test_set_up_installs_once_torch_first_from_the_cpu_index(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[list[str]] = []
    monkeypatch.setattr(setup_env, "pip_install", lambda _, arguments: calls.append(arguments))
    assert setup_env.main(["test"]) == 0
    first, second = calls
    assert first[-1].startswith("torch==")
    assert second[-2:] == ["-e", ".[labs,test]"]
    for call in calls:
        assert call[:2] == ["-c", str(checkout / "requirements.lock")]
        assert call[2:4] == ["--extra-index-url", setup_env.CPU_INDEX]

    assert setup_env.main(["test"]) == 0
    assert setup_env.main(["lab"]) == 0  # the tests' packages include those of the labs
    assert len(calls) == 2

    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("line-length = 100", "line-length = 90"))
    assert setup_env.main(["lab"]) == 0  # a linter's setting installs nothing
    assert len(calls) == 2

    (checkout / "requirements.lock").write_text("torch==2.12.0\n")
    assert setup_env.main(["lab"]) == 0
    assert len(calls) == 4
    assert not setup_env.is_current("test")


def test_a_failing_pip_fails_and_leaves_no_stamp(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(checkout))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert setup_env.main(["lab"]) == 1
    said = capsys.readouterr()
    assert re.search(r"^ERROR: .*torch==", said.out, re.MULTILINE)
    assert said.err.startswith("pip could not install PyTorch")
    assert not setup_env.stamp("lab").exists()


def test_wrong_usage_of_set_up_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup_env.main([]) == 64
    assert "usage" in capsys.readouterr().err


# Writing the lock.


def test_the_lock_leaves_out_this_project_local_versions_and_cuda() -> None:
    frozen = """\
# Editable install with no version control (stuck-ranks==0.1.0)
-e /somewhere
nvidia-cublas==13.0.0
pip==23.2.1
Jinja2==3.1.6
torch==2.13.0+cpu
triton==3.5.0
attrs==26.1.0
"""
    text = make_lock.locked(frozen)
    assert pins(text) == {"attrs": "26.1.0", "jinja2": "3.1.6", "torch": "2.13.0"}
    assert text.index("attrs==") < text.index("Jinja2==") < text.index("torch==2.13.0\n")


# Starting JupyterLab.


def test_jupyter_reads_and_writes_nothing_in_the_home() -> None:
    base = {"PATH": "/usr/bin", "PYTHONPATH": "/x", "JUPYTER_PATH": "/y", "HOME": "/home/me"}
    env = jupyter_env(Path("/c/.venv"), Path("/c/.venv/jupyter"), base)
    assert env["PATH"] == "/c/.venv/bin:/usr/bin"
    assert not {"PYTHONPATH", "JUPYTER_PATH"} & set(env)
    folders = {name: value for name, value in env.items() if re.search(r"JUPYTER|IPYTHON", name)}
    assert len(folders) == 6
    assert all(value.startswith("/c/.venv/jupyter/") for value in folders.values())


def test_jupyterlab_does_not_ask_about_news(tmp_path: Path) -> None:
    no_announcements(tmp_path)
    no_announcements(tmp_path)
    config = json.loads((tmp_path / "etc/jupyter/labconfig/page_config.json").read_text())
    assert config == {"disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True}}


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


# Running the tests.


def test_notebooks_are_a_step_only_where_there_are_any(tmp_path: Path) -> None:
    assert "notebooks" not in [step.name for step in run_tests.steps("python", tmp_path)]
    for name in ("notebooks/a/a.ipynb", "notebooks/a/.ipynb_checkpoints/a.ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    last = run_tests.steps("python", tmp_path)[-1]
    assert last.command[-2:] == ["--nbval-cell-timeout=600", "notebooks/a/a.ipynb"]
    assert "--nbval" in last.command


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
    bad = run_tests.Step("bad", [sys.executable, "-c", "raise SystemExit(3)"])
    good = run_tests.Step("good", [sys.executable, "-c", ""])
    absent = run_tests.Step("absent", [str(tmp_path / "nowhere")])
    assert run_tests.run([bad, good, absent], os.environ, tmp_path) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "1 passed, 2 failed"
    assert re.search(r"bad +FAILED", said)
    assert re.search(r"good +ok", said)
    assert run_tests.run([good], os.environ, tmp_path) == 0


def test_a_step_beside_another_is_printed_after_it_and_counts(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each of the two waits until the other has begun: one after the other, they would not end."""
    meet = "import pathlib, sys\npathlib.Path(sys.argv[1]).touch()\n"
    meet += "while not pathlib.Path(sys.argv[2]).exists(): pass\nprint('met', sys.argv[1][-1])"
    one, two = str(tmp_path / "1"), str(tmp_path / "2")
    first = run_tests.Step("first", [sys.executable, "-c", meet, one, two])
    second = run_tests.Step("second", [sys.executable, "-c", meet, two, one], beside=True)
    assert run_tests.run([first, second], os.environ, tmp_path) == 0
    said = capfd.readouterr().out
    assert said.index("met 1") < said.index("== second") < said.index("met 2")
    assert said.splitlines()[-1] == "2 passed, 0 failed"
