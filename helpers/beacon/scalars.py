"""The plain values that a frame can name, read without running anything of the job's."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple

from . import attributes
from .lengths import lengths
from .secret_names import is_secret
from .variables import peek

SCALARS = (int, float, bool, type(None))
_ATOMS = frozenset((*SCALARS, str))
DEPTH = 2
"""Attributes one after the other, as in `trainer.state.step`, that are told."""
MOST = 100
"""Values told of one frame."""
LONGEST_TEXT, LONGEST_NUMBER = 60, 1 << 64
"""Texts of more characters, and whole numbers above, are left out."""
LONGEST_MESSAGE = 200
"""Texts of exceptions of more characters are left out."""


def scalars(frame: FrameType) -> Dict[str, str]:
    """Name (`step`, `self.resume`) -> `repr` of its value: numbers, truth values, None, short texts.

    Of objects, the attributes that the code of the frame names, as far as they are in the object's own
    dictionary; what is a secret by its name is left out.
    """
    return texts(plain(frame))


def plain(frame: FrameType, most: Optional[int] = None) -> List[Tuple[str, Any]]:
    """Name and value of what `scalars` tells of a frame, secrets included; `most`: of that many.

    Of what its file goes through in loops, the length, as `len(self.loader)`; with `most`, only of files
    of which all has been told before: to read what a file goes through takes some milliseconds.

    They are taken at once: what else the frame holds is not held by us for longer than the job wants it.
    """
    names = frame.f_code.co_names
    visible = peek(frame)
    for name in names:
        if name in frame.f_globals and name not in visible:
            visible[name] = frame.f_globals[name]
    variables = visible
    values: List[Tuple[str, Any]] = []
    for depth in range(DEPTH + 1):
        values += [pair for pair in visible.items() if type(pair[1]) in _ATOMS and _is_plain(pair[1])]
        if depth == DEPTH or (most is not None and len(values) >= most):
            break
        visible = {
            f"{base}.{name}": inner
            for base, value in visible.items()
            for name, inner in _fields(value, names)
        }
    if most is None or len(values) < most:
        values += lengths(frame, variables, cached=most is not None)
    return values[:most]


def texts(values: Iterable[Tuple[str, Any]]) -> Dict[str, str]:
    """Name -> `repr` of plain values, at most `MOST`, without the secrets."""
    reprs: Dict[str, str] = {}
    for name, value in values:
        if len(reprs) >= MOST:
            break
        if not is_secret(name, value):
            reprs[name] = repr(value)
    return reprs


def handled(ident: int) -> Dict[str, str]:
    """The exception that a thread is handling, where Python tells: its class and its first text."""
    error = exception(ident)
    if error is None:
        return {}
    first = message(error)
    text = f": {first}" if first and len(first) <= LONGEST_MESSAGE else ""
    return {"sys.exception()": repr(f"{type(error).__name__}{text}")}


def exception(ident: int) -> Optional[BaseException]:
    """The exception that a thread is handling; None for none, and where Python does not tell (3.9)."""
    read: Callable[[], Dict[int, Any]] = getattr(sys, "_current_exceptions", dict)
    current = read().get(ident)
    error = current[1] if type(current) is tuple else current
    return error if isinstance(error, BaseException) else None


def message(error: BaseException) -> str:
    """The first text that an exception was made with; its own `__str__` may be code of the job."""
    arguments = BaseException.__dict__["args"].__get__(error)
    return arguments[0] if arguments and type(arguments[0]) is str else ""


def _fields(value: Any, names: Tuple[str, ...]) -> List[Tuple[str, Any]]:
    """The named attributes that an object holds itself, without asking the object or its class."""
    if type(value) in _ATOMS:
        return []
    fields = attributes.instance_dict(value)
    return [(name, fields[name]) for name in names if name in fields] if fields else []


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= LONGEST_TEXT
    return kind in SCALARS and (kind is not int or abs(value) <= LONGEST_NUMBER)
