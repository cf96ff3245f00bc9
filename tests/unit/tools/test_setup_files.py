"""The files that set the project up agree with each other, and their scripts decide rightly."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import carry_progress
import fresh
import make_lock
import platformdirs
import pytest
import run_lab
import run_tests
import setup_env
import steady
import yaml
from jupyter_env import configure, dress, jupyter_env, transport
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from pins import Pin, PinsError
from pins import read as read_pins
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


def pins(lock: str) -> dict[str, str]:
    return {canonicalize_name(pin.name): pin.version for pin in read_pins(lock)}


def too_new(locked: Iterable[Pin]) -> list[str]:
    """Pins that do not admit every Python that we support and they are for."""
    return [
        f"{pin.requirement} needs Python {pin.python}"
        for pin in locked
        for there in make_lock.environments()
        if holds(pin, there)
        and pin.python != "any"
        and not SpecifierSet(pin.python).contains(there["python_full_version"])
    ]


def holds(pin: Pin, there: dict[str, str]) -> bool:
    return not pin.marker or Marker(pin.marker).evaluate(there)


def open_ends(locked: Iterable[Pin]) -> list[str]:
    """What installed packages of the lock need, on some Python and system, and the lock does not pin."""
    found = set()
    listed = list(locked)
    for there in make_lock.environments():
        have = {pin.name: pin for pin in listed if holds(pin, there)}
        for pin in have.values():
            for needed in installed_needs(pin.name):
                name = canonicalize_name(needed.name)
                if needed.marker is not None and not needed.marker.evaluate(there):
                    continue
                if name not in have or not needed.specifier.contains(have[name].version):
                    found.add(f"{pin.name} needs {needed}")
    return sorted(found)


@functools.cache
def installed_needs(name: str) -> list[Requirement]:
    """What an installed package needs, but for what the CUDA build of torch brings."""
    try:
        needed = [Requirement(text) for text in importlib.metadata.requires(name) or ()]
    except importlib.metadata.PackageNotFoundError:
        return []
    return [one for one in needed if not make_lock.LEFT_OUT.match(canonicalize_name(one.name))]


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


def test_every_line_of_the_lock_is_a_pin_as_it_is_written() -> None:
    text = read("requirements.lock")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert [pin.line for pin in read_pins(text)] == lines
    (torch,) = (pin for pin in read_pins(text) if pin.name == "torch")
    assert torch.cuda is not None and torch.cuda > 5 * torch.megabytes


@pytest.mark.parametrize("text", ["numpy>=2  # 1 MB, Python any", "numpy==2", "rich==15  # Python any"])
def test_a_line_that_is_not_a_pin_gets_one_sentence(text: str) -> None:
    with pytest.raises(PinsError, match=r"line 2, is not a pin: .*make lock"):
        read_pins(f"# a lock\n{text}\n")
    with pytest.raises(PinsError, match="no pin of torch"):
        read_pins("numpy==2.4.6  # 1.0 MB, Python >=3.11\n")


def test_every_pin_admits_every_python_that_is_supported() -> None:
    """Down to the first patch release: Debian 12 has Python 3.11.2, Ubuntu 24.04 has 3.12.3."""
    assert too_new(read_pins(read("requirements.lock"))) == []
    late = Pin("soupsieve", "4.1.1", python=">=3.11.5")
    assert too_new([late]) != []
    assert too_new([replace(late, marker="python_version >= '3.12'")]) == []
    project = tomllib.loads(read("pyproject.toml"))["project"]
    (floor,) = re.findall(r"3\.\d+", project["requires-python"])
    supported = {python.rpartition(".")[0] for python in make_lock.PYTHONS}
    assert supported == {"3.11", "3.12", "3.13"}
    named = {line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3." in line}
    assert (named, f"{floor}.0") == (supported, make_lock.PYTHONS[0])
    assert "Python 3.11, 3.12 or 3.13" in read("README.md")


def test_the_lock_leaves_nothing_open() -> None:
    """Its packages are installed without a resolver, so all that they need must be in it."""
    locked = read_pins(read("requirements.lock"))
    assert open_ends(locked) == []
    assert open_ends(pin for pin in locked if pin.name != "jinja2") != []
    assert open_ends(pin for pin in locked if pin.name != "appnope") != []
    assert open_ends(replace(p, version="2.0") if p.name == "rich" else p for p in locked) != []


def test_what_the_labs_need_is_not_left_to_the_tests() -> None:
    for_labs = [pin for pin in read_pins(read("requirements.lock")) if not pin.for_tests]
    assert open_ends(for_labs) == []
    project = tomllib.loads(read("pyproject.toml"))["project"]
    named = {pin.name for pin in for_labs}
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


@pytest.mark.parametrize(("answers", "build"), [(True, setup_env.CPU), (False, setup_env.CUDA)])
def test_without_a_driver_the_cpu_build_is_looked_for_if_its_index_answers(
    answers: bool, build: setup_env.Build
) -> None:
    assert setup_env.wanted_build("Linux", False, lambda: answers) == build


def test_with_a_driver_or_on_macos_the_index_is_not_asked() -> None:
    assert setup_env.wanted_build("Linux", True, never_asked) == setup_env.CUDA
    assert setup_env.wanted_build("Darwin", False, never_asked) == setup_env.OTHER


def test_the_build_that_is_announced_is_the_one_that_pip_takes() -> None:
    assert setup_env.found_build("Linux", ["2.13.0", "2.13.0+cpu"]) == setup_env.CPU
    assert setup_env.found_build("Linux", ["2.13.0"]) == setup_env.CUDA
    assert setup_env.found_build("Darwin", ["2.13.0"]) == setup_env.OTHER


SOME = [
    Pin("torch", "2.13.0", megabytes=190.0, cuda=2700.0),
    Pin("numpy", "2.4.6", megabytes=16.0),
    Pin("rich", "15.0.0", megabytes=4.0),
]


def test_what_comes_is_announced() -> None:
    free = 80 * setup_env.GB
    assert setup_env.announced(SOME, setup_env.CPU, free) == (
        "Packages to download: PyTorch 2.13.0, its CPU build, 0.19 GB; 2 other packages, 0.02 GB. "
        "Free disk: 80.0 GB."
    )
    only = setup_env.announced(SOME[1:], setup_env.CPU, free)
    assert only == "Packages to download: 2 packages, 0.02 GB. Free disk: 80.0 GB."
    assert "its CUDA build, 2.70 GB;" in setup_env.announced(SOME, setup_env.CUDA, free)


def test_too_little_disk_is_refused_in_one_sentence() -> None:
    setup_env.check_disk(setup_env.CPU, setup_env.CPU.needed_bytes)
    with pytest.raises(setup_env.SetupError, match=r"needs 12 GB of .* 5\.0 GB are free"):
        setup_env.check_disk(setup_env.CUDA, 5 * setup_env.GB)


REASONS = [
    ("NewConnectionError('...: Failed to establish a new connection')", "cannot be reached"),
    ("OSError: [Errno 28] No space left on device", "the disk is full"),
    ("ERROR: something else", ""),
]


@pytest.mark.parametrize(("said", "because"), REASONS)
def test_why_pip_failed(said: str, because: str) -> None:
    found = setup_env.reason(said)
    assert found == "" if not because else because in found


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


def record(folder: Path, name: str, version: str, *files: str) -> Path:
    """What pip leaves of an installed package, or of one that was cut off."""
    packages = folder / "lib" / "python3.11" / "site-packages"
    for before in packages.glob(f"{name}-*.dist-info"):
        shutil.rmtree(before)
    info = packages / f"{name}-{version}.dist-info"
    info.mkdir(parents=True)
    for file in files:
        (info / file).touch()
    return info


def stand_in_for_pip(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands are noted; what they ask for is there afterwards; the index has everything."""
    calls: list[list[str]] = []
    record(checkout / ".venv", "pip", "23.0.1", "INSTALLER", "RECORD")
    monkeypatch.setattr(setup_env, "venv_runs", lambda: True)

    def run_pip(_: str, command: Sequence[str]) -> str:
        words = list(command)
        calls.append(words)
        if words[0].endswith("ask_index.py"):
            asked = [word for word in words if "==" in word]
            return json.dumps({word: [word.split("==")[1].split(" ")[0]] for word in asked})
        if "-r" in words:
            words += Path(words[words.index("-r") + 1]).read_text().splitlines()
        for word in words:
            if found := re.match(r"([\w.-]+)==([\w.]+)", word):
                name = found[1].replace("-", "_")
                record(checkout / ".venv", name, found[2], "INSTALLER", "RECORD")
        return ""

    monkeypatch.setattr(setup_env, "run_pip", run_pip)
    return calls


def test_set_up_installs_torch_first_and_then_exactly_the_rest(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in_for_pip(checkout, monkeypatch)
    assert setup_env.main(["lab"]) == 0
    tools, asked, torch, rest, project = calls
    cpu = ["--extra-index-url", setup_env.CPU_INDEX]
    assert tools[:2] == ["-m", "pip"] and [w for w in tools if "==" in w] == tools[-2:]
    assert "--no-deps" in tools and asked[3:5] == cpu
    assert torch[-5:-1] == ["-c", str(checkout / "requirements.lock"), *cpu]
    assert torch[-1].startswith("torch==")
    assert {"--no-deps", "--build-constraint"} <= set(rest) and "-c" not in rest
    listed = (checkout / ".venv" / "packages.txt").read_text()
    assert not re.search(r"^(torch|pytest|nvidia-.*)==", listed, re.MULTILINE)
    assert re.search(r"^lightning==", listed, re.MULTILINE)
    assert project[-4:] == ["--no-deps", "--no-build-isolation", "-e", "."]


def test_a_second_set_up_installs_what_is_missing_and_holds_torch(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = stand_in_for_pip(checkout, monkeypatch)
    assert setup_env.main(["lab"]) == 0
    del calls[:]
    assert setup_env.main(["lab"]) == 0
    assert calls == []
    assert setup_env.main(["test"]) == 0
    assert not [word for call in calls for word in call if word.startswith("torch==")]
    listed = (checkout / ".venv" / "packages.txt").read_text()
    assert "pytest==" in listed and "lightning==" not in listed
    del calls[:]
    assert setup_env.main(["lab"]) == 0  # the tests' packages include those of the labs
    assert calls == []

    pyproject = checkout / "pyproject.toml"
    pyproject.write_text(pyproject.read_text().replace("line-length = 105", "line-length = 90"))
    assert setup_env.main(["lab"]) == 0  # a linter's setting installs nothing
    assert calls == []

    lock = checkout / "requirements.lock"
    lock.write_text(re.sub(r"\nrich==\S+", "\nrich==14.9", lock.read_text()))
    assert setup_env.main(["lab"]) == 0
    assert (checkout / ".venv" / "packages.txt").read_text() == "rich==14.9\n"
    assert not setup_env.is_current("test")


def test_what_was_cut_off_is_installed_again(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in_for_pip(checkout, monkeypatch)
    assert setup_env.main(["lab"]) == 0
    setup_env.stamp("lab").unlink()
    torn = next((checkout / ".venv").glob("lib/*/site-packages/rich-*"))
    (torn / "RECORD").unlink()
    assert setup_env.main(["lab"]) == 0
    assert re.fullmatch(r"rich==\S+\n", (checkout / ".venv" / "packages.txt").read_text())


def test_wrong_usage_of_set_up_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert setup_env.main([]) == 64
    assert "usage" in capsys.readouterr().err


# The same with pip itself, against a folder of wheels without content: only their metadata is true.


def wheel(folder: Path, name: str, version: str, requires: Iterable[str] = ()) -> None:
    """A wheel that says what it is and needs, as the package index publishes it."""
    title = f"{name.replace('-', '_')}-{version}"
    said = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    said += [f"Requires-Dist: {text}" for text in requires]
    said += [f"Provides-Extra: {extra}" for extra in sorted(EXTRA.findall(" ".join(requires)))]
    with zipfile.ZipFile(folder / f"{title}-py3-none-any.whl", "w") as file:
        file.writestr(f"{title}.dist-info/METADATA", "\n".join([*said, ""]))
        file.writestr(
            f"{title}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        file.writestr(f"{title}.dist-info/RECORD", "")


EXTRA = re.compile(r"""extra == ["']([\w-]+)["']""")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every package of the lock, torch as its CUDA build, and what that build brings."""
    folder = tmp_path_factory.mktemp("index")
    cuda = json.loads(read("tests/unit/tools/cuda_build.json"))
    for name, told in cuda.items():
        wheel(folder, name, told["version"], told["requires"])
    for pin in read_pins(read("requirements.lock")):
        if pin.name != "torch":
            needs = importlib.metadata.requires(pin.name) if pin.name in ("sympy", "jinja2") else ()
            wheel(folder, pin.name, pin.version, needs or ())
    return folder


def dry_run(index: Path, folder: Path, *arguments: str) -> dict[str, str]:
    """Name -> version of what pip would install."""
    report = folder / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--isolated", "--dry-run", "--ignore-installed"]
    command += ["--quiet", "--no-index", "--find-links", str(index), "--report", str(report)]
    subprocess.run([*command, *arguments], check=True)
    told = [item["metadata"] for item in json.loads(report.read_text())["install"]]
    return {canonicalize_name(item["name"]): item["version"] for item in told}


@pytest.mark.skipif(sys.platform != "linux", reason="the CUDA build is for Linux")
def test_the_cuda_build_comes_whole_and_stays(index: Path, tmp_path: Path) -> None:
    lock = ROOT / "requirements.lock"
    locked = pins(lock.read_text())
    torch = dry_run(index, tmp_path, "-c", str(lock), f"torch=={locked['torch']}")
    cuda = json.loads(read("tests/unit/tools/cuda_build.json"))
    assert {name: version for name, version in torch.items() if name in cuda} == {
        name: told["version"] for name, told in cuda.items()
    }
    assert {"nvidia-nccl-cu13", "triton", "torch"} <= set(cuda)
    assert {name: locked.get(name) for name in torch if name not in cuda} == {
        name: version for name, version in torch.items() if name not in cuda
    }
    listed = tmp_path / "packages.txt"
    others = [pin.requirement for pin in read_pins(lock.read_text()) if pin.name != "torch"]
    listed.write_text("\n".join(others))
    rest = dry_run(index, tmp_path, "--no-deps", "-r", str(listed))
    assert not set(rest) & set(cuda)
    assert {name: locked[name] for name in rest} == rest
    assert len(rest) > 150


def ask(index: Path, *requirements: str) -> dict[str, list[str]]:
    command = [sys.executable, str(ROOT / "tools" / "ask_index.py"), "--no-index", *requirements]
    env = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": str(index)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_index_is_asked_for_what_this_machine_needs(index: Path) -> None:
    locked = pins(read("requirements.lock"))
    torch, other = f"torch=={locked['torch']}", "appnope==1.0.0 ; sys_platform == 'nothing'"
    assert ask(index, torch, "rich==99.0", other) == {torch: [locked["torch"]], "rich==99.0": []}


def test_a_pin_that_cannot_be_had_is_one_sentence_before_anything_comes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = stand_in_for_pip(checkout, monkeypatch)
    run_pip, warning = setup_env.run_pip, ""

    def without_rich(what: str, command: Sequence[str]) -> str:
        said = run_pip(what, command)
        return warning + re.sub(r'("rich==\S+": )\[[^]]*\]', r"\1[]", said)

    monkeypatch.setattr(setup_env, "run_pip", without_rich)
    assert setup_env.main(["lab"]) == 1
    said = capsys.readouterr().err
    assert re.match(r"The package index has no rich==\S+ for Python \S+ on ", said)
    assert said.count("\n") == 1
    assert len(calls) == 2  # pip itself, and the question
    assert not setup_env.stamp("lab").exists()

    warning = "WARNING: Retrying after 'NewConnectionError(...)'\n"
    assert setup_env.main(["lab"]) == 1
    assert "because the package index cannot be reached.\n" in capsys.readouterr().err


def test_a_failing_pip_fails_and_leaves_no_stamp(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(checkout))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    assert setup_env.main(["lab"]) == 1
    said = capsys.readouterr()
    assert re.search(r"^ERROR: .*pip==", said.out, re.MULTILINE)
    assert said.err.startswith("Installing pip and setuptools (3 MB) failed")
    assert not setup_env.stamp("lab").exists()


# Writing the lock.


PYLOCK = """
lock-version = "1.0"

[[packages]]
name = "torch"
version = "2.13.0"
wheels = [{url = "index/torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", size = 800_000_000}]

[[packages]]
name = "nvidia-nccl-cu13"
version = "2.29.7"
marker = "sys_platform == 'linux'"
wheels = [{url = "index/nvidia_nccl_cu13-2.29.7-py3-none-manylinux_2_18_x86_64.whl", size = 200_000_000}]

[[packages]]
name = "appnope"
version = "1.0.0"
marker = "sys_platform == 'darwin'"
wheels = [{url = "index/appnope-1.0.0-py3-none-any.whl", size = 4000}]

[[packages]]
name = "soupsieve"
version = "2.10"
marker = "python_full_version < '3.12' or sys_platform != 'emscripten'"
wheels = [{url = "index/soupsieve-2.10-py3-none-any.whl", size = 38_000}]

[[packages]]
name = "soupsieve"
version = "4.1.1"
marker = "sys_platform == 'emscripten'"
wheels = [{url = "index/soupsieve-4.1.1-py3-none-any.whl", size = 55_000}]
"""


def test_the_lock_has_what_holds_for_us_and_leaves_out_what_cuda_brings() -> None:
    found = {pin.name: (pin.version, pin.marker) for pin in make_lock.pins_of(PYLOCK)}
    assert found == {
        "torch": ("2.13.0", ""),
        "appnope": ("1.0.0", "sys_platform == 'darwin'"),
        "soupsieve": ("2.10", ""),
    }


def test_a_pin_without_a_wheel_for_one_of_our_pythons_is_found() -> None:
    missing = make_lock.without_wheel(PYLOCK, make_lock.pins_of(PYLOCK))
    assert missing == ["torch==2.13.0 for Python 3.12", "torch==2.13.0 for Python 3.13"]


def test_the_size_of_the_cuda_build_is_that_of_its_files() -> None:
    urls = ("torch-2.13.0-cp311-cp311-manylinux_2_28_x86_64.whl", "rich-15.0.0-py3-none-any.whl")
    urls += ("nvidia_nccl_cu13-2.29.7-py3-none-manylinux_2_18_x86_64.whl",)
    install = [
        {
            "metadata": {"name": url.split("-")[0], "version": url.split("-")[1]},
            "download_info": {"url": f"index/{url}"},
        }
        for url in urls
    ]
    megabytes, brought = make_lock.cuda_build({"install": install}, PYLOCK)
    assert megabytes == 1000.0
    assert list(brought) == ["nvidia-nccl-cu13", "torch"]


def test_a_pin_is_described_by_its_file_and_must_admit_our_pythons(tmp_path: Path) -> None:
    wheel(tmp_path, "rich", "15.0.0")
    (file,) = tmp_path.iterdir()
    (pin,) = make_lock.described([Pin("rich", "15.0.0")], [file], set())
    assert (pin.python, pin.for_tests) == ("any", True)
    with pytest.raises(make_lock.LockError, match=r"numpy==2\.4\.6 could not be downloaded"):
        make_lock.described([Pin("numpy", "2.4.6")], [file], set())


# Trying both commands as a new user.


def test_what_was_announced_is_read_from_the_newest_sentence() -> None:
    said = "Packages to download: 2 other packages, 0.50 GB. Free disk: 80.0 GB.\n"
    said += setup_env.announced(SOME, setup_env.CPU, 80 * setup_env.GB) + "\n"
    assert fresh.announced(said, torch_is_here=False) == pytest.approx(210.0)
    assert fresh.announced(said, torch_is_here=True) == pytest.approx(20.0)


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
    monkeypatch.setenv("STUCK_RANKS_STATE", str(old.home))
    with pytest.raises(setup_env.SetupError, match=r"^Your progress stays in .+STUCK_RANKS_STATE.+\.$"):
        setup_env.make_venv()
    assert len(list(old.kept.iterdir())) == 3


def test_a_new_environment_leaves_progress_alone(old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_env, "VENV", old.venv)
    monkeypatch.setenv("STUCK_RANKS_STATE", str(old.home))
    (old.venv / "bin").mkdir()
    (old.venv / "bin" / "python").write_text("broken")
    setup_env.make_venv()
    assert setup_env.venv_runs() and not old.kept.exists()
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


# Running the tests.


def test_what_make_test_leaves_out_the_nightly_run_does() -> None:
    pieces = {}
    for run in ("test", "nightly"):
        for lane in run_tests.lanes("python", run, Path("guide")):
            for step in filter(lambda step: step.is_pytest, lane):
                assert step.command[:4] == ("python", "-m", "pytest", "-m")
                pieces.setdefault(step.command[5:], []).append(step.command[4])
    assert set(map(tuple, pieces.values())) == {("not nightly", "nightly")}
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


# Repeating them.


def test_rounds_count_for_the_code_that_they_ran() -> None:
    page = (
        steady.HEAD.format(code="abc")
        + "| 1 | c | d | quiet | 9 | 0 | 1 | 5.1 |\n| 2 | c | d | quiet | 8 | 1 | 1 | 5.1 |\n"
    )
    assert steady.failures(page, "abc") == [0, 1]
    assert steady.failures(page, "abd") == steady.failures("", "abc") == []
