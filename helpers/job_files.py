"""Names that come from a job are looked at here, and nowhere else.

Such a name may lead to a pipe, to a device without an end, or to a server that no longer answers, where
even `stat` does not return. So a thread looks at it, which is left behind when it takes too long. Until
it comes back, nothing is asked about the folder at which it stands, and what lies below that.
"""

from __future__ import annotations

import _thread
import io
import os
import stat
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import PurePath
from typing import Any, TypeVar

LARGEST = 2 << 20
"""Bytes above which a file is not read."""

LARGEST_NOTEBOOK = 32 << 20
"""The same of a notebook, which holds its outputs."""

PATIENCE = 0.2
"""Seconds for which a look at a job waits for an answer."""

MOST = 8
"""Threads that are left behind at most."""

_T = TypeVar("_T")


class _Answer(Future[Any]):
    """What there is to say about a name, once that is known; `at` is the folder being looked at."""

    at = PurePath()

    def find(self, question: Callable[[str], object], path: str) -> None:
        try:
            for self.at in [*reversed(PurePath(path).parents)][1:] or [PurePath(path)]:
                with suppress(OSError):
                    os.stat(self.at)
            self.set_result(question(path))
        except BaseException as problem:
            self.set_exception(problem)


_pending: dict[tuple[Callable[[str], object], str], _Answer] = {}
"""Answers that nobody has waited for."""


def ask(question: Callable[[str], _T], path: str, patience: float = PATIENCE) -> _T:
    """What a function says about a name that comes from a job.

    A late answer is for whoever asks the same again.

    Args:
        question: called with the name in another thread, such as `os.stat`.
        path: the name.
        patience: seconds to wait.

    Raises:
        OSError: as the function does; `TimeoutError` where the name does not answer.
    """
    pending = _pending.get((question, path))
    answer = pending or _start(question, path)
    try:
        return answer.result(0 if pending else patience)  # type: ignore[no-any-return]
    except ValueError as problem:  # no file system knows such a name
        raise OSError(str(problem)) from problem
    finally:
        if answer.done():
            _pending.pop((question, path), None)
        else:
            _pending[question, path] = answer


def _start(question: Callable[[str], object], path: str) -> _Answer:
    for key, pending in list(_pending.items()):
        if pending.done() and len(_pending) >= MOST:
            _pending.pop(key, None)
        elif not pending.done() and PurePath(path).is_relative_to(pending.at):
            raise TimeoutError(f"{pending.at} does not answer")
    if len(_pending) >= MOST:
        raise TimeoutError("too many folders do not answer")
    answer = _Answer()
    try:
        # Python does not wait for such a thread when it ends.
        _thread.start_new_thread(answer.find, (question, path))
    except RuntimeError as problem:
        raise TimeoutError(str(problem)) from problem
    return answer


def read(path: str, patience: float = PATIENCE) -> tuple[bytes, float]:
    """The content of a regular file, and when it was last changed, in seconds since 1970.

    Raises:
        OSError: it cannot be read, is no regular file or too large, or does not answer (`TimeoutError`).
    """
    return ask(_content, path, patience)


def notebook(path: str) -> tuple[bytes, float]:
    """The same of a notebook, which may be larger."""
    return ask(_notebook, path)


def text(path: str, patience: float = PATIENCE) -> tuple[str, float]:
    """The same of a text, as `read` reads it; what is no UTF-8 is replaced."""
    content, changed = read(path, patience)
    return io.StringIO(content.decode("utf-8", "replace"), newline=None).getvalue(), changed


def _notebook(path: str) -> tuple[bytes, float]:
    return _content(path, LARGEST_NOTEBOOK)


def _content(path: str, largest: int = LARGEST) -> tuple[bytes, float]:
    _check(
        os.stat(path), largest
    )  # first, since to open a pipe sets its writer free, and may start a device
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        facts = os.fstat(file.fileno())
        _check(facts, largest)
        content = file.read(largest + 1) or b""  # a file of the kernel's may have nothing to say yet
    if len(content) > largest:
        raise OSError(f"{path} is too large")
    return content, facts.st_mtime


def _check(facts: os.stat_result, largest: int) -> None:
    """Raise OSError for what is no regular file, or is too large."""
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > largest:
        raise OSError("it is no regular file, or too large")
