"""Repeats the real and the browser tests, to find those that pass only sometimes: `make steady`.

Ten rounds, of which the last three run beside as many busy loops as there are cores. Each round is
added to benchmarks/steady.md as it ends. Rounds add up across commits as long as the code under test is
the same; when it changes they start again from zero. The first failure ends the run: a test that fails
only sometimes has a fault to be found, or has found one.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from jupyter_env import jupyter_env
from run_tests import ROOT, Count, Step, provide_chromium, run_step

PAGE = ROOT / "benchmarks" / "steady.md"
UNDER_TEST = ("helpers", "notebooks", "tests", "conftest.py", "pyproject.toml", "requirements.lock")
ROUNDS, BUSY = 10, 3
TESTS = ("tests/real", "tests/browser")

HEAD = """\
# The real and the browser tests, again and again

Each round runs all of them, those of `make nightly` included; "busy": beside a busy loop on every core.
Made by `make steady` with the code `{code}`.

| round | commit | date | machine | passed | failed | skipped | minutes |
|---|---|---|---|---|---|---|---|
"""


class SteadyError(Exception):
    """No round can be run; the text is one sentence."""


def git(*words: str) -> str:
    """What git prints."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def code() -> str:
    """A name for the code under test as it is committed.

    Raises:
        SteadyError: some of it is not committed.
    """
    if git("status", "--porcelain", "--", *UNDER_TEST):
        raise SteadyError("Commit first: a round belongs to a commit.")
    return hashlib.sha256(git("ls-tree", "-r", "HEAD", "--", *UNDER_TEST).encode()).hexdigest()[:12]


def rounds(page: str, code: str) -> int:
    """How many rounds without a failure a page has for this code."""
    if f"`{code}`" not in page:
        return 0
    return len(re.findall(r"^\| \d+ (\|[^|]+){4}\| 0 \|", page, re.MULTILINE))


@contextmanager
def busy_loops(number: int) -> Iterator[None]:
    """Processes that do nothing but use a core each."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run_round(busy: bool) -> tuple[Count, float]:
    """Run all once; return what came of it, and the seconds that it took."""
    command = (sys.executable, "-m", "pytest", "-m", "", "--numprocesses=2", *TESTS)
    with tempfile.TemporaryDirectory(prefix="stuck-ranks-steady-") as folder:
        env = jupyter_env(ROOT / ".venv", Path(folder) / "jupyter", os.environ)
        with busy_loops((os.cpu_count() or 1) if busy else 0):
            done = run_step(Step("steady", command, is_pytest=True), env, Path(folder) / "junit.xml")
    return done.count, done.seconds


def main() -> int:
    """Run what is missing of the ten rounds; return 0 when ten are there and nothing failed."""
    try:
        tested = code()
    except SteadyError as problem:
        print(problem, file=sys.stderr)
        return 64
    provide_chromium()
    page = PAGE.read_text() if PAGE.exists() else ""
    done = rounds(page, tested)
    if not done:
        page = HEAD.format(code=tested)
    while done < ROUNDS:
        busy = done >= ROUNDS - BUSY
        count, seconds = run_round(busy)
        done += 1
        page += (
            f"| {done} | {git('rev-parse', '--short', 'HEAD').strip()} | {datetime.now(UTC):%Y-%m-%d} "
            f"| {'busy' if busy else 'quiet'} | {count.passed} | {count.failed} | {count.skipped} "
            f"| {seconds / 60:.1f} |\n"
        )
        PAGE.write_text(page)
        print(f"{time.strftime('%H:%M')} round {done} of {ROUNDS}: {count}", flush=True)
        if count.failed:
            return 1
    return int(
        any(failed != "0" for failed in re.findall(r"^(?:\|[^|]*){5}\| (\d+) ", page, re.MULTILINE))
    )


if __name__ == "__main__":
    raise SystemExit(main())
