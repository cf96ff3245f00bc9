"""Makes .venv in this checkout and installs what the guide needs. Standard library only.

Run by make: `python tools/setup_env.py lab` or `... test`. PyTorch comes first, with its own
dependencies; then exactly the rest of requirements.lock, without a resolver. It leaves a stamp with a
fingerprint of the folder and of what is installed there, so that a second run installs nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from carry_progress import CarryError, carry
from pins import Pin, PinsError, read

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
KINDS = ("lab", "test")
GB = 10**9

TOOLS = ("pip", "setuptools")
"""What installs the rest. Python's own pip may be too old to ask the index as ask_index.py does."""


class SetupError(Exception):
    """The set-up cannot go on; the text is one sentence for the user."""


@dataclass(frozen=True)
class Build:
    """One build of PyTorch.

    Attributes:
        index: where pip finds it, in addition to its own index; None when that has it.
        needed_bytes: of disk, for a whole set-up with it.
    """

    what: str
    index: str | None
    needed_bytes: int

    @property
    def options(self) -> list[str]:
        """What pip is told so that it finds this build."""
        return ["--extra-index-url", self.index] if self.index else []


CPU = Build("its CPU build", CPU_INDEX, 3 * GB)
CUDA = Build("its CUDA build", None, 12 * GB)
OTHER = Build("its build for this system", None, 3 * GB)


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def wanted_build(system: str, nvidia: bool, cpu_index_answers: Callable[[], bool]) -> Build:
    """Return the PyTorch build to look for, by a system's name and driver.

    The index is asked only where the answer matters: on Linux without an NVIDIA driver.
    """
    if system != "Linux":
        return OTHER
    return CPU if not nvidia and cpu_index_answers() else CUDA


def found_build(system: str, versions: Iterable[str]) -> Build:
    """Return the build of PyTorch that pip takes where it finds these versions.

    On Linux the public index has the CUDA build. A CPU build has a local version, which pip prefers.
    """
    if any(version.endswith("+cpu") for version in versions):
        return CPU
    return CUDA if system == "Linux" else OTHER


def has_nvidia_driver() -> bool:
    """Say whether an NVIDIA driver is installed."""
    return shutil.which("nvidia-smi") is not None or Path("/proc/driver/nvidia").exists()


def cpu_index_answers(seconds: float = 3.0) -> bool:
    """Ask PyTorch's CPU index for its page of torch; False after that many seconds."""
    answered = threading.Event()

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=seconds):
                answered.set()
        except (OSError, ValueError):
            pass

    # A thread, because looking up a host's name knows no timeout.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return answered.is_set()


def fingerprint(kind: str) -> str:
    """Return what the stamp of this kind of set-up must hold to be current."""
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # Settings of linters and tests may change without a new installation.
    installs = [pyproject["build-system"], pyproject["project"], pyproject["tool"]["setuptools"]]
    text = f"{kind}\n{ROOT}\n{installs}\n{LOCK.read_text()}"
    return hashlib.sha256(text.encode()).hexdigest()


def stamp(kind: str) -> Path:
    """Return the stamp file of a kind of set-up; make compares its time."""
    return VENV / f"stamp-{kind}"


def is_current(kind: str) -> bool:
    """Say whether this kind of set-up is there and complete."""
    try:
        return stamp(kind).read_text() == fingerprint(kind) and venv_runs()
    except OSError:
        return False


def venv_runs() -> bool:
    """Say whether .venv has a Python of a version that fits, with pip."""
    check = "import pip, sys; raise SystemExit(not (3, 11) <= sys.version_info[:2] < (3, 14))"
    try:
        done = subprocess.run([VENV / "bin" / "python", "-c", check], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def make_venv() -> None:
    """Make .venv, unless it is there and runs; raise SetupError when Python cannot make it."""
    forget_torn()
    if venv_runs() and "pip" in installed():
        return
    try:
        carry(VENV)
    except CarryError as problem:
        raise SetupError(str(problem)) from problem
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    made = subprocess.run(command, capture_output=True, check=False)
    if made.returncode != 0:
        said = (made.stdout + made.stderr).decode(errors="replace").strip().splitlines()
        raise SetupError(f"Python could not make {VENV}: {said[-1] if said else 'no reason'}.")


def forget_torn() -> None:
    """Remove the records of packages whose installation was cut off, so that pip installs them again.

    pip writes INSTALLER and RECORD last (`pip/_internal/operations/install/wheel.py`, pip 26).
    """
    for info in VENV.glob("lib/python*/site-packages/*.dist-info"):
        if not all((info / name).is_file() for name in ("INSTALLER", "RECORD")):
            shutil.rmtree(info)


def installed() -> dict[str, str]:
    """Return name -> version of what .venv has, names in their normal form."""
    found = {}
    for info in VENV.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        found[normal(name)] = version.partition("+")[0]
    return found


def normal(name: str) -> str:
    """Return a package's name in its normal form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_disk(build: Build, free_bytes: int) -> None:
    """Raise SetupError when a set-up with this build does not fit on the disk."""
    if free_bytes < build.needed_bytes:
        raise SetupError(
            f"The set-up needs {build.needed_bytes / GB:.0f} GB of free disk in {ROOT} "
            f"and {free_bytes / GB:.1f} GB are free: make room, then run make again."
        )


def pip_environment() -> dict[str, str]:
    """Return the environment pip runs in: none of the user's settings that move an install."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    # Large wheels are unpacked in .venv: a small /tmp is common, and one disk is checked.
    env.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", TMPDIR=str(VENV / "tmp"))
    return env


def run_pip(what: str, command: Sequence[str]) -> str:
    """Run one step with the Python of .venv, say every 15 seconds what it does, return what it printed.

    Raises:
        SetupError: it failed.
    """
    log = VENV / "pip.log"
    (VENV / "tmp").mkdir(exist_ok=True)
    say(f"{what} ...")
    start, free = time.monotonic(), shutil.disk_usage(VENV).free
    with log.open("wb") as output:
        pip = subprocess.Popen(
            [VENV / "bin" / "python", *command],
            cwd=ROOT,
            env=pip_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        while True:
            try:
                code = pip.wait(timeout=15)
                break
            except subprocess.TimeoutExpired:
                used = max(0, free - shutil.disk_usage(VENV).free) / GB
                say(f"  {time.monotonic() - start:.0f} s, {used:.1f} GB written: {doing(log)}")
            except KeyboardInterrupt:
                pip.terminate()
                pip.wait()
                raise
    shutil.rmtree(VENV / "tmp", ignore_errors=True)
    said = log.read_text(errors="replace")
    if code != 0:
        lines = said.splitlines()
        first = next((n for n, line in enumerate(lines) if "ERROR" in line), -15)
        say("\n".join(lines[first:][:15]))
        raise SetupError(f"{what} failed{reason(said)}; all that pip said is in {log}.")
    say(f"  done in {time.monotonic() - start:.0f} s")
    return said


def doing(log: Path) -> str:
    """Return what pip does, in its own words: the last line that it has printed."""
    lines = (line.strip() for line in reversed(log.read_text(errors="replace").splitlines()))
    return next((line[:80] for line in lines if line and "WARNING" not in line), "it begins")


def reason(said: str) -> str:
    """Return why pip failed, where that is known, as the end of a clause."""
    if re.search(r"NewConnectionError|NameResolutionError|Failed to establish a new connection", said):
        return " because the package index cannot be reached"
    return " because the disk is full" if "No space left on device" in said else ""


def pip_install(what: str, *arguments: str) -> None:
    """Install with pip; raise SetupError if it fails."""
    run_pip(what, ["-m", "pip", "install", "--progress-bar", "off", *arguments])


def ask_index(pins: Sequence[Pin], build: Build) -> Build:
    """Return the build of PyTorch that pip will take; the wanted one when torch is not among the pins.

    Raises:
        SetupError: the index does not have one of the pins for this Python.
    """
    ask = [str(ROOT / "tools" / "ask_index.py"), "--retries", "1", *build.options]
    step = f"Asking the package index for {len(pins)} packages"
    said = run_pip(step, [*ask, *(pin.requirement for pin in pins)])
    has: dict[str, list[str]] = json.loads(said.splitlines()[-1])
    absent = [requirement for requirement, versions in has.items() if not versions]
    if absent and reason(said):
        raise SetupError(f"{step} failed{reason(said)}.")
    if absent:
        raise SetupError(
            f"The package index has no {', '.join(absent)} for Python {platform.python_version()} on "
            f"{platform.system()} {platform.machine()}, which requirements.lock asks for: try another "
            "Python (make lab PYTHON=/path/to/python3.12), or make a new lock (make lock)."
        )
    torch = next((versions for name, versions in has.items() if name.startswith("torch==")), None)
    return build if torch is None else found_build(platform.system(), torch)


def announced(pins: Sequence[Pin], build: Build, free_bytes: int) -> str:
    """Return what is said before the first large download: what comes, how much, what room is left."""
    parts, others = [], [pin for pin in pins if pin.name != "torch"]
    for pin in pins:
        if pin.name == "torch":
            size = pin.cuda if build is CUDA and pin.cuda else pin.megabytes
            parts.append(f"PyTorch {pin.version}, {build.what}, {size / 1000:.2f} GB")
    if others:
        size = sum(pin.megabytes for pin in others)
        other = " other" if parts else ""
        parts.append(f"{len(others)}{other} packages, {size / 1000:.2f} GB")
    return f"Packages to download: {'; '.join(parts)}. Free disk: {free_bytes / GB:.1f} GB."


def install(pins: Sequence[Pin]) -> None:
    """Install packages of the lock: torch with its own dependencies, then exactly the others."""
    wanted = wanted_build(platform.system(), has_nvidia_driver(), cpu_index_answers)
    build = ask_index(pins, wanted)
    free = shutil.disk_usage(VENV).free
    say(announced(pins, build, free))
    others = []
    for pin in pins:
        if pin.name != "torch":
            others.append(pin.requirement)
            continue
        check_disk(build, free)
        pip_install(
            f"Installing PyTorch {pin.version}", "-c", str(LOCK), *wanted.options, pin.requirement
        )
    if others:
        listed = VENV / "packages.txt"
        listed.write_text("".join(f"{requirement}\n" for requirement in others))
        # With no resolver there is nothing to search, and nothing can replace torch. What has no wheel
        # is built by itself: deepspeed's own set-up differs with the torch and the GPU that it sees.
        exactly = ("--no-deps", "--build-constraint", str(LOCK), "-r", str(listed))
        pip_install(f"Installing {len(others)} packages", *exactly)


@contextmanager
def alone() -> Iterator[None]:
    """Hold this folder: of two set-ups at the same time the second waits for the first."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Another make sets up this folder; waiting for it.")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def set_up(kind: str) -> None:
    """Make .venv complete for a kind of set-up, "lab" or "test"; raise SetupError or PinsError."""
    if is_current(kind):
        stamp(kind).touch()
        return
    pins = [pin for pin in read(LOCK.read_text()) if kind == "test" or not pin.for_tests]
    say(f"Stuck Ranks sets up {VENV} with Python {platform.python_version()}.")
    make_venv()
    for other in KINDS:
        stamp(other).unlink(missing_ok=True)
    tools = [pin.requirement for pin in absent(pins) if pin.name in TOOLS]
    if tools:
        pip_install("Installing pip and setuptools (3 MB)", "--no-deps", *tools)
    missing = absent(pins)
    if missing:
        install(missing)
    pip_install("Installing this checkout", "--no-deps", "--no-build-isolation", "-e", ".")
    if kind == "test":
        # A test, which has no network, installs the tool alone from these. The checkout is a folder, of
        # which pip downloads only what it needs.
        keep = ("-m", "pip", "download", "--progress-bar", "off", "--no-build-isolation")
        kept = ("-c", str(LOCK), "--dest", str(VENV / "wheels"), ".")
        run_pip("Keeping the packages of the tool alone", [*keep, *kept])
    # What the tests need includes what the labs need.
    for done in ("lab",) if kind == "lab" else KINDS:
        stamp(done).write_text(fingerprint(done))


def absent(pins: Sequence[Pin]) -> list[Pin]:
    """Return the pins that .venv does not have at their version."""
    there = installed()
    return [pin for pin in pins if there.get(normal(pin.name)) != pin.version]


def main(arguments: list[str]) -> int:
    """Run from the command line; return the exit code."""
    if arguments not in (["lab"], ["test"]):
        print("usage: python tools/setup_env.py lab|test", file=sys.stderr)
        return 64
    try:
        with alone():
            set_up(arguments[0])
    except (SetupError, PinsError) as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"The set-up cannot go on: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
