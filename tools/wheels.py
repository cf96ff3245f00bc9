"""Downloads the wheels that a machine without a network lacks: see gpu.py."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pins

ROOT = Path(__file__).resolve().parents[1]

BROUGHT = (
    *("msgspec", "jinja2", "markdown-it-py", "platformdirs", "packaging", "py-spy"),
    *("markupsafe", "mdurl"),  # for jinja2 and markdown-it-py
)
"""What pyproject.toml declares, without torch, Lightning, psutil, rich, and what only notebooks and lab
03 need."""

PYTHON = "3.12"
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_5", "manylinux1")
"""pip takes a wheel for a platform that it is told by name only, not for an older one."""

MOST = 60
"""Megabytes that the wheels take together at most."""


class WheelsError(Exception):
    """The wheels are not available; the text is one sentence."""


def command(found: Iterable[pins.Pin], folder: Path) -> list[str]:
    """The command that downloads what is brought, at the versions of the lock.

    Raises:
        WheelsError: the lock has no pin for one of them.
    """
    pinned = {pin.name.lower(): pin.requirement for pin in found}
    if missing := [name for name in BROUGHT if name not in pinned]:
        raise WheelsError(f"requirements.lock has no pin of {', '.join(missing)}")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
    words += ["--implementation", "cp", "--python-version", PYTHON]
    words += [f"--platform={platform}_x86_64" for platform in PLATFORMS]
    return [*words, "--dest", str(folder), *(pinned[name] for name in BROUGHT)]


def too_much(sizes: Sequence[int]) -> bool:
    """True when files of so many bytes are more than may be brought."""
    return sum(sizes) > MOST * 10**6


def download(folder: Path) -> None:
    """Download what is brought into a folder, and say how much it is.

    Raises:
        WheelsError: a wheel is not available, or they take too much room.
    """
    words = command(pins.read((ROOT / "requirements.lock").read_text()), folder)
    if subprocess.run(words, check=False).returncode:
        raise WheelsError("pip could not download them")
    sizes = [wheel.stat().st_size for wheel in folder.glob("*.whl")]
    if too_much(sizes):
        raise WheelsError(f"{folder} holds more than {MOST} MB of wheels")
    print(f"{len(sizes)} wheels, {sum(sizes) / 10**6:.1f} MB, for CPython {PYTHON} on Linux x86-64")
