"""How fast a job may print, beside the same job without the instrument."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

ROUNDS = 7
LINES = 2_000_000

PRINTS = """
import os, sys
for process in range({processes} - 1):
    if os.fork() == 0:
        break
line = "x" * 99 + "\\n"
for _ in range({lines} // {processes} // 1000):
    {action}
"""
KINDS = {
    "one process, a megabyte of lines at a time": (1, "sys.stdout.write(line * 1000)"),
    "one process, a line at a time": (1, "for _ in range(1000): print(line, end='', flush=True)"),
    "8 processes, a megabyte of lines at a time": (8, "sys.stdout.write(line * 1000)"),
}
"""What prints -> how many processes, and the statement that prints 1,000 lines."""


def throughput(rounds: int = ROUNDS, number: int = LINES) -> Iterator[str]:
    """Seconds until all that a job prints has been read, plain and under `diagnose`, in turns."""
    yield f"| what prints {number // 10_000} MB | plain | `diagnose` | ratio | lines that arrive |"
    yield "|---|---|---|---|---|"
    for kind, (processes, action) in KINDS.items():
        program = PRINTS.format(processes=processes, lines=number, action=action)
        plain = [sys.executable, "-c", program]
        watched = [sys.executable, "-m", "helpers", "diagnose", "--", *plain]
        pairs = [(_seconds(plain), _seconds(watched)) for _ in range(rounds)]
        (before, _), (after, lines) = (_median(times) for times in zip(*pairs, strict=True))
        ratio = statistics.median(watched[0] / plain[0] for plain, watched in pairs)
        wanted = number // processes // 1000 * 1000 * processes
        yield f"| {kind} | {before:.2f} s | {after:.2f} s | {ratio:.2f} | {lines / wanted:.1%} |"
    yield ""
    yield (
        f"The medians of {rounds} runs of each, in turns, into a pipe that `grep -c` reads; a run of "
        "`diagnose` also starts its own interpreter and writes its report."
    )


def _seconds(command: Sequence[str]) -> tuple[float, int]:
    """How long a command runs, and how many lines it prints on either stream."""
    began = time.monotonic()
    count = subprocess.Popen(
        ["grep", "-c", "x" * 99], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    subprocess.run(command, stdout=count.stdin, stderr=count.stdin, check=True)
    printed, _ = count.communicate()
    return time.monotonic() - began, int(printed)


def _median(times: Sequence[tuple[float, int]]) -> tuple[float, int]:
    return statistics.median(seconds for seconds, _ in times), min(lines for _, lines in times)
