"""Which port an error says was taken. Pure."""

from __future__ import annotations

import re

from ..model.facts import ErrorView

_TAKEN = re.compile(r"EADDRINUSE|[Aa]ddress already in use|errno: 98\b")
_PORT = re.compile(r"port: (\d+)|\[::\]:(\d+)|:(\d{2,5})\b")


def is_taken(error: ErrorView) -> bool:
    """True when the kernel refused to let a process listen with EADDRINUSE."""
    return bool(_TAKEN.search(error.message))


def refused(error: ErrorView) -> int | None:
    """The port on which a process could not listen; None where the error tells of none."""
    match = _PORT.search(error.message) if is_taken(error) else None
    return int(next(group for group in match.groups() if group)) if match else None
