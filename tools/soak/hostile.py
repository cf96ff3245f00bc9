"""Runs the real command line on machines that lack something, each in namespaces of its own.

`python -m soak.hostile NAME FOLDER`, with `tools/` on the path, is one condition: `met` starts it under
`unshare`, so that mounts, ports and settings go with it whatever happens.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from score import trial

from helpers.launch.processes import is_alive

from . import jupyter
from .part import Part

HERE = Path(__file__).parent
TITLE = "Hostile machines"
LIMIT = 240.0
"""Seconds that one condition may take on a busy machine."""
ASLEEP = 30.0
"""Seconds for which the command line is stopped: as long as its patience."""
PORTS = range(40000, 40004)

LIGHT = (sys.executable, str(HERE / "light_job.py"))
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


@dataclass(frozen=True)
class Met:
    """What came under one condition.

    Attributes:
        ran: what was run; came: its exit code and the first line that it said.
        left: processes and folders of the run; fault: what is not as promised, empty for nothing.
    """

    ran: str
    came: str
    left: tuple[str, ...] = ()
    fault: str = ""


class Place:
    """A folder in which the command line runs.

    Attributes:
        temporary: TMPDIR.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir()
        self.environment = {
            **os.environ,
            "HOME": str(folder),
            "PYTHONPATH": str(trial.ROOT),
            "TMPDIR": str(self.temporary),
            "STUCK_RANKS_STATE": str(folder / "state"),
            "OMP_NUM_THREADS": "1",
            trial.MARKER: str(folder),
        }

    def run(
        self,
        words: Sequence[str],
        code: int,
        said: str,
        *,
        report: str = "",
        before: Sequence[str] = (),
        asleep: bool = False,
    ) -> Met:
        """Run the command line and judge what it says.

        Args:
            words: its verb and what follows.
            code: the exit code that is right; said: what stdout or stderr has to contain.
            report: what stdout has to contain.
            before: words before it that limit it.
            asleep: whether it is stopped for `ASLEEP` seconds once the job runs.
        """
        process = subprocess.Popen(
            [*before, sys.executable, "-m", "helpers", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if asleep:
            _stop_for_a_while(psutil.Process(process.pid))
        try:
            out, errors = process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            errors += "\nit did not end"
        own = [line for line in errors.splitlines() if not line.startswith("[")]
        lines = [line for line in (*own, *out.splitlines()) if line]
        left = self.left()
        right = process.returncode == code and said in out + errors and report in out
        if "Traceback" in "\n".join(own) or "a fault of its own" in errors:
            right = False
        fault = "" if right and not left else f"not {code} with {said!r}: {lines[:6]} {left}"
        first = (lines or ["nothing"])[0].replace(str(self.folder), "FOLDER")
        came = f"{process.returncode}: {first}"
        return Met(" ".join(words[:2]), came, tuple(left), fault)

    def left(self) -> list[str]:
        """Processes and folders of runs that are still there."""
        processes = trial.left_processes(trial.MARKER, str(self.folder))
        folders = self.temporary.glob("stuck-ranks-*/*")
        return [*(f"process {one.pid}" for one in processes), *(f"folder {one.name}" for one in folders)]


def full_disk(place: Place) -> Met:
    """No room for the run's folder: nothing is started."""
    _small(place.temporary, "96k")
    said = "No space left on device; set TMPDIR to another folder"
    return place.run(["diagnose", "--", *LIGHT, str(place.folder)], 64, said)


def disk_fills_up(place: Place) -> Met:
    """The job fills the disk of its own run: the verdict is right all the same."""
    _small(place.temporary, "2m")
    fill = f'dd if=/dev/zero of={place.temporary}/fill bs=1k 2>/dev/null; exec "$@"'
    job = ["sh", "-c", fill, "sh", *LIGHT, str(place.folder)]
    return place.run(["diagnose", "--", *job], 0, "The job ended well")


def full_disk_for(flag: str) -> Callable[[Place], Met]:
    """The disk of a file that was asked for is full: one sentence, and the report is on stdout."""

    def condition(place: Place) -> Met:
        other = place.folder / "other"
        other.mkdir()
        _small(other, "64k")
        file = other / "file"
        file.touch()
        with suppress(OSError), (other / "fill").open("wb", buffering=0) as fill:
            while True:
                fill.write(bytes(4096))
        words = ["diagnose", flag, str(file), "--", *LIGHT, str(place.folder)]
        code = 0 if flag == "--record" else 70
        return place.run(words, code, "No space left on device", report="The job ended well")

    return condition


def no_port(place: Place) -> Met:
    """Every port that the kernel gives out is taken."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(f"{PORTS[0]} {PORTS[-1]}")
    for port in PORTS:
        held = socket.socket()
        held.bind(("", port))
        held.listen()
        KEPT.append(held)
    return place.run(["diagnose", "--", *LIGHT, str(place.folder)], 1, "address-in-use")


def read_only_checkout(place: Place) -> Met:
    """The checkout cannot be written: a lab of it runs."""
    root = str(trial.ROOT)
    subprocess.run(["mount", "--bind", root, root], check=True)
    subprocess.run(["mount", "-o", "remount,bind,ro", root], check=True)
    return place.run(["lab", "05"], 1, "address-in-use")


def small_shared_memory(place: Place) -> Met:
    """1 MB of `/dev/shm`: a worker's batches do not fit."""
    _small(Path("/dev/shm"), "1m")
    job = trial.ROOT / "tests" / "jobs" / "shared_memory_full.py"
    return place.run(["diagnose", "--", *TORCHRUN, str(job)], 1, "out-of-memory")


def little_shared_memory(place: Place) -> Met:
    """1 MB of `/dev/shm`, and a job to which that is enough."""
    _small(Path("/dev/shm"), "1m")
    job = [*TORCHRUN, str(HERE / "torch_job.py"), str(place.folder)]
    return place.run(["diagnose", "--", *job], 0, "The job ended well")


def descriptors(number: int, code: int, said: str) -> Callable[[Place], Met]:
    """So many descriptors for the command line and for the job."""

    def condition(place: Place) -> Met:
        limit = ("prlimit", f"--nofile={number}")
        return place.run(["diagnose", "--", *LIGHT, str(place.folder)], code, said, before=limit)

    return condition


def asleep_over_healthy(place: Place) -> Met:
    """The command line is stopped while a rank takes small steps: that is no false alarm."""
    job = [*TORCHRUN, str(HERE / "steps_job.py")]
    words = ["diagnose", "--stop-on-suspicion", "--", *job]
    return place.run(words, 0, "The job ended well", asleep=True)


def asleep_over_hang(place: Place) -> Met:
    """The command line is stopped while the job comes to hang: the verdict comes afterwards."""
    job = [*TORCHRUN, str(trial.ROOT / "tests" / "jobs" / "barrier_for_one.py")]
    return place.run(["diagnose", "--", *job], 2, "HANG (proved)", asleep=True)


def kernel_asleep_over_hang(place: Place) -> Met:
    """The kernel of a notebook is stopped while its job comes to hang: the verdict comes afterwards."""
    told = place.folder / "told"
    job = [*TORCHRUN, str(trial.ROOT / "tests" / "jobs" / "barrier_for_one.py")]
    code = (
        "import threading\nfrom pathlib import Path\nfrom helpers.session import Session\n"
        f"session = Session({job!r}).start()\n"
        f"def tell():\n    said = session.wait().verdict\n    new = Path({str(told)!r} + '.new')\n"
        "    new.write_text(f'{said.outcome}, proved {said.proved}')\n"
        f"    new.rename({str(told)!r})\n"
        "threading.Thread(target=tell).start()"
    )
    with jupyter.kernel(place.folder, place.environment, code) as kernel:
        _stop_for_a_while(kernel)
        until = time.monotonic() + LIMIT
        while not told.exists() and time.monotonic() < until:
            time.sleep(0.1)
    came = told.read_text() if told.exists() else "nothing"
    left = place.left()
    right = came == "hang, proved True" and not left
    return Met("a job in a notebook", came, tuple(left), "" if right else f"{came} {left}")


def _stop_for_a_while(process: psutil.Process) -> None:
    """SIGSTOP, once the guardian, the launcher and two ranks of its run are there, and SIGCONT."""
    while is_alive(process) and len(process.children(recursive=True)) < 4:
        time.sleep(0.1)
    time.sleep(1.0)
    process.suspend()
    time.sleep(ASLEEP)
    process.resume()


KEPT: list[socket.socket] = []
"""Ports that are held until the process of a condition ends."""

CONDITIONS: dict[str, Callable[[Place], Met]] = {
    "a full TMPDIR": full_disk,
    "a TMPDIR that fills up": disk_fills_up,
    "--json on a full disk": full_disk_for("--json"),
    "--html on a full disk": full_disk_for("--html"),
    "--record on a full disk": full_disk_for("--record"),
    "no free port": no_port,
    "8 descriptors": descriptors(8, 64, "Too many open files"),
    "16 descriptors": descriptors(16, 0, "The job ended well"),
    "64 descriptors": descriptors(64, 0, "The job ended well"),
    "a read-only checkout": read_only_checkout,
    "1 MB of /dev/shm, too little": small_shared_memory,
    "1 MB of /dev/shm, enough": little_shared_memory,
    "stopped for 30 s over a healthy job": asleep_over_healthy,
    "stopped for 30 s over a hang": asleep_over_hang,
    "a kernel stopped for 30 s over a hang": kernel_asleep_over_hang,
}
"""In the order of their seconds: what follows `64 descriptors` takes more than ten."""
QUICK = tuple(CONDITIONS)[: list(CONDITIONS).index("64 descriptors") + 1]


def met(name: str) -> Met:
    """What comes under a condition, which only root can make."""
    with tempfile.TemporaryDirectory(prefix="soak-hostile-") as folder:
        apart = ["--net"] if name == "no free port" else []
        path = os.pathsep.join((str(trial.ROOT / "tools"), str(trial.ROOT)))
        done = subprocess.run(
            ["unshare", "--mount", *apart, sys.executable, "-m", "soak.hostile", name, folder],
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    told = json.loads(done.stdout)
    return Met(**{**told, "left": tuple(told["left"])})


def measure(*, quick: bool = False) -> Part:
    """Meet every condition.

    Args:
        quick: only those that take less than ten seconds.
    """
    if sys.platform != "linux" or os.getuid() != 0:
        return Part(TITLE, ("Skipped: only root on Linux can make such machines.",), ())
    found = {name: met(name) for name in (QUICK if quick else CONDITIONS)}
    rows = (
        f"| {name} | `{one.ran}` | {one.came.replace('|', '/')} | {len(one.left)} |"
        for name, one in found.items()
    )
    lines = ("| condition | ran | exit code and first line | left over |", "|---|---|---|---|", *rows)
    return Part(TITLE, lines, tuple(f"{name}: {one.fault}" for name, one in found.items() if one.fault))


def _small(folder: Path, size: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)


if __name__ == "__main__":
    print(json.dumps(asdict(CONDITIONS[sys.argv[1]](Place(Path(sys.argv[2]))))))
