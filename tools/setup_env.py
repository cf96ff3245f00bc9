"""Makes .venv in this checkout and installs what the guide needs. Standard library only.

Run by make: `python tools/setup_env.py lab` or `... test`. It leaves a stamp with a fingerprint of
the folder and of what is installed there, so that a second run installs nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
EXTRAS = {"lab": "labs", "test": "labs,test"}
GB = 10**9


class SetupError(Exception):
    """The set-up cannot go on; the text is one sentence for the user."""


@dataclass(frozen=True)
class Build:
    """One way to get PyTorch: where from, and what the whole set-up then costs."""

    what: str
    index: str | None
    download: str
    needed_bytes: int


CPU = Build("the CPU build of PyTorch", CPU_INDEX, "about 0.4 GB", 3 * GB)
SMALL = Build("PyTorch for this system", None, "about 0.4 GB", 3 * GB)
CUDA = Build("the CUDA build of PyTorch", None, "about 4 GB", 12 * GB)
UNKNOWN = Build(
    "the build of PyTorch that pip finds (its CPU index does not answer)",
    None,
    "about 0.4 GB, or 4 GB if it is the CUDA build",
    3 * GB,
)


def say(text: str) -> None:
    """Print one line at once, also into a pipe."""
    print(text, flush=True)


def torch_pin(lock_text: str) -> str:
    """Return the version that a lock file's text pins torch to; raise SetupError without one."""
    found = re.search(r"^torch==([^\s;+]+)$", lock_text, re.MULTILINE)
    if found is None:
        raise SetupError("requirements.lock has no line torch==VERSION.")
    return found.group(1)


def choose_build(system: str, nvidia: bool, cpu_index_answers: Callable[[], bool]) -> Build:
    """Return the PyTorch build that suits a system's name and driver.

    The index is asked only where the answer matters: on Linux without an NVIDIA driver.
    """
    if system != "Linux":
        return SMALL
    if nvidia:
        return CUDA
    return CPU if cpu_index_answers() else UNKNOWN


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


def has_torch(version: str) -> bool:
    """Say whether .venv already has this version of torch."""
    return any(VENV.glob(f"lib/python*/site-packages/torch-{version}[.+]*dist-info"))


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
    # Large wheels are unpacked beside .venv: a small /tmp is common, and one disk is checked.
    env.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1", TMPDIR=str(VENV / "tmp"))
    return env


def pip_install(what: str, arguments: list[str]) -> None:
    """Install with pip, saying every 15 seconds that it goes on; raise SetupError if it fails."""
    log = VENV / "pip.log"
    (VENV / "tmp").mkdir(exist_ok=True)
    say(f"Installing {what} ...")
    start, free = time.monotonic(), shutil.disk_usage(VENV).free
    with log.open("wb") as output:
        pip = subprocess.Popen(
            [VENV / "bin" / "python", "-m", "pip", "install", "--progress-bar", "off", *arguments],
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
                say(f"  {time.monotonic() - start:.0f} s, {used:.1f} GB written so far")
            except KeyboardInterrupt:
                pip.terminate()
                pip.wait()
                raise
    shutil.rmtree(VENV / "tmp", ignore_errors=True)
    if code != 0:
        lines = log.read_text(errors="replace").splitlines()
        first = next((n for n, line in enumerate(lines) if "ERROR" in line), -15)
        say("\n".join(lines[first:][:15]))
        raise SetupError(f"pip could not install {what}; all it said is in {log}.")
    say(f"  done in {time.monotonic() - start:.0f} s")


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
    """Make .venv complete for a kind of set-up, "lab" or "test"; raise SetupError."""
    if is_current(kind):
        stamp(kind).touch()
        return
    version = torch_pin(LOCK.read_text())
    if has_torch(version) and venv_runs():
        say("Python packages of Stuck Ranks: about 0.2 GB to download at most.")
        index: list[str] = []
    else:
        build = choose_build(platform.system(), has_nvidia_driver(), cpu_index_answers)
        free = shutil.disk_usage(ROOT).free
        say(
            f"Stuck Ranks installs {build.what} and its other packages into {VENV}. "
            f"To download: {build.download}. Free disk: {free / GB:.1f} GB."
        )
        check_disk(build, free)
        index = ["--extra-index-url", build.index] if build.index else []
    if not venv_runs():
        made = subprocess.run(
            [sys.executable, "-m", "venv", "--clear", VENV], capture_output=True, check=False
        )
        if made.returncode != 0:
            said = (made.stdout + made.stderr).decode(errors="replace").strip().splitlines()
            raise SetupError(f"Python could not make {VENV}: {said[-1] if said else 'no reason'}.")
    for other in EXTRAS:
        stamp(other).unlink(missing_ok=True)
    pip_install(f"PyTorch {version}", ["-c", str(LOCK), *index, f"torch=={version}"])
    pip_install("the other packages", ["-c", str(LOCK), *index, "-e", f".[{EXTRAS[kind]}]"])
    # What the tests need includes what the labs need.
    for done in ("lab",) if kind == "lab" else ("lab", "test"):
        stamp(done).write_text(fingerprint(done))


def main(arguments: list[str]) -> int:
    """Run from the command line; return the exit code."""
    if arguments not in (["lab"], ["test"]):
        print("usage: python tools/setup_env.py lab|test", file=sys.stderr)
        return 64
    try:
        with alone():
            set_up(arguments[0])
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"The set-up cannot go on: {error}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
