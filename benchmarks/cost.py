"""What the instrument costs a job, and what its peers' tools cost the same job."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from helpers.session import Session

HERE = Path(__file__).resolve().parent

KINDS = {"ddp": "DDP", "fsdp2": "FSDP2 (`fully_shard`)", "deepspeed": "DeepSpeed (ZeRO 1)"}

STEPS = 600
"""Steps of a whole run, after its first."""

DUMPS_EVERY = 1.0
"""Seconds between two dumps of py-spy."""

PEERS: Mapping[str, Mapping[str, str]] = {
    "`TORCH_DISTRIBUTED_DEBUG=DETAIL`": {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    f"py-spy dump of each rank every {DUMPS_EVERY:g} s": {},
    "Flight Recorder of 2000 entries, its default": {"TORCH_FR_BUFFER_SIZE": "2000"},
}

Rank = dict[str, Any]


def cost(kinds: Sequence[str] = ("ddp", "fsdp2"), pairs: int = 25, rounds: int = 7) -> Iterator[str]:
    """Per step, at the start and in memory.

    Args:
        kinds: of training; a package that is missing is said.
        pairs: blocks with and without the beacon.
        rounds: whole runs with and without the instrument, and with each peer's tool.
    """
    with tempfile.TemporaryDirectory() as built:
        environment = _environment(built)
        yield (
            f"Two ranks train a small model with gloo. Per step: {pairs} times a block of about one "
            "second with the beacon and the same without it, inside one process, each first in turn. "
            f"Start and memory: {rounds} whole runs with the instrument and as many without, in turn. "
            "The start runs from the start of a rank's process to the end of its first step. Medians of "
            "the ratios between what belongs together, and their 95 % confidence intervals (bootstrap)."
        )
        yield ""
        yield "| with / without | per step, by the clock | per step, processor | start | RSS | PSS |"
        yield "|---|---|---|---|---|---|"
        own = []
        for kind in kinds:
            if kind == "deepspeed" and find_spec(kind) is None:
                yield f"| {KINDS[kind]} | not installed | | | | |"
                continue
            _whole(kind, environment, 1)  # what is built or read for the first time, is so now
            ranks, share = _blocks(kind, environment, pairs)
            cells = [_interval(_of_pairs(ranks, part)) for part in ("wall", "cpu")]
            starts = [
                (_whole(kind, environment, 1, watched=True), _whole(kind, environment, 1))
                for _ in range(rounds)
            ]
            cells += [_interval(_of_runs(starts, part)) for part in ("first", "rss", "pss")]
            own.append(f"{KINDS[kind]} {100 * share:.2f} %")
            yield f"| {KINDS[kind]} | {' | '.join(cells)} |"
        yield ""
        yield f"The beacon's own thread used, of the rank's time by the clock: {', '.join(own)}."
        yield ""
        yield from _peers(environment, rounds)


def _peers(environment: Mapping[str, str], rounds: int) -> Iterator[str]:
    """What the tools of others cost per step."""
    off = {**environment, "TORCH_FR_BUFFER_SIZE": "0"}
    found: dict[str, list[tuple[list[Rank], list[Rank]]]] = {
        name: [] for name in ("`stuck-ranks diagnose`", *PEERS)
    }
    for _ in range(rounds):
        plain = _whole("fsdp2", off, STEPS)
        for name, runs in found.items():
            watched = name not in PEERS
            dumps = name.startswith("py-spy")
            tool = {**off, **PEERS.get(name, {})}
            runs.append((_whole("fsdp2", tool, STEPS, watched=watched, dumps=dumps), plain))
    yield "| FSDP2, whole runs against a plain one | time of a step | PSS |"
    yield "|---|---|---|"
    for name, runs in found.items():
        yield f"| {name} | {_interval(_of_runs(runs, 'step'))} | {_interval(_of_runs(runs, 'pss'))} |"
    yield ""
    yield (
        f"{STEPS} steps a run, {rounds} runs of each in turn; a plain run has no Flight Recorder "
        "(`TORCH_FR_BUFFER_SIZE=0`), and the instrument runs beside it on the same cores. It is not "
        "DDP, which with torch 2.13 on the CPU ends in its constructor with a segmentation fault under "
        "`TORCH_DISTRIBUTED_DEBUG=DETAIL`."
    )


def _environment(built: str) -> dict[str, str]:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    return {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "TORCH_EXTENSIONS_DIR": built}


def _launch(program: str, *words: str) -> list[str]:
    return ["torchrun", "--standalone", "--nproc-per-node=2", str(HERE / program), *words]


def _watch(command: list[str], environment: Mapping[str, str]) -> None:
    report = Session(command, env=dict(environment)).start().wait()
    assert report.verdict.outcome == "ok", report.verdict.summary


def _ranks(folder: str) -> list[Rank]:
    return [json.loads(file.read_text()) for file in sorted(Path(folder).glob("*.json"))]


def _blocks(kind: str, environment: Mapping[str, str], pairs: int) -> tuple[list[Rank], float]:
    """The paired blocks of each rank, and the share of the time that the beacon's thread has used."""
    with tempfile.TemporaryDirectory() as folder:
        _watch(_launch("beacon_cost.py", kind, folder, str(pairs)), environment)
        ranks = _ranks(folder)
    clock = sum(pair[0] for rank in ranks for pair in rank["wall"])
    return ranks, sum(sum(rank["beacon"]) for rank in ranks) / clock


def _whole(
    kind: str,
    environment: Mapping[str, str],
    steps: int,
    *,
    watched: bool = False,
    dumps: bool = False,
) -> list[Rank]:
    """What each rank notes of a whole run, plain or under a tool."""
    with tempfile.TemporaryDirectory() as folder:
        command = _launch("training.py", kind, folder, str(steps))
        if watched:
            _watch(command, environment)
        else:
            with (
                Path(folder, "log").open("w+") as log,
                subprocess.Popen(command, env=environment, stdout=log, stderr=log) as process,
                _dumping(process.pid, dumps),
            ):
                assert process.wait() == 0, Path(log.name).read_text()
        return _ranks(folder)


@contextmanager
def _dumping(launcher: int, wanted: bool) -> Iterator[None]:
    """py-spy on each rank, again and again, while a run goes on."""
    over = threading.Event()

    def dump() -> None:
        while not over.wait(DUMPS_EVERY):
            for rank in psutil.Process(launcher).children():
                subprocess.run(["py-spy", "dump", "--pid", str(rank.pid)], capture_output=True)

    thread = threading.Thread(target=dump)
    if wanted:
        thread.start()
    try:
        yield
    finally:
        over.set()
        if wanted:
            thread.join()


def _of_pairs(ranks: Sequence[Rank], part: str) -> list[float]:
    """The ratio of each pair of blocks: the ranks of one block wait for each other, and count once."""
    pairs = zip(*(rank[part] for rank in ranks), strict=True)
    return [sum(one[0] for one in pair) / sum(one[1] for one in pair) for pair in pairs]


def _of_runs(runs: Sequence[tuple[list[Rank], list[Rank]]], part: str) -> list[float]:
    return [
        sum(rank[part] for rank in watched) / sum(rank[part] for rank in plain)
        for watched, plain in runs
    ]


def _interval(ratios: Sequence[float]) -> str:
    """The median of ratios and its 95 % confidence interval."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(2000))
    return f"{statistics.median(ratios):.3f} ({medians[49]:.3f} to {medians[1949]:.3f})"
