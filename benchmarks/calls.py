"""What the note of each call of `torch.distributed` costs a job."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from cost import Rank, interval, job_environment, launch, notes_of, run, under_diagnose

CALLS = (60, 2000)
"""Calls a step: of a usual job, and of one that calls for each of its parameters."""


def calls(counts: Sequence[int] = CALLS, rounds: int = 12) -> Iterator[str]:
    """Processor time of a call with its note, beside that without it and without the beacon."""
    yield "| calls a step | step | a call, plain | with looks | with its note | all notes, of a step |"
    yield "|---|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as built:
        environment = job_environment(built)
        for count in counts:
            ranks = _blocks(environment, count, rounds)
            length = statistics.median(min(step) for rank in ranks for step in rank["step"])
            cpu = [times for rank in ranks for times in rank["cpu"]]
            cells = [interval([1e6 * times[kind] for times in cpu], " us") for kind in range(3)]
            shares = [100 * count * (notes - looks) / length for _, looks, notes in cpu]
            yield f"| {count} | {length:.2f} s | {' | '.join(cells)} | {interval(shares, ' %')} |"
    yield ""
    yield (
        "Two ranks on gloo compute for 0.1 s a step, then call `all_reduce` of one number so often. "
        f"Processor time of the thread that calls, in {rounds} rounds of three blocks of two seconds in "
        "one process: without the looks and notes of the beacon, with its looks, and with both, each "
        "first in turn. Medians with 95 % confidence intervals (bootstrap)."
    )


def _blocks(environment: Mapping[str, str], count: int, rounds: int) -> list[Rank]:
    """What each rank has noted."""
    with tempfile.TemporaryDirectory() as folder:
        run(under_diagnose(launch("call_cost.py", folder, str(count), str(rounds))), environment)
        return notes_of(folder)
