"""Where a blocked thread is in the user's source, and what the names there stand for."""

from __future__ import annotations

import sys
from types import FrameType
from typing import TYPE_CHECKING, Any, Dict, List, Optional

from . import torch_names
from .handles import peer_of
from .locks import LOCKS
from .secret_names import is_secret
from .variables import MEMBERS, named_values, seconds

if TYPE_CHECKING:
    from .record import Site

FILE_CALLS = frozenset(
    ("exists", "lexists", "isfile", "is_file", "open", "touch", "mkdir", "flock", "lockf")
)
"""Functions by which a program looks for a lock file, makes one, or locks a file."""

LONGEST = 200
"""Characters of a text that are told."""


def site(frame: Optional[FrameType], waits_inside: bool = False) -> Optional[Site]:
    """The position of a frame in its source, and the objects it can name.

    The observer reads the source and finds the call. Only for code that waits inside the process, that
    holds an object of torch's, that sends or receives, or that sleeps and looks for a file.

    Args:
        waits_inside: True where the thread may wait for a lock, or for another thread.
    """
    if frame is None:
        return None
    polls = "sleep" in frame.f_code.co_names and not FILE_CALLS.isdisjoint(frame.f_code.co_names)
    idle = torch_names.c10d() is None and "sqlite3" not in sys.modules and not waits_inside
    if not polls and idle:
        return None
    names: Dict[str, str] = {}
    strings: Dict[str, str] = {}
    limits: Dict[str, float] = {}
    peers: Dict[str, int] = {}
    values = named_values(frame)
    for name, value in values.items():
        _tell(name, value, names, strings)
        peer = peer_of(value, [values]) if names.get(name, "").startswith("Work.") else None
        if peer is not None:
            peers[name] = peer
        limit = seconds(torch_names.store_timeout(value) if names.get(name) == "Store" else value)
        if limit is not None:
            limits[name] = limit
    sends = not torch_names.P2P_CALLS.isdisjoint(frame.f_code.co_names)
    if not any((names, polls, waits_inside, sends)):
        return None
    return {
        "file": frame.f_code.co_filename,
        "position": _position(frame),
        "names": names,
        "strings": strings,
        "limits": limits,
        "peers": peers,
    }


def _position(frame: FrameType) -> List[int]:
    """Line, end line, column and end column; the line alone where the code has no more (Python 3.10)."""
    positions = getattr(frame.f_code, "co_positions", tuple)
    index = frame.f_lasti // 2
    position = next((p for i, p in enumerate(positions()) if i == index), ())
    place = [number for number in position if number is not None]
    return place if len(place) == 4 else [frame.f_lineno]


def _tell(name: str, value: Any, names: Dict[str, str], strings: Dict[str, str]) -> None:
    """Note the text or the path that a name stands for, or its class."""
    pathlib = sys.modules.get("pathlib")
    if isinstance(value, (str, int)) or (pathlib and isinstance(value, pathlib.PurePath)):
        text = str(value)
        cut = len(text) > LONGEST and "://" in text  # a URL without its end hides no secret in it
        if not cut and not is_secret(name, value):
            strings[name] = text[:LONGEST]
        return
    names.update(_class_by_name(name, value))


def _class_by_name(name: str, value: Any) -> Dict[str, str]:
    """The class of a torch object by its name, or what all members of a small container are."""
    members = [value]
    if type(value) in (list, tuple, dict) and len(value) <= MEMBERS:
        name, members = f"{name}[*]", list(value.values() if type(value) is dict else value)
    kinds = {_kind(member) for member in members}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {} if kind is None else {name: kind}


def _kind(value: Any) -> Optional[str]:
    if isinstance(value, LOCKS):
        return "lock"
    if type(value).__module__ == "sqlite3" and type(value).__name__ in ("Connection", "Cursor"):
        return "sqlite"
    kind = torch_names.class_of(value)
    operation = torch_names.operation_of(value) if kind == "Work" else None
    return f"{kind}.{operation}" if operation else kind
