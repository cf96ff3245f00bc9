"""One run of a lab at many seats in the same moment: how many come to the report that is expected."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Barrier

import msgspec
import psutil

from . import machine
from .all_cases import Case, run
from .lab import find_lab

TOGETHER_S = 600.0
"""Seconds that seats wait for each other before the first of them runs."""

LOOK_S = 0.5
"""Seconds between two looks at the memory that is free."""

GB = 1e9


class Seat(msgspec.Struct, frozen=True):
    """What became of the run at one seat.

    Attributes:
        verdict: the outcome, the cause and the culprits, or why there is none.
    """

    verdict: str
    seconds: float


def main(name: str, seats: int) -> int:
    """Run a lab's broken program at all seats at once, each in a process of its own, and print it.

    Args:
        name: of the lab, as for `find_lab`.
        seats: how many, at least 1.

    Returns:
        0 when every seat comes to the expected report, else 1.

    Raises:
        LabError: there is no such lab.
    """
    lab = find_lab(name)
    wanted = Case(lab, "broken", lab.settings("broken", {})).wanted
    print(f"{lab.name}, broken, {seats} at the same moment on {machine.cores():g} cores ...", flush=True)
    results, free = _sat(lab.name, seats)
    for number, seat in enumerate(results, start=1):
        word = "ok" if seat.verdict == wanted else "DIFF"
        print(f"seat {number:3}  {word:4}  {seat.seconds:6.1f} s  {seat.verdict}")
    return _summed(results, wanted, free)


def _summed(results: Sequence[Seat], wanted: str, free: int) -> int:
    right = sum(seat.verdict == wanted for seat in results)
    seconds = sorted(seat.seconds for seat in results)
    print(
        f"{right} of {len(results)} came to the expected report ({wanted}), after {seconds[0]:.0f} to "
        f"{seconds[-1]:.0f} s; at the least, {free / GB:.1f} GB of memory were available"
    )
    return int(right < len(results))


def _sat(name: str, seats: int) -> tuple[list[Seat], int]:
    """Each seat's run, and the least bytes of memory that were available meanwhile."""
    context = multiprocessing.get_context("spawn")
    free = psutil.virtual_memory().available
    with ProcessPoolExecutor(
        seats, mp_context=context, initializer=_meet, initargs=(context.Barrier(seats),)
    ) as pool:
        pending: set[Future[Seat]] = set()
        futures = [pool.submit(_sit, name) for _ in range(seats)]
        pending |= set(futures)
        while pending:
            pending = wait(pending, timeout=LOOK_S).not_done
            free = min(free, psutil.virtual_memory().available)
        return [_of(future) for future in futures], free


def _of(future: Future[Seat]) -> Seat:
    try:
        return future.result()
    except BrokenProcessPool:
        return Seat("the seat's process was ended", 0.0)


def _meet(barrier: Barrier) -> None:
    """In the process of a seat: wait until all are there, so that they run in step."""
    barrier.wait(TOGETHER_S)


def _sit(name: str) -> Seat:
    lab = find_lab(name)
    result = run(Case(lab, "broken", lab.settings("broken", {})))
    return Seat(result.verdict, result.seconds)
