"""Exceptions that signal handlers of the job raise while the beacon's code runs: they are the job's.

Python runs a handler between two instructions of the main thread, and these may be the beacon's. What
fails there by itself is none of the job's, and is caught. What a handler raises has to go on, as that of
a `DataLoader`, whose handler raises when a worker has died.
"""

from __future__ import annotations

import os
from types import FrameType
from typing import Any, List

from .variables import peek

_OURS = os.path.dirname(__file__)


def raised(error: BaseException) -> bool:
    """True where a signal handler raised `error`; its traceback then begins with the handler, too."""
    link = error.__traceback__
    while link is not None and not _is_handler(link.tb_frame):
        link = link.tb_next
    if link is not None:
        error.__traceback__ = link
    return link is not None


def _is_handler(frame: FrameType) -> bool:
    """True for a call that has code of ours for its caller, and was given that frame.

    Python gives a handler the frame that it interrupts (`_PyErr_CheckSignalsTstate` in
    Modules/signalmodule.c).
    """
    interrupted = frame.f_back
    if interrupted is None or os.path.dirname(interrupted.f_code.co_filename) != _OURS:
        return False
    arguments: List[Any] = []
    for value in peek(frame).values():
        arguments += value if type(value) is tuple else (value,)
    return any(value is interrupted for value in arguments)
