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
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil

from helpers.beacon.beacon import LOOKS
from helpers.beacon.ticks import TICK
from helpers.launch.processes import free_port

HERE = Path(__file__).resolve().parent

KINDS = {"ddp": "DDP", "fsdp2": "FSDP2 (`fully_shard`)", "deepspeed": "DeepSpeed (ZeRO 1)"}

STEPS = 600
"""Steps of a whole run, after its first."""

TIMES = 20
"""How much oftener than elsewhere the beacon looks in the blocks."""

DUMPS_EVERY = 1.0
"""Seconds between two dumps of py-spy."""

PEERS: Mapping[str, Mapping[str, str]] = {
    "`TORCH_DISTRIBUTED_DEBUG=DETAIL`": {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    f"py-spy dump of each rank every {DUMPS_EVERY:g} s": {},
    "Flight Recorder of 2000 entries, its default": {"TORCH_FR_BUFFER_SIZE": "2000"},
}

Rank = dict[str, Any]


def cost(
    kinds: Sequence[str] = tuple(KINDS), pairs: int = 25, starts: int = 50, rounds: int = 15
) -> Iterator[str]:
    """Per step, at the start and in memory.

    Args:
        kinds: of training; a package that is missing is said.
        pairs: blocks with and without the beacon.
        starts: runs of one step, with and without the instrument.
        rounds: whole runs with the instrument, with each peer's tool, and without either.
    """
    with tempfile.TemporaryDirectory() as built:
        environment = job_environment(built)
        yield (
            f"Two ranks train a small model with gloo. Per step: {pairs} times a block of about one "
            "second with the beacon and the same without it, in one process, either first in turn. In "
            f"these blocks the beacon looks {TIMES} times as often as usual; the cost per step is what "
            f"one look costs, as a share of the {LOOKS * TICK:g} s that usually lie between two. Start "
            f"and memory: {starts} runs of one step under `stuck-ranks diagnose` and as many without, "
            "either first in turn. The start runs from the launch of the command line to the end of the "
            "ranks' first step; torchrun has its static rendezvous, since with `--standalone` it "
            "waits a random time of up to 0.3 s (torch 2.13, `DynamicRendezvousHandler`), which would "
            "hide what is measured. Medians of what belongs together, with 95 % confidence intervals "
            "(bootstrap)."
        )
        yield ""
        yield "| | per step, by the clock | per step, processor | start | more at start | RSS | PSS |"
        yield "|---|---|---|---|---|---|---|"
        for kind in kinds:
            if kind == "deepspeed" and find_spec(kind) is None:
                yield f"| {KINDS[kind]} | not installed | | | | | |"
                continue
            _whole(kind, environment, 1, watched=True)  # what is built once, is built now
            ranks = _blocks(kind, environment, pairs)
            cells = [interval(_of_looks(ranks, part), " %") for part in ("wall", "cpu")]
            runs = [_pair(kind, environment, plain_first=bool(turn % 2)) for turn in range(starts)]
            later = [_mean(watched, "first") - _mean(plain, "first") for watched, plain in runs]
            cells += [interval(_of_runs(runs, "first")), interval(later, " s")]
            cells += [interval(_of_runs(runs, part)) for part in ("rss", "pss")]
            yield f"| {KINDS[kind]} | {' | '.join(cells)} |"
        yield ""
        yield from _peers(environment, rounds)


def _peers(environment: Mapping[str, str], rounds: int) -> Iterator[str]:
    """What the tools of others cost per step, at the start and in memory."""
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
    yield "| FSDP2, whole runs against a plain one | time of a step | start | PSS |"
    yield "|---|---|---|---|"
    for name, runs in found.items():
        cells = [interval(_of_runs(runs, part)) for part in ("step", "first", "pss")]
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    yield (
        f"{STEPS} steps a run, {rounds} runs of each in turn; a plain run has no Flight Recorder "
        "(`TORCH_FR_BUFFER_SIZE=0`), and the instrument runs beside it on the same cores. It is not "
        "DDP, which with torch 2.13 on the CPU ends in its constructor with a segmentation fault under "
        "`TORCH_DISTRIBUTED_DEBUG=DETAIL`."
    )


def job_environment(built: str) -> dict[str, str]:
    """Variables of a measured job; built: the folder in which torch builds extensions."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    compiled = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**compiled, "PATH": path, "OMP_NUM_THREADS": "1", "TORCH_EXTENSIONS_DIR": built}


def launch(program: str, *words: str) -> list[str]:
    """The command that runs a program of this folder on two ranks."""
    port = f"--master-port={free_port()}"
    return ["torchrun", port, "--nproc-per-node=2", str(HERE / program), *words]


def notes_of(folder: str) -> list[Rank]:
    """What each rank has written to the folder."""
    return [json.loads(file.read_text()) for file in sorted(Path(folder).glob("*.json"))]


def _blocks(kind: str, environment: Mapping[str, str], pairs: int) -> list[Rank]:
    """The paired blocks of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        command = launch("beacon_cost.py", kind, folder, str(pairs), str(TIMES))
        run(under_diagnose(command), environment)
        return notes_of(folder)


def _whole(
    kind: str,
    environment: Mapping[str, str],
    steps: int,
    *,
    watched: bool = False,
    dumps: bool = False,
) -> list[Rank]:
    """What each rank notes of a whole run, plain or under a tool; `first` from the launch on."""
    with tempfile.TemporaryDirectory() as folder:
        command = launch("training.py", kind, folder, str(steps))
        began = time.time()
        run(under_diagnose(command) if watched else command, environment, dumps=dumps)
        return [{**rank, "first": rank["first"] - began} for rank in notes_of(folder)]


def _pair(
    kind: str, environment: Mapping[str, str], *, plain_first: bool
) -> tuple[list[Rank], list[Rank]]:
    """What the ranks note of one step under the instrument, and of one without it."""
    made = {
        watched: _whole(kind, environment, 1, watched=watched)
        for watched in (not plain_first, plain_first)
    }
    return made[True], made[False]


def under_diagnose(command: list[str]) -> list[str]:
    """The same command under the instrument."""
    return [sys.executable, "-m", "helpers", "diagnose", "--", *command]


def run(command: list[str], environment: Mapping[str, str], *, dumps: bool = False) -> None:
    """Run a command to its end; it must succeed. dumps: with py-spy on each rank meanwhile."""
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, env=environment, cwd=HERE.parent, stdout=log, stderr=log) as process,
        _dumping(process.pid, dumps),
    ):
        code = process.wait()
        log.seek(0)
        assert code == 0, log.read()


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


def _of_looks(ranks: Sequence[Rank], part: str) -> list[float]:
    """What a look has cost in each pair of blocks, in percent of the time between two of them.

    The ranks of one block wait for each other, and count once.
    """
    pairs = zip(*(rank[part] for rank in ranks), strict=True)
    looks = zip(*(rank["looks"] for rank in ranks), strict=True)
    return [
        100 * sum(one[0] - one[1] for one in pair) / sum(looked) / (LOOKS * TICK)
        for pair, looked in zip(pairs, looks, strict=True)
    ]


def _of_runs(runs: Sequence[tuple[list[Rank], list[Rank]]], part: str) -> list[float]:
    return [_mean(watched, part) / _mean(plain, part) for watched, plain in runs]


def _mean(ranks: Sequence[Rank], part: str) -> float:
    return statistics.mean(rank[part] for rank in ranks)


def interval(values: Sequence[float], unit: str = "") -> str:
    """The median of values and its 95 % confidence interval."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(values, k=len(values))) for _ in range(2000))
    digits = 3 if not unit else 2
    middle, low, high = (
        f"{one:.{digits}f}" for one in (statistics.median(values), medians[49], medians[1949])
    )
    return f"{middle}{unit} ({low} to {high})"
