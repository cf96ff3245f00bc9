"""Writes requirements.lock: for each package one version that serves every supported Python and system.

Run by `make lock`; `make lock TORCH=2.14.0` moves torch. uv resolves for all of them at once, from the
oldest patch release of the oldest Python on. Each wheel is then downloaded, for its size and for the
Pythons that it admits; of the CUDA build of torch, which takes gigabytes, only the metadata is read.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from pins import Pin, PinsError, read, torch_pin
from setup_env import CPU_INDEX, LOCK, ROOT, cpu_index_answers

PYTHONS = ("3.11.0", "3.11.2", "3.12.0", "3.12.3", "3.13.0")
"""First releases, and those of Debian 12 and Ubuntu 24.04; the others lie between them."""

SYSTEMS = (("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64"), ("darwin", "x86_64"))

CUDA_BUILD = ROOT / "tests" / "unit" / "tools" / "cuda_build.json"
"""What the CUDA build of torch brings, as published: name -> version and requirements."""

LEFT_OUT = re.compile(r"^(stuck-ranks|nvidia-.*|cuda-.*|triton)$")
"""This project, and what only the CUDA build of torch brings (that build pins most of it itself)."""

HEADER = """\
# Exact versions of all that `.[labs,test]` installs, on Linux and macOS and every supported Python.
# Made by `make lock` (`make lock TORCH=VERSION` moves torch) and changed in no other way. Then run
# `make fresh`. To install by hand: first torch, then this checkout, both with `-c requirements.lock`.
# torch has no local version, so the same line fits the CPU build and the CUDA builds.
# Behind each pin: its download, on Linux x86-64, and the Pythons that it admits.
"""


class LockError(Exception):
    """No lock can be made; the text is one sentence."""


def environments() -> list[dict[str, str]]:
    """Every supported Python on every supported system, as markers see them."""
    return [
        {
            "python_version": python.rpartition(".")[0],
            "python_full_version": python,
            "implementation_name": "cpython",
            "implementation_version": python,
            "platform_python_implementation": "CPython",
            "os_name": "posix",
            "sys_platform": system,
            "platform_system": system.capitalize(),
            "platform_machine": machine,
            "platform_release": "",
            "platform_version": "",
            "extra": "",
        }
        for python in PYTHONS
        for system, machine in SYSTEMS
    ]


def marker_for_us(text: str) -> str | None:
    """A marker as the lock needs it: empty where it holds everywhere, None where it holds nowhere."""
    from packaging.markers import Marker

    if not text:
        return ""
    holds = [Marker(text).evaluate(environment) for environment in environments()]
    if all(holds):
        return ""
    return text if any(holds) else None


def pins_of(pylock: str) -> list[Pin]:
    """The pins of a resolution in the form of a pylock file (PEP 751), by name."""
    found = []
    for package in tomllib.loads(pylock)["packages"]:
        marker = marker_for_us(package.get("marker", ""))
        if marker is not None and not LEFT_OUT.match(package["name"]):
            found.append(Pin(package["name"], package["version"], marker))
    return sorted(found, key=lambda pin: pin.name)


def without_wheel(pylock: str, pins: Iterable[Pin]) -> list[str]:
    """The pins that have wheels, but none for one of our Pythons on Linux x86-64."""
    from packaging.tags import compatible_tags, cpython_tags
    from packaging.utils import parse_wheel_filename

    wanted = {(pin.name, pin.version) for pin in pins if "darwin" not in pin.marker}
    missing = []
    for package in tomllib.loads(pylock)["packages"]:
        names = [wheel["url"].rpartition("/")[2] for wheel in package.get("wheels", ())]
        if (package["name"], package["version"]) not in wanted or not names:
            continue
        offered = {tag for name in names for tag in parse_wheel_filename(name)[3]}
        for minor in sorted({int(python.split(".")[1]) for python in PYTHONS}):
            platforms = [f"manylinux_2_{glibc}_x86_64" for glibc in range(5, 36)]
            platforms += [f"manylinux{old}_x86_64" for old in ("1", "2010", "2014")]
            tags = {*cpython_tags((3, minor), platforms=platforms)}
            tags |= {*compatible_tags((3, minor), f"cp3{minor}", platforms)}
            if not tags & offered:
                missing.append(f"{package['name']}=={package['version']} for Python 3.{minor}")
    return missing


def header(file: Path) -> Mapping[str, str]:
    """The metadata of a wheel or of a source distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
            return HeaderParser().parsestr(wheel.read(name).decode())
    with tarfile.open(file) as source:
        names = [n for n in source.getnames() if n.count("/") == 1 and n.endswith("/PKG-INFO")]
        member = source.extractfile(names[0])
        assert member is not None
        return HeaderParser().parsestr(member.read().decode())


def described(pins: Sequence[Pin], files: Iterable[Path], for_labs: set[str]) -> list[Pin]:
    """The pins with what their files say.

    Raises:
        LockError: a file is missing, or does not admit one of our Pythons.
    """
    from packaging.specifiers import SpecifierSet
    from packaging.utils import canonicalize_name

    said = {}
    for file in files:
        told = header(file)
        if told["Name"] == "torch" and "+cpu" not in told["Version"]:
            raise LockError("The CPU build of torch is not available here, so its size is not known.")
        said[canonicalize_name(told["Name"])] = (file.stat().st_size / 1e6, told["Requires-Python"])
    found = []
    for pin in pins:
        if pin.name not in said:
            raise LockError(f"{pin.requirement} could not be downloaded.")
        megabytes, python = said[pin.name]
        needs = [e for e in environments() if not pin.marker or _holds(pin.marker, e)]
        if not all(SpecifierSet(python or "").contains(e["python_full_version"]) for e in needs):
            raise LockError(f"{pin.requirement} needs Python {python}.")
        text = (python or "any").replace(" ", "")
        found.append(replace(pin, megabytes=megabytes, python=text, for_tests=pin.name not in for_labs))
    return found


def _holds(marker: str, environment: dict[str, str]) -> bool:
    from packaging.markers import Marker

    return Marker(marker).evaluate(environment)


def cuda_build(report: Mapping[str, Any], pylock: str) -> tuple[float, dict[str, Any]]:
    """Megabytes of torch's CUDA build with all that it alone brings, and what pip would install.

    Args:
        report: of a dry run of pip (`--report`) that takes torch from the public index.
        pylock: the resolution, which tells the size of each wheel.
    """
    packages = tomllib.loads(pylock)["packages"]
    sizes = {w["url"].rpartition("/")[2]: w["size"] for p in packages for w in p.get("wheels", ())}
    total, brought = 0.0, {}
    for item in report["install"]:
        told = item["metadata"]
        name = re.sub(r"[-_.]+", "-", told["name"]).lower()
        if name == "torch" or LEFT_OUT.match(name):
            total += sizes[item["download_info"]["url"].rpartition("/")[2].partition("#")[0]] / 1e6
            brought[name] = {
                "version": told["version"],
                "requires": told.get("requires_dist", []),
            }
    return total, dict(sorted(brought.items()))


class Registry:
    """uv and pip, in an environment of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cpu = ["--extra-index-url", CPU_INDEX] if cpu_index_answers() else []

    def resolve(self, extras: Sequence[str], constraints: Iterable[str]) -> str:
        """A pylock of this project with these extras, and of pip."""
        limits, tools = self.folder / "constraints.txt", self.folder / "tools.txt"
        limits.write_text("".join(f"{line}\n" for line in constraints))
        tools.write_text("pip\nsetuptools\n")
        output = self.folder / "pylock.toml"
        output.unlink(missing_ok=True)
        command = [sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--no-config"]
        command += ["--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest"]
        command += [word for extra in extras for word in ("--extra", extra)]
        command += ["-c", str(limits), "-o", str(output), str(ROOT / "pyproject.toml"), str(tools)]
        subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL)
        return output.read_text()

    def download(self, pins: Sequence[Pin]) -> list[Path]:
        """The files that pip takes for these pins, whatever system they are for."""
        folder = self.folder / "files"
        words = [f"{pin.name}=={pin.version}" for pin in pins]
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *self.cpu]
        subprocess.run([*command, "--dest", str(folder), *words], check=True)
        return sorted(folder.iterdir())

    def dry_run(self, version: str) -> dict[str, Any]:
        """pip's report on torch from the public index alone, where Linux gets the CUDA build."""
        report = self.folder / "report.json"
        command = [sys.executable, "-m", "pip", "--isolated", "install", "--quiet", "--dry-run"]
        command += ["--ignore-installed", "--use-feature=fast-deps", "--report", str(report)]
        subprocess.run([*command, f"torch=={version}"], check=True)
        found: dict[str, Any] = json.loads(report.read_text())
        return found


def make(version: str, folder: Path) -> str:
    """The text of a new lock, with torch at `version`; writes `CUDA_BUILD`, too."""
    registry = Registry(folder)
    whole = registry.resolve(["labs", "test"], [f"torch=={version}"])
    pins = pins_of(whole)
    missing = without_wheel(whole, pins)
    if missing:
        raise LockError(f"There is no wheel of {', '.join(missing)}.")
    labs = registry.resolve(["labs"], [f"{p.name}=={p.version}" for p in pins if not p.marker])
    megabytes, brought = cuda_build(registry.dry_run(version), whole)
    CUDA_BUILD.write_text(json.dumps(brought, indent=1) + "\n")
    described_pins = described(pins, registry.download(pins), {pin.name for pin in pins_of(labs)})
    lines = [replace(p, cuda=megabytes if p.name == "torch" else None).line for p in described_pins]
    return HEADER + "".join(f"{line}\n" for line in lines)


def main(arguments: list[str]) -> int:
    """Make a new lock; an argument is the version of torch to take."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if importlib.util.find_spec("uv") is None:
            python = str(folder / "bin" / "python")
            subprocess.run([sys.executable, "-m", "venv", name], check=True)
            tools = ["pip>=26", "uv>=0.13,<0.14", "packaging"]
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--upgrade", *tools], check=True)
            return subprocess.run([python, __file__, *arguments], check=False).returncode
        try:
            version = arguments[0] if arguments else torch_pin(read(LOCK.read_text())).version
            text = make(version, folder)
        except (LockError, PinsError) as error:
            print(error, file=sys.stderr)
            return 1
    LOCK.write_text(text)
    print(f"{LOCK.name} is new: see git diff, then run make fresh.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
