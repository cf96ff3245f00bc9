"""Runs the checks of the project: `make test`, and the tests marked nightly and weekly.

    python tools/run_tests.py            lint, and what `make test` promises
    python tools/run_tests.py nightly    more tests, every other notebook and panel
    python tools/run_tests.py weekly     the tests of whose kind the nightly run has only some

Tests mostly wait for the processes that they started, so lanes of them run side by side; what the first
prints is shown at once, what the others print comes after it. All steps run even if one fails. The last
line counts: each test, and each linter as one. Ctrl-C ends what runs, and nothing is started after it.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from jupyter_env import configure, jupyter_env
from lessons import with_outputs

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome")
STEP_SECONDS = 4200
GRACE_SECONDS = 1.0
"""From the request to end to the end by force: pytest's own way out of Ctrl-C may take minutes."""

NBVAL = ("-vv", "--nbval", "--nbval-current-env", "--timeout=900", "--nbval-cell-timeout=600")
OUTSIDE = ("-c", "pyproject.toml", "-p", "conftest")
"""What pytest finds by itself only for files inside the project."""

SELECTED = {
    "test": "not nightly and not weekly",
    "nightly": "nightly and not weekly",
    "weekly": "weekly",
}
"""The run and what pytest is to select for it."""


@dataclass(frozen=True)
class Count:
    """How many checks passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Count) -> Count:
        """Return the sum of both."""
        return Count(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        """Return the closing line."""
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


@dataclass(frozen=True)
class Step:
    """One command; a pytest command is counted test by test, any other as one check.

    Attributes:
        env: variables that it gets on top of those of all steps.
    """

    name: str
    command: tuple[str, ...]
    is_pytest: bool = False
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Done:
    """What became of a step, and how many seconds it took."""

    code: int
    count: Count
    seconds: float


Lane = tuple[Step, ...]
"""Steps that run one after the other."""


class Processes:
    """The commands that run, each a process group, so that Ctrl-C reaches them through `end` alone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: list[subprocess.Popen[bytes]] = []
        self._ended = False

    def start(self, command: Sequence[str], env: Mapping[str, str], output: IO[str] | None) -> int:
        """Run a command to its end; return its exit code, or 124 when it took too long.

        Raises:
            KeyboardInterrupt: Ctrl-C, now or before.
        """
        with self._lock:
            if self._ended:
                raise KeyboardInterrupt
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
            )
            self._running.append(process)
        try:
            return process.wait(STEP_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill([process])
            print(f"{command[0]} was stopped after {STEP_SECONDS} s.", file=output, flush=True)
            return 124
        except KeyboardInterrupt:
            self.end()
            raise

    def end(self) -> None:
        """End what runs, and start nothing any more. Jobs of tests are ended by their guardians."""
        with self._lock:
            self._ended = True
            self._kill(self._running)

    @staticmethod
    def _kill(processes: Sequence[subprocess.Popen[bytes]]) -> None:
        running = [process for process in processes if process.poll() is None]
        for number in (signal.SIGTERM, signal.SIGKILL):
            for process in running:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, number)
            deadline = time.monotonic() + GRACE_SECONDS
            for process in running:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))


PROCESSES = Processes()


def lanes(python: str, run: str, guide: Path) -> list[Lane]:
    """What runs side by side; the linters belong to `test`, and no lesson or panel to `weekly`.

    Args:
        guide: a copy of the guide whose notebooks have their outputs.
    """

    def pytest(name: str, *words: str) -> Step:
        return Step(name, (python, "-m", "pytest", "-m", SELECTED[run], *words), is_pytest=True)

    linters = [
        Step("ruff check", (python, "-m", "ruff", "check", ".")),
        Step("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Step("mypy", (python, "-m", "mypy")),
        Step("import-linter", (str(Path(python).with_name("lint-imports")), "--no-cache", "--no-logo")),
        Step("vulture", (python, "-m", "vulture")),
    ]
    tests = pytest("tests", "--numprocesses=2", "tests/unit", "tests/real", "tests/notebooks")
    notebooks = replace(
        pytest("notebooks", *OUTSIDE, *NBVAL, str(guide)), env={"STUCK_RANKS_NOTEBOOKS": str(guide)}
    )
    browser = pytest("browser", "tests/browser")
    if run == "weekly":
        return [(tests,)]
    return [(*(linters if run == "test" else ()), tests), (notebooks, browser)]


def count_report(junit: Path, code: int) -> Count:
    """Count the tests in pytest's XML report; a run that failed without a failed test is one."""
    count = Count()
    try:
        suites = list(ET.parse(junit).getroot().iter("testsuite"))
    except (OSError, ET.ParseError):
        suites = []
    for suite in suites:
        total, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
        failed = int(suite.get("failures", 0)) + int(suite.get("errors", 0))
        count += Count(max(0, total - failed - skipped), failed, skipped)
    return count + Count(failed=1) if code != 0 and not count.failed else count


def run_step(step: Step, env: Mapping[str, str], junit: Path, output: IO[str] | None = None) -> Done:
    """Run one step; its output goes to `output`, or to the terminal."""
    start = time.monotonic()
    code = _exit_code(step, env, junit, output)
    passed = Count(passed=1) if code == 0 else Count(failed=1)
    count = count_report(junit, code) if step.is_pytest else passed
    return Done(code, count, time.monotonic() - start)


def _exit_code(step: Step, env: Mapping[str, str], junit: Path, output: IO[str] | None) -> int:
    command = [*step.command, f"--junitxml={junit}"] if step.is_pytest else step.command
    try:
        return PROCESSES.start(command, {**env, **step.env}, output)
    except OSError as error:
        print(f"{step.name} cannot run: {error}", file=output, flush=True)
        return 127


def provide_chromium() -> None:
    """Install Debian's Chromium where that is possible; without it browser tests are skipped."""
    if any(shutil.which(name) for name in CHROMIUMS):
        return
    if os.getuid() != 0 or not shutil.which("apt-get"):
        print("No Chromium here: the browser tests are skipped.", flush=True)
        return
    print("Installing Chromium for the browser tests (about 0.1 GB to download) ...", flush=True)
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "install", "-y", "--no-install-recommends", "chromium"],
    ):
        try:
            # Both streams are kept back: apt writes hundreds of lines.
            done = subprocess.run(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=300,
                check=False,
            )
            said = done.stderr.decode(errors="replace").strip().splitlines()
            problem = None if done.returncode == 0 else (said or ["it says no more"])[-1]
        except (OSError, subprocess.TimeoutExpired) as error:
            problem = str(error)
        if problem is not None:
            print(f"No Chromium, so the browser tests are skipped: {problem}", flush=True)
            return


def run_lane(
    lane: Lane, env: Mapping[str, str], folder: Path, output: IO[str] | None = None
) -> dict[str, Done]:
    """Run the steps of a lane; their output goes to `output`, or to the terminal."""
    done = {}
    for step in lane:
        print(f"\n== {step.name}", file=output, flush=True)
        done[step.name] = run_step(step, env, folder / f"{step.name}.xml", output)
    return done


def run(listed: Sequence[Lane], env: Mapping[str, str], folder: Path) -> int:
    """Run the lanes side by side, print what became of each step; return 0 only if none failed."""
    outputs = [(folder / f"lane-{number}").open("w+") for number in range(1, len(listed))]
    with ThreadPoolExecutor() as pool:
        others = [
            pool.submit(run_lane, lane, env, folder, output)
            for lane, output in zip(listed[1:], outputs, strict=True)
        ]
        try:
            finished = run_lane(listed[0], env, folder)
            wait(others)
        except KeyboardInterrupt:
            PROCESSES.end()  # and with it the other lanes, for which the pool waits
            raise
        for lane, output in zip(others, outputs, strict=True):
            finished |= lane.result()
            output.seek(0)
            print(output.read(), flush=True)
            output.close()
    print()
    for name, done in finished.items():
        word = "ok" if done.code == 0 else "FAILED"
        print(f"{name:<12} {word:<7} {done.seconds:5.0f} s   {done.count}")
    print(sum((done.count for done in finished.values()), Count()), flush=True)
    return int(any(done.code != 0 for done in finished.values()))


def main(words: Sequence[str]) -> int:
    """Run `test`, or the run that is named; return the exit code."""
    (wanted,) = words or ("test",)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        # What has just been killed may still write there.
        with tempfile.TemporaryDirectory(
            prefix="stuck-ranks-test-", ignore_cleanup_errors=True
        ) as folder:
            env = jupyter_env(VENV, Path(folder) / "jupyter", os.environ)
            configure(VENV)
            provide_chromium()
            guide = with_outputs(Path(folder))
            return run(lanes(str(VENV / "bin" / "python"), wanted, guide), env, Path(folder))
    except KeyboardInterrupt:
        print("\nStopped: nothing is counted, and nothing was started after Ctrl-C.", flush=True)
        return 130


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
