"""What the frames of a thread can name, without keeping any of it alive."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Dict, Optional

CO_OPTIMIZED = 1

OWN_LOCALS = frozenset(("locals", "f_locals"))
"""What a function names that holds its own variables as a dictionary."""

MEMBERS = 64
"""The largest container whose members are looked at."""


def peek(frame: FrameType) -> Dict[str, Any]:
    """A copy of a frame's local variables that keeps none of them alive longer than the job does.

    Before Python 3.13, `f_locals` leaves a dictionary on a function's frame, which holds every
    variable until the function returns; it is emptied here unless something else holds it too.
    """
    snapshot = frame.f_locals
    copy = dict(snapshot)
    if _has_snapshot(frame) and frame.f_trace is None and sys.getrefcount(snapshot) <= 3:
        snapshot.clear()
    return copy


def may_hold_locals(frame: FrameType) -> bool:
    """True for a function that may hold what `locals()` has returned: `peek` would bring it up to date.

    That dictionary is the one that `f_locals` fills, before Python 3.13 (PEP 667).
    """
    return _has_snapshot(frame) and not OWN_LOCALS.isdisjoint(frame.f_code.co_names)


def _has_snapshot(frame: FrameType) -> bool:
    return sys.version_info < (3, 13) and bool(frame.f_code.co_flags & CO_OPTIMIZED)


def named_values(frame: FrameType) -> Dict[str, Any]:
    """What a frame can name: its variables, those of its module, and what `self` holds."""
    values = _visible(frame)
    instance = values.get("self")
    if not isinstance(instance, (str, int)):
        fields = getattr(instance, "__dict__", {})
        values.update({f"self.{field}": value for field, value in list(fields.items())})
    return values


def _visible(frame: FrameType) -> Dict[str, Any]:
    names = peek(frame)
    for name in frame.f_code.co_names:
        if name in frame.f_globals and name not in names:
            names[name] = frame.f_globals[name]
    return names


def seconds(value: Any) -> Optional[float]:
    """How long a `timedelta` is; None for anything else."""
    tell = getattr(value, "total_seconds", None)
    return float(tell()) if type(value).__module__ == "datetime" and callable(tell) else None
