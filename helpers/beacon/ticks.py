"""The moments at which all processes of a machine look at themselves.

A look delays ranks that wait for each other once then, and not each of them in turn (Petrini et al., The
Case of the Missing Supercomputer Performance, SC 2003, https://doi.org/10.1145/1048935.1050204). They do
not come at a fixed distance, which a job that does the same again and again might have, too: then each
would show the same part of its steps. They are shifted by the multiples of the golden ratio, which fill
any distance as evenly as may be (Kuipers and Niederreiter, Uniform Distribution of Sequences, 1974).
"""

from __future__ import annotations

TICK = 0.2
"""Seconds between two ticks, on average."""

GOLDEN = 0.6180339887498949

EARLY = 0.01
"""Seconds by which a clock may be behind at a tick."""


def moment(number: int) -> float:
    """Monotonic time of a tick."""
    return TICK * (number + number * GOLDEN % 1.0)


def first_after(time: float) -> int:
    """Number of the first tick at this monotonic time, or after it."""
    number = int(time / TICK) - 1
    while moment(number) < time:
        number += 1
    return number


def last_before(time: float) -> int:
    """Number of the newest tick at this monotonic time."""
    return first_after(time + EARLY) - 1
