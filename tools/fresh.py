"""Runs the README's two commands as a new user would: `make fresh`. Standard library only.

An ordinary user with an empty home, pip without settings, the system's Python, `umask 077`, `LANG=C`,
a TMPDIR of its own and a clone in a path with a space. `make lab` is interrupted twice in the middle
and run again, until its server answers; `make test` then runs without the network. Run by root, it makes
that user and removes it; run by another user, it runs as that user, with the network. Where PyTorch's
CPU index cannot be reached, torch comes from a folder of wheels that pip is set to (`find-links`).
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from setup_env import CPU_INDEX, ROOT

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
GUIDE = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
ANNOUNCED = re.compile(r"^Packages to download: (.*)\. Free disk", re.MULTILINE)
UNPACKS = "Installing collected packages"
"""What pip prints when it begins to write packages: the worst moment to be interrupted."""

LIMIT = 5400.0
"""Seconds for one command."""
YIELDS = 120.0
"""Seconds that a command has to end after Ctrl-C, on a busy machine too."""

LEAST, MOST, PAGES = 0.7, 1.3, 150.0
"""What may be received of the megabytes announced, at least and at most (other Pythons and systems have
wheels of other sizes), and megabytes of the index's pages: an index that does not compress them was seen
to send 61 for each pass."""


class FreshError(Exception):
    """A command did not do what it should; the text says which."""


@dataclass(frozen=True)
class User:
    """The user as whom the commands run.

    Attributes:
        become: the words before a command, which make it that user's.
        ids: its number and its group's, None where it is the user who runs this.
    """

    become: Sequence[str]
    ids: tuple[int, int] | None


@contextmanager
def new_user(home: Path) -> Iterator[User]:
    """An ordinary user with this home; made and removed by root, otherwise the current user."""
    if os.getuid() != 0:
        home.mkdir(mode=0o700)
        yield User((), None)
        return
    name = f"fresh{os.getpid()}"
    command = ["useradd", "--create-home", "--home-dir", str(home), "--shell", "/bin/sh", name]
    subprocess.run(command, check=True, capture_output=True)
    try:
        who = pwd.getpwnam(name)
        ids = (who.pw_uid, who.pw_gid)
        yield User(("setpriv", f"--reuid={ids[0]}", f"--regid={ids[1]}", "--clear-groups"), ids)
    finally:
        subprocess.run(["userdel", "--force", name], check=True, capture_output=True)


def without_network() -> list[str]:
    """The words before a command that leave it the loopback alone, or none where only root could."""
    if os.getuid() != 0:
        return []
    return ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def stand_in(folder: Path) -> dict[str, str]:
    """pip's setting for torch where its CPU index does not answer: a folder with that wheel alone."""
    with suppress(OSError), urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=10):
        return {}
    ask = [sys.executable, "-m", "pip", "config", "get", "global.find-links"]
    told = subprocess.run(ask, capture_output=True, text=True, check=False).stdout
    places = (os.environ.get("PIP_FIND_LINKS") or told).split()
    wheels = [wheel for place in places for wheel in Path(place).glob("torch-*.whl")]
    if not wheels:
        return {}
    folder.mkdir()
    for wheel in wheels:
        shutil.copy(wheel, folder)
    print(f"PyTorch's CPU index does not answer; {wheels[0].name} is used instead.", flush=True)
    return {"PIP_FIND_LINKS": str(folder)}


def received() -> float:
    """Megabytes that this machine has received over the network since its start (Linux)."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:]
    return sum(int(line.split()[1]) for line in lines if not line.strip().startswith("lo:")) / 1e6


class Shell:
    """Runs commands in the clone as the new user, and shows what they print."""

    def __init__(self, clone: Path, user: User, env: Mapping[str, str]) -> None:
        self.clone, self.user, self.env = clone, user, dict(env)

    def run(
        self,
        command: Sequence[str],
        *,
        before: Sequence[str] = (),
        until: Callable[[str], bool] = lambda _: False,
    ) -> tuple[int, str]:
        """Run a command; (exit code, what it printed). Interrupt it, as Ctrl-C does, once `until` holds.

        Args:
            command: its words.
            before: words before those that make it the user's.
            until: asked five times a second, with all that has been printed.
        """
        print(f"$ {' '.join(command)}", flush=True)
        said = ""
        interrupted = False
        deadline = time.monotonic() + LIMIT
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "output"
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [*before, *self.user.become, "sh", "-c", 'umask 077; exec "$@"', "sh", *command],
                    cwd=self.clone,
                    env=self.env,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            with log.open(errors="replace") as printed:
                while True:
                    ended = process.poll()
                    new = printed.read()
                    print(new, end="", flush=True)
                    said += new
                    if ended is not None:
                        return ended, said
                    if time.monotonic() > deadline:
                        os.killpg(process.pid, signal.SIGKILL)
                        late = f"{YIELDS:.0f} s after Ctrl-C" if interrupted else f"after {LIMIT:.0f} s"
                        raise FreshError(f"{' '.join(command)} had not ended {late}.")
                    if not interrupted and until(said):
                        interrupted = True
                        deadline = time.monotonic() + YIELDS
                        os.killpg(process.pid, signal.SIGINT)
                    time.sleep(0.2)


def interrupted_set_up(shell: Shell) -> None:
    """`make lab`, twice, with Ctrl-C while pip writes torch's files, and while it writes the others'."""
    log = shell.clone / ".venv" / "pip.log"
    before = received()
    for step in ("^Installing the packages", "^Installing PyTorch"):

        def writes(said: str, step: str = step) -> bool:
            begun = re.search(step, said, re.MULTILINE)
            return begun is not None and log.is_file() and UNPACKS in log.read_text()

        code, said = shell.run(["make", "lab"], until=writes)
        if code == 0 or "goes on from here" not in said:
            raise FreshError(f"make lab, interrupted, ended with {code} and not with its sentence.")
    told, came = announced(said, "PIP_FIND_LINKS" in shell.env), received() - before
    print(f"announced {told:.0f} MB, received {came:.0f} MB", flush=True)
    if not told * LEAST <= came <= told * MOST + PAGES:
        raise FreshError(f"make lab announced {told:.0f} MB to download, and received {came:.0f} MB.")


def lab(shell: Shell) -> None:
    """`make lab` until JupyterLab answers."""

    def answers(said: str) -> bool:
        found = GUIDE.search(said)
        if found is None:
            return False
        with urllib.request.urlopen(found[0], timeout=30) as page:
            return bool(page.status == 200)

    code, said = shell.run(["make", "lab", "LAB_ARGS=--no-browser"], until=answers)
    if GUIDE.search(said) is None:
        raise FreshError(f"make lab ended with {code} before its server answered.")


def tests(shell: Shell) -> None:
    """`make test`: set-up with the network, all else without."""
    for command, before in (
        (["make", ".venv/stamp-test"], []),
        (["make", "test"], without_network()),
    ):
        code, _ = shell.run(command, before=before)
        if code != 0:
            raise FreshError(f"{' '.join(command)} ended with {code}.")


def announced(said: str, torch_is_here: bool) -> float:
    """Megabytes that the set-up has announced, in its newest sentence; with torch or without."""
    parts = ANNOUNCED.findall(said)[-1].split("; ")
    if torch_is_here:
        parts = [part for part in parts if not part.startswith("PyTorch")]
    return sum(float(size) * 1000 for part in parts for size in re.findall(r"([\d.]+) GB", part))


def size(folder: Path) -> float:
    """Megabytes on disk below a folder."""
    told = subprocess.run(["du", "-sm", str(folder)], capture_output=True, text=True, check=True)
    return float(told.stdout.split()[0])


def check(base: Path) -> list[str]:
    """Run all; return what to print in the end, a line each."""
    with new_user(base / "home") as user:
        clone = base / "a checkout"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        (base / "tmp").mkdir()
        env = {"HOME": str(base / "home"), "PATH": SYSTEM_PATH, "LANG": "C", "TERM": "dumb"}
        env |= {"TMPDIR": str(base / "tmp"), **stand_in(base / "wheels")}
        if user.ids is not None:
            subprocess.run(["chown", "-R", "{}:{}".format(*user.ids), str(base)], check=True)
        shell = Shell(clone, user, env)
        found = []
        try:
            for name, step in (
                ("make lab, interrupted", interrupted_set_up),
                ("make lab, again", lab),
                ("make test", tests),
            ):
                start, before = time.monotonic(), received()
                step(shell)
                minutes, megabytes = (time.monotonic() - start) / 60, received() - before
                venv = size(clone / ".venv")
                came = f"{minutes:5.1f} minutes {megabytes:6.0f} MB received"
                found.append(f"{name:<22} {came}, .venv {venv:.0f} MB")
                print(found[-1], flush=True)
        finally:
            if user.ids is not None:
                end_all(user.ids[0])
        return found


def end_all(uid: int, seconds: float = 10.0) -> None:
    """End what still runs as the user that was made here, and wait until it is gone."""
    deadline = time.monotonic() + seconds
    while (left := processes_of(uid)) and time.monotonic() < deadline:
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)


def processes_of(uid: int) -> list[int]:
    """The processes of a user."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == uid:
                found.append(int(folder.name))
    return found


def main() -> int:
    """Run from the command line; return the exit code."""
    # A shell has what it starts in the background ignore Ctrl-C, and children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="stuck-ranks-fresh-") as name:
        try:
            found = check(Path(name))
        except FreshError as error:
            print(error, file=sys.stderr)
            return 1
    print("\n".join(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
