"""The state of one process: whether it moves, waits, or may still do something. Pure."""

from __future__ import annotations

from ..model.facts import ProcessView, Wait

STILL = 1.0
"""Seconds without any change after which a blocked process counts as blocked."""


def blocking(process: ProcessView) -> tuple[Wait, ...]:
    """The waits in which a thread of the process is blocked."""
    return tuple(wait for wait in process.waits if wait.blocking)


def is_visible(process: ProcessView) -> bool:
    """True when something shows what the process does: a beacon, a look from outside, or its state."""
    return process.beacon or process.state == "stopped" or bool(process.stack or process.waits)


def stands_still(process: ProcessView) -> bool:
    """True when the process has not moved for a while: it is blocked in a wait, or is stopped."""
    if process.alive and process.frozen:
        return process.idle >= STILL
    if not process.alive or process.still < STILL:
        return False
    if process.state == "stopped":
        return True
    return bool(blocking(process)) and not process.gil_held


def may_act(process: ProcessView) -> bool:
    """True for a live process that runs, sleeps, or waits for a device or for a child."""
    runs = process.alive and process.state != "stopped"
    return runs and all(wait.kind in ("io", "process") for wait in blocking(process))


def waits_for_child(process: ProcessView) -> bool:
    """True for a process that waits for one it has started."""
    return any(wait.kind == "process" for wait in process.waits)
