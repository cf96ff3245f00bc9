"""Kills processes of runs at random moments, and counts what is left of each run.

Within two seconds of the end of a run's owner (the command line, or the kernel) nothing of the run may
be left running. Where the owner and the guardian were killed at once, and for folders, the next run of
anything has to have cleaned up.
"""

from __future__ import annotations

import fcntl
import os
import random
import re
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from score import trial

from helpers.launch.processes import is_alive

from . import jupyter
from .part import Part

HERE = Path(__file__).parent
COMMANDS = {
    "two processes": (sys.executable, str(HERE / "light_job.py")),
    "torchrun": (
        sys.executable,
        *("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"),
        str(HERE / "torch_job.py"),
    ),
}
TERMINAL = ("command line", "guardian", "launcher", "rank", "worker")
NOTEBOOK = ("kernel", "server", "guardian", "rank")
SPAN = 2.5
"""Seconds after the appearance of a process within which it is killed; the shortest job ends in 2."""
LIMIT = 60.0
"""Seconds that a run may take, on a busy machine."""
TICK = 0.02


@dataclass(frozen=True)
class Kill:
    """One run in which something was killed.

    Attributes:
        roles: what was to be killed.
        after: seconds from the appearance of the last of them to the kill.
        hit: how many were still alive then.
        running: what was left 2 seconds after the owner had gone.
        left: what was left after the next run.
        strewn: what the job's own libraries left beside the run folders.
    """

    command: str
    roles: tuple[str, ...]
    after: float
    hit: int
    running: tuple[str, ...]
    left: tuple[str, ...]
    strewn: tuple[str, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What is not as promised: two kills at once may leave processes to the next run."""
        both = "guardian" in self.roles and {"command line", "kernel", "server"} & set(self.roles)
        return self.left if both else tuple(dict.fromkeys(self.running + self.left))


def measure(kills: int, seed: int) -> Part:
    """Kill in that many runs; those in which everything had ended by itself do not count.

    Args:
        seed: decides what is killed, and when.
    """
    chance = random.Random(seed)
    done: list[Kill] = []
    late = 0
    while len(done) < kills:
        one = _one(chance)
        if not one.hit and not one.faults:
            late += 1
            continue
        done.append(one)
        said = ", ".join(one.faults) or "nothing left"
        print(f"{len(done)}/{kills} {_shown(one)}: {said}", file=sys.stderr)
    counted = Counter(" and ".join(one.roles) for one in done)
    wrong = Counter(" and ".join(one.roles) for one in done if one.faults)
    strewn = Counter(name for one in done for name in one.strewn)
    lines = (
        f"{kills} runs, seed {seed}, and {late} more, which had ended before anything was killed.",
        "",
        "| killed | runs | something left |",
        "|---|---|---|",
        *(f"| {roles} | {runs} | {wrong[roles]} |" for roles, runs in sorted(counted.items())),
        "",
        "The job's own libraries left in TMPDIR: "
        + (", ".join(f"{count} times `{name}`" for name, count in strewn.items()) or "nothing")
        + ". They leave the same without the instrument: torchrun a `torchelastic_*` of every run, "
        "`multiprocessing` a `pymp-*` of a process that is killed.",
    )
    faults = tuple(f"{_shown(one)}: {', '.join(one.faults)}" for one in done if one.faults)
    return Part("Kills at random moments", lines, faults)


def _shown(kill: Kill) -> str:
    return f"{' and '.join(kill.roles)} killed after {kill.after:.2f} s, {kill.command}"


def _one(chance: random.Random) -> Kill:
    name = chance.choices(tuple(COMMANDS), weights=(3, 1))[0]
    in_notebook = chance.random() < 0.25
    roles = tuple(chance.sample(NOTEBOOK if in_notebook else TERMINAL, chance.choice((1, 1, 2))))
    after = chance.uniform(0, SPAN)
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as place:
        folder, mark = Path(place), secrets.token_hex(8)
        notes, temporary = folder / "notes", folder / "tmp"
        notes.mkdir()
        temporary.mkdir()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(trial.ROOT), os.environ.get("PYTHONPATH", ""))),
            "TMPDIR": str(temporary),
            "OMP_NUM_THREADS": "1",
            trial.MARKER: mark,
        }
        own = _in_kernel if in_notebook else _in_terminal
        with own(folder, environment, [*COMMANDS[name], str(notes)]) as owner:
            hit = _kill(owner, roles, after)
            with suppress(psutil.TimeoutExpired):
                owner.wait(LIMIT)
            running = [*_alive(mark), *_held(notes, mark)]
        nothing = [sys.executable, "-m", "helpers", "diagnose", "--", "true"]
        subprocess.run(
            nothing, env=environment, cwd=folder, capture_output=True, timeout=LIMIT, check=True
        )
        left = [*_alive(mark, end=True), *_held(notes, mark)]
        left += [f"folder {path.name}" for path in temporary.glob("stuck-ranks-*/*")]
        strewn = [
            _kind(path) for path in temporary.iterdir() if not path.name.startswith("stuck-ranks-")
        ]
    return Kill(name, roles, after, hit, tuple(running), tuple(left), tuple(strewn))


@contextmanager
def _in_terminal(
    folder: Path, environment: Mapping[str, str], command: list[str]
) -> Iterator[psutil.Process]:
    words = [sys.executable, "-m", "helpers", "diagnose", "--", *command]
    with subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


@contextmanager
def _in_kernel(
    folder: Path, environment: Mapping[str, str], command: list[str]
) -> Iterator[psutil.Process]:
    """The kernel ends by itself once the run is over, as the command line does."""
    code = (
        "import os, threading\nfrom helpers.session import Session\n"
        f"session = Session({command!r})\nsession.start()\n"
        "def end():\n    session.wait()\n    os._exit(0)\n"
        "threading.Thread(target=end).start()"
    )
    with jupyter.kernel(folder, environment, code) as kernel:
        yield kernel


def _kill(owner: psutil.Process, roles: tuple[str, ...], after: float) -> int:
    """Wait for all of these processes and some seconds more, then kill them: how many were alive."""
    victims: list[psutil.Process] = []
    while is_alive(owner) and len(victims) < len(roles):
        time.sleep(TICK)
        with suppress(psutil.Error):
            found = _roles(owner)
            victims = [found[role] for role in roles if role in found]
    with suppress(psutil.TimeoutExpired):
        owner.wait(after)
    alive = [victim for victim in victims if is_alive(victim)]
    for victim in alive:
        with suppress(psutil.NoSuchProcess):
            victim.kill()
    return len(alive)


def _roles(owner: psutil.Process) -> dict[str, psutil.Process]:
    """Who is who in the tree of a run, as far as it has grown."""
    found = {"command line": owner, "kernel": owner}
    server = owner.parent()
    if server is not None:
        found["server"] = server
    level = [one for one in owner.children() if "guardian.py" in " ".join(one.cmdline())]
    for role in ("guardian", "launcher", "rank", "worker"):
        if not level:
            break
        found[role] = level[-1]
        level = level[-1].children()
    return found


def _alive(mark: str, *, end: bool = False) -> list[str]:
    """Processes of the run that do not end in time, told by their words."""
    found = []
    for process in trial.left_processes(trial.MARKER, mark):
        with suppress(psutil.Error):
            found.append(f"process {' '.join(process.cmdline())[:100]}")
            if end:
                process.kill()
    return found


def _held(notes: Path, mark: str) -> Iterator[str]:
    """Ports and locks of the job that are still taken."""
    for file in notes.glob("port-*"):
        port = int(file.read_text() or 0)
        if trial.listened_on(port, mark):
            yield f"port {port}"
    for file in notes.glob("lock-*"):
        with file.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield file.name


def _kind(path: Path) -> str:
    """The name without what chance has put into it: `pymp-*`."""
    return re.sub(r"(?<=[-_.])[A-Za-z0-9_]{8,}$", "*", path.name)
