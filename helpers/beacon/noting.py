"""Take note of the calls of a builtin function, which stays what it is to its callers.

A function of ours around it would be a frame in the tracebacks of the job: an exception, and above all a
KeyboardInterrupt in `os.waitpid`, passes through. So what stands in its place is an object whose
`__call__` is a property: the interpreter reads that in C, our frame is gone before the builtin is
called, and what that raises passes through frames of the caller's only (Python 3.8 to 3.14).
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable

from . import signal_handlers

Note = Callable[[FrameType], Any]
"""Gets the frame of the caller; gives what is called in the builtin's place, None for that itself."""


class Noting:
    """A builtin function by which notes are taken; pickled, copied and shown as the builtin is.

    Args:
        builtin: the function.
        note: called before each call, whose arguments it does not see.
    """

    def __init__(self, builtin: Any, note: Note) -> None:
        self._builtin, self._note = builtin, note
        self.__module__, self.__doc__ = builtin.__module__, builtin.__doc__

    @property
    def __call__(self) -> Any:
        """What the interpreter calls: the builtin, after a note."""
        try:
            return self._note(sys._getframe(1)) or self._builtin
        except Exception as problem:  # a note that fails is none of the job's
            if signal_handlers.raised(problem):
                raise
            return self._builtin

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The type of the builtin, as `isinstance` and `inspect` have it."""
        return type(self._builtin)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._builtin, name)

    def __reduce__(self) -> str:
        return str(self._builtin.__name__)

    def __repr__(self) -> str:
        return repr(self._builtin)


def replace(name: str, note: Note, *modules: Any) -> None:
    """Have `note` taken of the calls of a builtin.

    Args:
        name: of the function.
        modules: all that have it, since it is pickled by its own module and name.
    """
    instead = Noting(getattr(modules[0], name), note)
    for module in modules:
        setattr(module, name, instead)
