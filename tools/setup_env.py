"""Makes .venv in this checkout and installs what the guide needs. Standard library only.

Run by make: `python tools/setup_env.py lab` or `... test`. With pip's own settings, it does the same as

    python -m venv .venv
    .venv/bin/pip install --no-deps -r requirements.lock
    .venv/bin/pip install -r requirements-torch.lock
    .venv/bin/pip install --no-deps -e .

and says before what comes, and meanwhile how far it is. Its stamp tells make that all is there.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from carry_progress import CarryError, carry

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PIP = (str(VENV / "bin" / "python"), "-m", "pip")
LOCKS = {"lab": ROOT / "requirements.lock", "test": ROOT / "requirements-test.lock"}
TORCH_LOCK = ROOT / "requirements-torch.lock"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"

DOWNLOAD = {"lab": 0.12, "test": 0.09, "CPU": 0.19, "CUDA": 2.73, "usual": 0.1}
DISK = {"CPU": 3, "CUDA": 12, "usual": 3}
"""GB to download, by lock file and build of PyTorch, and of disk for all; `make fresh` measures them."""


class SetupError(Exception):
    """The set-up cannot go on; the text is one sentence for the user."""


def torch_version() -> str:
    """Return the version of torch that is to be installed."""
    return TORCH_LOCK.read_text().rpartition("==")[2].strip()


def offered(pip: Sequence[str], package: str, *options: str) -> tuple[list[str], str]:
    """Return the versions of a package that pip finds with its settings and options, and its words."""
    command = [*pip, "index", "--retries", "1", "--timeout", "5", "versions", package, *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        return [], "ConnectTimeout"
    listed = re.search(r"Available versions: (.*)", done.stdout)
    return listed[1].split(", ") if listed else [], done.stderr


def choose_torch() -> tuple[str, list[str]]:
    """Return the build of PyTorch that comes, and what pip is told besides its settings to find it.

    Raises:
        SetupError: there is none, or the index cannot be reached.
    """
    print(f"Asking the package index for PyTorch {torch_version()} ...")
    # pip prefers a CPU build to the usual one, since it has a local version.
    cpu, system = f"{torch_version()}+cpu", platform.system()
    versions, said = offered(PIP, "torch")
    if cpu in versions:
        return "CPU", []
    driver = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    if system == "Linux" and not driver and cpu in offered(PIP, "torch", "--index-url", CPU_INDEX)[0]:
        return "CPU", ["--extra-index-url", CPU_INDEX]
    if torch_version() not in versions:
        python = f"Python {platform.python_version()} on {system} {platform.machine()}"
        none = f": the package index has none for {python} (make lab PYTHON=... takes another Python)"
        raise SetupError(f"PyTorch {torch_version()} cannot be installed{reason(said) or none}.")
    if system == "Linux" and not driver:
        print(
            f"There is no NVIDIA driver here, but neither pip's index nor {CPU_INDEX} offers the CPU "
            f"build: the CUDA build comes, {DOWNLOAD['CUDA']} GB instead of {DOWNLOAD['CPU']}. It helps "
            f"to put a wheel torch-{cpu}-*.whl into a folder and to set PIP_FIND_LINKS to that folder."
        )
    return ("CUDA" if system == "Linux" else "usual"), []


def announce(kinds: Sequence[str], build: str | None, free: float) -> None:
    """Say before the download what comes and how many GB are free; raise SetupError if too few."""
    parts = [f"PyTorch {torch_version()}, {build} build, {DOWNLOAD[build]} GB"] if build else []
    parts += [f"other packages, {sum(DOWNLOAD[kind] for kind in kinds):.2f} GB"] if kinds else []
    print(f"Packages to download: {'; '.join(parts)}. Free disk: {free:.1f} GB.")
    if free < (needed := DISK[build] if build else 1):
        raise SetupError(f"The set-up needs {needed} GB of free disk in {ROOT}: make room for it.")


def pins(lock: Path) -> set[tuple[str, str]]:
    """Return the names and versions that a lock file has for every system and Python."""
    return set(re.findall(r"^([\w.-]+)==([^\s;]+)(?: \\)?$", lock.read_text(), re.MULTILINE))


def missing(lock: Path) -> bool:
    """Say whether .venv lacks a pin of a lock file."""
    there = set()
    for info in VENV.glob("lib/python*/site-packages/*.dist-info"):
        name, _, version = info.name.removesuffix(".dist-info").partition("-")
        there.add((re.sub(r"[-_.]+", "-", name).lower(), version.partition("+")[0]))
    return not pins(lock) <= there


def make_venv() -> None:
    """Make .venv, unless it is there and runs; raise SetupError or CarryError if it cannot be made."""
    # pip writes INSTALLER and RECORD last: without both, an installation was cut off and is done again.
    for info in VENV.glob("lib/python*/site-packages/*.dist-info"):
        if not all((info / name).is_file() for name in ("INSTALLER", "RECORD")):
            shutil.rmtree(info)
    if shutil.which(PIP[0]) and subprocess.run([*PIP, "-V"], capture_output=True).returncode == 0:
        return
    carry(VENV)
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        said = (made.stdout + made.stderr).strip().splitlines() or ["no reason"]
        raise SetupError(f"Python could not make {VENV}: {said[-1]}.")


def run_pip(what: str, *words: str) -> None:
    """Run pip, and say every 15 seconds what it does; raise SetupError when it fails."""
    # Large wheels are unpacked in .venv: a small /tmp is common, and one disk is checked.
    temporary, log = VENV / "tmp", VENV / "pip.log"
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    env |= {"PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "TMPDIR": str(temporary)}
    temporary.mkdir(exist_ok=True)
    print(f"{what} ...")
    start = time.monotonic()
    with log.open("wb") as output:
        pip = subprocess.Popen(
            [*PIP, *words], cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        while pip.returncode is None:
            try:
                pip.wait(timeout=15)
            except subprocess.TimeoutExpired:
                said = re.findall(r"^ *(?!WARNING)\w.*", log.read_text(errors="replace"), re.MULTILINE)
                doing = said[-1].strip()[:80] if said else "pip begins"
                print(f"  {time.monotonic() - start:.0f} s: {doing}")
            except KeyboardInterrupt:
                pip.terminate()
                pip.wait()
                raise
    shutil.rmtree(temporary, ignore_errors=True)
    if pip.returncode != 0:
        said = log.read_text(errors="replace")
        print("\n".join([line for line in said.splitlines() if "ERROR" in line][:15]))
        raise SetupError(f"{what} failed{reason(said)}; all that pip said is in {log}.")
    print(f"  done in {time.monotonic() - start:.0f} s")


def reason(said: str) -> str:
    """Return why pip failed, where that is known, as the end of a clause."""
    if re.search(r"NewConnectionError|NameResolutionError|Failed to establish|ConnectTimeout", said):
        return " because the package index cannot be reached"
    return " because the disk is full" if "No space left on device" in said else ""


def set_up(kind: str) -> None:
    """Make .venv complete for a kind of set-up, "lab" or "test"; raise SetupError."""
    print(f"Stuck Ranks sets up {VENV} with Python {platform.python_version()}.")
    make_venv()
    kinds = ["lab"] if kind == "lab" else ["lab", "test"]  # the tests need what the labs need
    new = [each for each in kinds if missing(LOCKS[each])]
    build, options = choose_torch() if missing(TORCH_LOCK) else (None, [])
    if new or build:
        announce(new, build, shutil.disk_usage(ROOT).free / 1e9)
    if new:
        locks = [word for each in new for word in ("-r", str(LOCKS[each]))]
        run_pip("Installing the packages", "install", "--no-deps", *locks)
    if build:
        run_pip(f"Installing PyTorch {torch_version()}", "install", *options, "-r", str(TORCH_LOCK))
    run_pip("Installing this checkout", "install", "--no-deps", "--no-build-isolation", "-e", ".")
    if kind == "test" and (new or not any(VENV.glob("wheels/*.whl"))):
        # A test, which has no network, installs the tool alone from these.
        (VENV / "pins.txt").write_text("\n".join(map("==".join, pins(LOCKS["lab"]))))
        options = ["-c", str(VENV / "pins.txt"), "--no-build-isolation", "--dest", str(VENV / "wheels")]
        run_pip("Keeping the packages of the tool alone", "download", *options, ".")
    for each in kinds:
        (VENV / f"stamp-{each}").touch()


def main(arguments: list[str]) -> int:
    """Run from the command line; return the exit code."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)  # of two set-ups at the same time the second waits
        set_up(*arguments)
    except (SetupError, CarryError, OSError) as error:
        print(f"The set-up cannot go on. {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    finally:
        os.close(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
