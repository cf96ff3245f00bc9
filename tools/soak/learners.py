"""Several learners at once on one machine, each a user of its own: none meets another.

Root gives each learner a uid, a HOME and a copy of the labs; TMPDIR is the one that they share.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from score import trial

from helpers.labs.lab import find_lab, labs_folder
from helpers.model.facts import EXIT_CODES

from .part import Part

FIRST_UID = 40001
"""The first of the learners' uids, which no account of a usual machine has."""
PROGRAMS = ("broken", "fixed")
LIMIT = 900.0
"""Seconds that a run may take while all others run, too."""
TITLE = "Learners at once"


def measure(learners: int, lab: str) -> Part:
    """Have that many users run a lab's broken and fixed program at the same time.

    Args:
        lab: its name or number.
    """
    if os.getuid() != 0:
        return Part(TITLE, ("Skipped: only root can be several users.",), ())
    with tempfile.TemporaryDirectory(prefix="soak-learners-") as place:
        shared = Path(place)
        shared.chmod(0o755)
        (shared / "tmp").mkdir()
        (shared / "tmp").chmod(0o1777)
        shutil.copytree(trial.ROOT / "helpers", shared / "code" / "helpers")
        for path in (shared / "code").rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        with ThreadPoolExecutor(learners) as pool:
            uids = range(FIRST_UID, FIRST_UID + learners)
            faults = [
                fault
                for found in pool.map(lambda uid: _learner(shared, uid, lab), uids)
                for fault in found
            ]
        faults += [f"left in TMPDIR: {path}" for path in (shared / "tmp").glob("stuck-ranks-*/*")]
        faults += [
            f"{path} belongs to uid {path.stat().st_uid}"
            for path in (shared / "tmp").glob("stuck-ranks-*")
            if path.name != f"stuck-ranks-{path.stat().st_uid}"
        ]
    lines = (f"{learners} users ran {' and '.join(PROGRAMS)} of lab {lab} at the same time.",)
    return Part(TITLE, lines, tuple(faults))


def _learner(shared: Path, uid: int, lab: str) -> list[str]:
    """What one learner meets that is not as it is alone."""
    home = shared / f"home-{uid}"
    notebooks = home / "notebooks"
    one = find_lab(lab)
    shutil.copytree(labs_folder() / one.name, notebooks / one.name)
    for path in (home, *home.rglob("*")):
        os.chown(path, uid, uid)
    home.chmod(0o700)
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
        "PYTHONPATH": str(shared / "code"),
        "TMPDIR": str(shared / "tmp"),
        "STUCK_RANKS_NOTEBOOKS": str(notebooks),
        trial.MARKER: str(uid),
    }
    return [fault for program in PROGRAMS for fault in _run(home, uid, lab, program, environment)]


def _run(home: Path, uid: int, lab: str, program: str, environment: dict[str, str]) -> Iterator[str]:
    own = find_lab(lab)
    expected = own.expected(program, own.settings(program, {}))
    done = subprocess.run(
        [*_as_user(uid, home.parent), sys.executable, "-m", "helpers", "lab", lab, "--program", program],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    who = f"learner {uid}, {program}"
    wanted = EXIT_CODES[expected.outcome]
    if done.returncode != wanted or (expected.cause != "none" and expected.cause not in done.stdout):
        said = (done.stdout + done.stderr)[-600:]
        yield f"{who}: exit code {done.returncode}, not {wanted} for {expected.cause}: {said}"
    for process in trial.left_processes(trial.MARKER, str(uid)):
        yield f"{who}: process {process.pid} is left"


def _as_user(uid: int, shared: Path) -> list[str]:
    """The words before a command that make it this user's.

    A Python below root's own home, which nobody else may enter, is mounted again in a place where that
    home is open and else empty; only the learner's processes see it.
    """
    become = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
    home, python = Path.home(), Path(sys.base_prefix)
    if not python.is_relative_to(home):
        return become
    spare = shared / f"python-{uid}"
    spare.mkdir(exist_ok=True)
    script = (
        'mount --bind "$2" "$3" && mount -t tmpfs -o mode=755 none "$1" && mkdir -p "$2" '
        '&& mount --bind "$3" "$2" && shift 3 && exec "$@"'
    )
    return ["unshare", "--mount", "sh", "-c", script, "sh", str(home), str(python), str(spare), *become]
