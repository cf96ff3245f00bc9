"""Repeats the real and the browser tests, to find those that pass only sometimes: `make steady`.

Ten rounds, of which the last three run next to as many busy loops as there are cores. Each round is
added to benchmarks/steady.md as it ends. Rounds add up across commits as long as the code under test is
the same; when it changes they start again from zero. A failure ends the run: a test that fails only
sometimes has a fault, or has found one.
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
LOCKS = ("requirements.lock", "requirements-test.lock", "requirements-torch.lock")
UNDER_TEST = ("helpers", "notebooks", "tests", "conftest.py", "pyproject.toml", *LOCKS)
ROUNDS, BUSY = 10, 3
"""Rounds in all, and how many of them, at the end, run on a busy machine."""
TESTS = ("tests/real", "tests/browser")

HEAD = """\
# The real and the browser tests, again and again

Each round runs all of them, those of `make nightly` included; "busy": next to a busy loop on every core.
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


def failures(page: str, code: str) -> list[int]:
    """The number of failed tests of each round that a page has for this code."""
    if f"`{code}`" not in page:
        return []
    return [
        int(failed) for failed in re.findall(r"^\| \d+ (?:\|[^|]+){4}\| (\d+) \|", page, re.MULTILINE)
    ]


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
    """Run the rounds that are missing; return 0 when there are ten and nothing failed in any."""
    try:
        tested = code()
    except SteadyError as problem:
        print(problem, file=sys.stderr)
        return 64
    provide_chromium()
    page = PAGE.read_text() if PAGE.exists() else ""
    failed = failures(page, tested)
    if not failed:
        page = HEAD.format(code=tested)
    while len(failed) < ROUNDS and not any(failed):
        busy = len(failed) >= ROUNDS - BUSY
        count, seconds = run_round(busy)
        failed.append(count.failed)
        page += (
            f"| {len(failed)} | {git('rev-parse', '--short', 'HEAD').strip()} "
            f"| {datetime.now(UTC):%Y-%m-%d} | {'busy' if busy else 'quiet'} "
            f"| {count.passed} | {count.failed} | {count.skipped} | {seconds / 60:.1f} |\n"
        )
        PAGE.write_text(page)
        print(f"{time.strftime('%H:%M')} round {len(failed)} of {ROUNDS}: {count}", flush=True)
    if any(failed):
        print(f"Round {len(failed)} failed; without {PAGE.name} the next run starts again.")
    return int(any(failed))


if __name__ == "__main__":
    raise SystemExit(main())
