"""The directory of one run: where it lies, what is in it, and the record that outlives its owner.

<tempdir>/stuck-ranks-<uid>/<run id>/     this user's only (see `home`)
    run.json      the command, the owner's process, the guardian and the command's own process
    guardian.log  what the guardian says when it fails
    output/       the pipes into which processes print, see `helpers.launch.output_pipes`
    records/      what the beacons report
    nccl/         where NCCL's recorder is dumped on request
    path/         what is on the job's PYTHONPATH: the beacon
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

BEACON = Path(__file__).resolve().parents[1] / "beacon"

LONGEST, OTHER = 3800, "/tmp"
"""Bytes that the path of TMPDIR may have (that of a file has 4,095 at most, PATH_MAX), and what serves
in the place of a longer one."""


def home() -> Path:
    """The folder of all runs of this user, made where it is missing.

    Where something of another user's has its name, it gets a name that nobody can foresee.

    Raises:
        OSError: it cannot be made.
    """
    if folder := next(_homes(), None):
        if stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
        return folder
    folder = _temporary() / _name()
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        return Path(tempfile.mkdtemp(prefix=f"{_name()}-", dir=folder.parent))
    return folder


def _homes() -> Iterator[Path]:
    """All folders that are, or were, home to runs of this user: none of another's, and no link."""
    temporary = _temporary()
    for folder in (temporary / _name(), *sorted(temporary.glob(f"{_name()}-*"))):
        with suppress(OSError):
            facts = folder.lstat()
            if stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.getuid():
                yield folder


def _name() -> str:
    return f"stuck-ranks-{os.getuid()}"


def _temporary() -> Path:
    """TMPDIR, unless what lies in it can be no part of PYTHONPATH, or of a path at all."""
    folder = tempfile.gettempdir()
    return Path(OTHER if os.pathsep in folder or len(os.fsencode(folder)) > LONGEST else folder)


def make(folder: Path, record: Mapping[str, Any]) -> None:
    """Make the directory of a run with its record."""
    folder.mkdir(mode=0o700)
    write_record(folder, record)
    for name in ("records", "nccl"):
        (folder / name).mkdir()


def furnish(folder: Path) -> None:
    """Put the beacon on the job's path."""
    path = folder / "path"
    for sources, copies in ((BEACON, path / "stuck_ranks_beacon"), (BEACON / "inject", path)):
        (copies / "__pycache__").mkdir(parents=True)
        for source in sources.glob("*.py"):
            _copy(source, copies)


def _copy(source: Path, folder: Path) -> None:
    """Copy a module, and what our own Python has compiled it to: compiling all takes 40 ms.

    A job with another Python compiles its copies itself, as it does where we cannot keep the result.
    """
    facts, copy, compiled = source.stat(), folder / source.name, Path(cache_from_source(str(source)))
    _write(copy, source.read_bytes())
    os.utime(copy, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # what is compiled names it
    with suppress(OSError):
        if not compiled.exists() or compiled.stat().st_mtime < facts.st_mtime:
            _compile(source)
        _write(folder / "__pycache__" / compiled.name, compiled.read_bytes())


def _write(path: Path, content: bytes) -> None:
    with open(path, "wb", opener=owners_alone) as file:
        file.write(content)


def owners_alone(path: str, flags: int) -> int:
    """Open a file that only its owner may read, where it is new: an `opener` for `open`."""
    return os.open(path, flags, 0o600)


def _compile(source: Path) -> None:
    """Compile a module where Python would keep the result, if it may."""
    import py_compile

    if os.access(source.parent, os.W_OK) and not sys.dont_write_bytecode:
        with suppress(py_compile.PyCompileError):
            py_compile.compile(str(source), doraise=True)


def environment(folder: Path, guardian_pid: int, old: Mapping[str, str]) -> dict[str, str]:
    """What the environment of the job has beyond `old`.

    TMPDIR stays as it is, although a job that is killed leaves folders of its libraries there: torch
    keeps compiled code in it from run to run (a first `torch.compile` was seen to take 48 seconds,
    the next run's 2), and a program may want later what it has put there.
    """
    path = str(folder / "path")
    before = old.get("PYTHONPATH")
    return {
        "STUCK_RANKS_RUN": str(folder),
        "STUCK_RANKS_ID": folder.name,
        "STUCK_RANKS_PATH": path,
        "STUCK_RANKS_GUARDIAN": str(guardian_pid),
        "PYTHONPATH": f"{path}{os.pathsep}{before}" if before else path,
    }


def write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write run.json, at once or not at all."""
    new = folder / "run.json.new"
    _write(new, json.dumps({"place": place(), "boot": boot(), **record}, indent=1).encode())
    new.replace(folder / "run.json")


def records() -> list[Path]:
    """The records of this user's runs whose directories are there.

    Raises:
        OSError: there is no folder for temporary files.
    """
    return sorted(record for folder in _homes() for record in folder.glob("*/run.json"))


def identity(pid: int) -> tuple[int, float]:
    """A pid and how many seconds after boot its process started, 0 when it has gone.

    A clock that is set does not move it.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return pid, int(fields[19]) / os.sysconf("SC_CLK_TCK")  # proc_pid_stat(5): starttime
    except OSError:
        if sys.platform == "linux":
            return pid, 0.0
    import psutil

    try:
        return pid, psutil.Process(pid).create_time() - psutil.boot_time()
    except psutil.NoSuchProcess:
        return pid, 0.0


def boot() -> str:
    """The id of this boot of the machine; empty where the system has none (macOS)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def place() -> list[str]:
    """The host and pid namespace in which our pids are valid: others may share the folder."""
    try:
        return [os.uname().nodename, os.readlink("/proc/self/ns/pid")]
    except OSError:
        return [os.uname().nodename]
