"""The moments at which all processes of a machine look at themselves.

A look delays ranks that wait for each other once then, and not each of them in turn (Petrini et al., The
Case of the Missing Supercomputer Performance, SC 2003, https://doi.org/10.1145/1048935.1050204).

There is a tick in each tenth of a second, anywhere in it, by a function that scatters (stratified
sampling). At even distances, a job that does the same again and again would show the same part of its
steps; at multiples of the golden ratio, too: steps of 0.26 s were seen wrongly.
"""

from __future__ import annotations

TICK = 0.1
"""Seconds in which there is one tick."""

EARLY = 0.01
"""Seconds by which a clock may be behind at a tick."""

LATE = 0.06
"""Seconds by which a tick may be met late: as long as a thread may wait for the interpreter lock."""

_MASK = 0xFFFFFFFF


def moment(number: int) -> float:
    """Monotonic time of a tick."""
    return TICK * (number + _scattered(number))


def _scattered(number: int) -> float:
    """A part of 1 for each number (the finalizer of A. Appleby's MurmurHash3, in the public domain)."""
    mixed = number & _MASK
    mixed = (mixed ^ mixed >> 16) * 0x85EBCA6B & _MASK
    mixed = (mixed ^ mixed >> 13) * 0xC2B2AE35 & _MASK
    return (mixed ^ mixed >> 16) / (_MASK + 1)


def first_after(time: float) -> int:
    """Number of the first tick at this monotonic time, or after it."""
    number = int(time / TICK) - 1
    while moment(number) < time:
        number += 1
    return number


def met(due: int, now: float) -> int:
    """Number of the tick that somebody meets at this monotonic time who was to meet one.

    That one, unless it is long gone: then the newest.
    """
    return due if now - moment(due) < LATE else max(due, first_after(now + EARLY) - 1)
