"""No false alarm: healthy programs under every verb, and hangs beside which a thread goes on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
from score.trial import ROOT
from steady import busy_loops

from .loops import ARRIVES, PERIODS, Hang, Loop, all_hangs, all_loops, some_loops
from .part import Part

TITLE = "No false alarm"

AT_ONCE = 6
"""Programs that run at the same time."""

LIMIT = 150.0
"""Seconds within which the tool has to answer."""

EARLIEST, LATEST = 3.0, 9.0
"""Seconds, at random between these, that a program goes on before it is attached to: after its start or,
where it hangs, after all of its processes have come to where they do."""

WAYS = {
    "attach": ("--patience", "10"),
    "attach --patience 30": ("--patience", "30"),
    "diagnose --max-seconds 15": ("--max-seconds", "15"),
    "diagnose --patience 8 --stop-on-suspicion": ("--patience", "8", "--stop-on-suspicion"),
}
"""Ways to look at a program, and the options of each."""

ENDS = ("--max-seconds", "25")
"""Options that end the diagnosis of a healthy program, which would go on for ever."""

SHORT = ("attach", "diagnose --patience 8 --stop-on-suspicion")
"""Those in which a hang is found within seconds."""

QUIET = {"stdout": asyncio.subprocess.DEVNULL, "stderr": asyncio.subprocess.DEVNULL}


class Run(NamedTuple):
    """What one way of looking has said of one program; outcome: empty where there is no report."""

    program: Loop | Hang
    way: str
    outcome: str
    summary: str

    @property
    def is_right(self) -> bool:
        """True for a hang that is called one, and for a healthy program that runs."""
        return self.outcome == ("hang" if isinstance(self.program, Hang) else "running")

    @property
    def fault(self) -> str:
        """What is not as it should be, in a line."""
        return f"{', '.join(map(str, self.program))}; {self.way}: {self.outcome} {self.summary}"


def measure(number: int, seed: int) -> Part:
    """Look at one loop of each kind, at so many at random, and at hangs; half of it on busy cores."""
    lines = ["| what | cores | looked at by | runs | as it is |", "|---|---|---|---|---|"]
    faults: list[str] = []
    one_of_each, hangs = all_loops(), all_hangs()
    for busy in (0, os.cpu_count() or 1):
        with busy_loops(busy):
            runs = [
                ("one loop of each kind", all_ways(one_of_each, seed)),
                ("loops at random", all_ways(some_loops(seed + busy, number), seed)),
                ("hangs beside which a thread goes on", all_ways(hangs, seed, SHORT)),
            ]
        for what, found in runs:
            asked, right = Counter(run.way for run in found), Counter(r.way for r in found if r.is_right)
            cores = "busy" if busy else "idle"
            lines += [f"| {what} | {cores} | `{w}` | {asked[w]} | {right[w]} |" for w in asked]
            faults += [f"{run.fault} ({cores})" for run in found if not run.is_right]
    about = (
        f"Programs that wait in {len({loop.place for loop in one_of_each})} places, for {PERIODS[0]} to"
        f" {PERIODS[-1]} s at a time, in the main thread, another thread, another process or one rank of"
        f" two; seed {seed}."
    )
    return Part(TITLE, (about, "", *lines), tuple(faults))


def all_ways(programs: Sequence[Loop | Hang], seed: int, ways: Sequence[str] = tuple(WAYS)) -> list[Run]:
    """Look at every program in one way, in turn; some run at the same time."""
    pairs = [(program, ways[place % len(ways)]) for place, program in enumerate(programs)]
    return asyncio.run(_all(pairs, random.Random(seed)))


async def _all(pairs: Sequence[tuple[Loop | Hang, str]], chance: random.Random) -> list[Run]:
    free = asyncio.Semaphore(AT_ONCE)

    async def one(program: Loop | Hang, way: str, delay: float) -> Run:
        async with free:
            with tempfile.TemporaryDirectory(prefix="control-", ignore_cleanup_errors=True) as folder:
                return await _run(program, way, Path(folder), delay)

    delays = [chance.uniform(EARLIEST, LATEST) for _ in pairs]
    return await asyncio.gather(*(one(*pair, delay) for pair, delay in zip(pairs, delays, strict=True)))


async def _run(program: Loop | Hang, way: str, folder: Path, delay: float) -> Run:
    """Run a program in a folder of its own and look at it."""
    file, report = folder / "train.py", folder / "report.json"
    file.write_text(program.text)
    starter = [str(Path(sys.executable).with_name(program.starter[0])), *program.starter[1:]]
    command, helpers = [*starter, str(file)], [sys.executable, "-m", "helpers"]
    if not way.startswith("attach"):
        ends = () if isinstance(program, Hang) else ENDS
        words = [*helpers, "diagnose", "--quiet", "--json", str(report), *ends, *WAYS[way]]
        await _finished([*words, "--", *command])
        return _read(program, way, report)
    output = {**QUIET, "stdout": asyncio.subprocess.PIPE}
    job = await asyncio.create_subprocess_exec(*command, cwd=folder, start_new_session=True, **output)
    try:
        if isinstance(program, Hang):
            await asyncio.wait_for(_arrival(job, 1 + program.is_of_two), LIMIT)
        await asyncio.sleep(delay)
        await _finished([*helpers, "attach", "--json", str(report), *WAYS[way], str(job.pid)])
    finally:
        _end(job.pid)
        await job.wait()
    return _read(program, way, report)


async def _arrival(job: asyncio.subprocess.Process, processes: int) -> None:
    """Wait until all processes of a program have come to where they hang."""
    assert job.stdout is not None
    while processes and (line := await job.stdout.readline()):
        processes -= line.endswith(ARRIVES)


def _end(pid: int) -> None:
    """Kill a job with all below it: torchrun starts each rank in a session of its own."""
    with suppress(psutil.NoSuchProcess):
        job = psutil.Process(pid)
        for process in (job, *job.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.kill()


async def _finished(words: Sequence[str]) -> None:
    tool = await asyncio.create_subprocess_exec(*words, cwd=ROOT, **QUIET)
    try:
        await asyncio.wait_for(tool.wait(), LIMIT)
    except TimeoutError:
        tool.kill()
        await tool.wait()


def _read(program: Loop | Hang, way: str, report: Path) -> Run:
    said = json.loads(report.read_text()) if report.exists() else {}
    return Run(program, way, said.get("outcome", ""), said.get("summary", ""))
