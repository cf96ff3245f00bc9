"""The plain values that a frame can name, read without running anything of the job's."""

from __future__ import annotations

import sys
from types import FrameType, GetSetDescriptorType
from typing import Any, Dict, Iterator, Tuple

from .secret_names import is_secret
from .variables import peek

SCALARS = (int, float, bool, type(None))
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
    # All at once, so that what the frame holds is not held by us for longer than the job wants it.
    plain = [(name, value) for name, value in _named(frame) if _is_plain(value)]
    found: Dict[str, str] = {}
    for name, value in plain:
        if len(found) >= MOST:
            break
        if not is_secret(name, value):
            found[name] = repr(value)
    return found


def handled(ident: int) -> Dict[str, str]:
    """The exception that a thread is handling, where Python tells: its class and its first text."""
    current = getattr(sys, "_current_exceptions", _nobody)().get(ident)
    error = current[1] if type(current) is tuple else current
    if not isinstance(error, BaseException):
        return {}
    said = BaseException.__dict__["args"].__get__(error)
    first = said[0] if said else ""
    text = f": {first}" if type(first) is str and first and len(first) <= LONGEST_MESSAGE else ""
    return {"sys.exception()": repr(f"{type(error).__name__}{text}")}


def _nobody() -> Dict[int, Any]:
    return {}


def _named(frame: FrameType) -> Iterator[Tuple[str, Any]]:
    names = frame.f_code.co_names
    visible = peek(frame)
    for name in names:
        if name in frame.f_globals and name not in visible:
            visible[name] = frame.f_globals[name]
    yield from visible.items()
    for base, value in list(visible.items()):
        for name, inner in _fields(value, names):
            yield f"{base}.{name}", inner
            for last, innermost in _fields(inner, names):
                yield f"{base}.{name}.{last}", innermost


def _fields(value: Any, names: Tuple[str, ...]) -> Iterator[Tuple[str, Any]]:
    """The named attributes that an object holds itself, without asking the object or its class."""
    if _is_plain(value):
        return
    held = _own_dictionary(value)
    for name in names:
        if name in held:
            yield name, held[name]


def _own_dictionary(value: Any) -> Dict[str, Any]:
    for one in type.__dict__["__mro__"].__get__(type(value)):
        descriptor = type.__dict__["__dict__"].__get__(one).get("__dict__")
        if descriptor is not None:
            found = descriptor.__get__(value) if type(descriptor) is GetSetDescriptorType else {}
            return found if type(found) is dict else {}
    return {}


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return len(value) <= LONGEST_TEXT
    return kind in SCALARS and (kind is not int or abs(value) <= LONGEST_NUMBER)
