"""What one process stands in: whether it moves, waits, or may still do something. Pure."""

from __future__ import annotations

from helpers.model.facts import ProcessView, Wait

STILL = 1.0
"""Seconds without any change after which a blocked process counts as blocked."""


def blocking(process: ProcessView) -> tuple[Wait, ...]:
    """The waits in which a thread of the process stands."""
    return tuple(wait for wait in process.waits if wait.blocking)


def stands_still(process: ProcessView) -> bool:
    """True when the process has not moved for a while: it stands in a wait, or something stops it."""
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
