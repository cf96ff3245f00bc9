"""Dumps of NCCL's recorder on request: something is written into a pipe, and torch writes a file."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from . import flight_dump
from .account import UnreadableError
from .look import Entries

EVERY = 30.0
"""Seconds between two requests to one rank: to write a dump delays it."""

ANSWERS = 10.0
"""Seconds within which a rank has dumped, if ever: torch looks at the pipe each second."""

LARGEST = 64 << 20
"""Bytes of a dump above which it is not read."""

NO_PIPE = (
    "the entries of NCCL's recorder cannot be had: torch has opened no pipe for that, as with "
    "TORCH_FR_BUFFER_SIZE=0 or TORCH_NCCL_DUMP_ON_TIMEOUT=0"
)
NO_DUMP = (
    f"the entries of NCCL's recorder cannot be had: torch has not dumped them within {ANSWERS:.0f} s"
)


class _Request(msgspec.Struct):
    """One request; place: where the link leads that the dump replaces; answer: None until it came."""

    question: Entries
    at: float
    place: str = ""
    answer: Mapping[str, Any] | str | None = None


class NcclDumps:
    """The newest dump of each rank that was asked for one."""

    def __init__(self) -> None:
        self._requests: dict[str, _Request] = {}

    def answer(self, question: Entries) -> Mapping[str, Any] | str | None:
        """What a rank has dumped, why it has not, or None as long as it may yet do so."""
        now, request = time.monotonic(), self._requests.get(question.dump)
        if request is None or (request.question != question and now - request.at > EVERY):
            request = self._requests[question.dump] = _request(question, now)
        if request.question != question:
            return None
        if request.answer is None:
            request.answer = _read_dump(question.dump)
            if request.answer is None and now - request.at > ANSWERS:
                request.answer = NO_DUMP
            if request.answer is not None:
                _put_back(request)
        return request.answer


def _request(question: Entries, now: float) -> _Request:
    """Ask torch to dump into a file of its own: its other dumps go where the link leads."""
    request = _Request(question, now)
    dump = Path(question.dump)
    pipes = [Path(f"{dump}.pipe"), *sorted(dump.parent.glob(f"{dump.stem}.*.pipe"))]
    try:
        pipe = os.open(next(filter(Path.exists, pipes)), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, StopIteration):
        request.answer = NO_PIPE
        return request
    with suppress(OSError):
        request.place = os.readlink(dump)
        dump.unlink()
    try:
        os.write(pipe, b"1")
    except OSError:
        request.answer = NO_PIPE
        _put_back(request)
    finally:
        os.close(pipe)
    return request


def _read_dump(path: str) -> Mapping[str, Any] | None:
    """What a rank has dumped, as the record of a beacon has it; None while it is not whole."""
    try:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > LARGEST:
            return None
        dump = flight_dump.unpickled(Path(path).read_bytes())
        flight = flight_dump.account(dump, path).flight if flight_dump.is_dump(dump) else None
    except (OSError, UnreadableError):
        return None
    return None if flight is None else {**flight}


def _put_back(request: _Request) -> None:
    """Have what torch dumps by itself go where it would go without us."""
    with suppress(OSError):
        os.unlink(request.question.dump)
    with suppress(OSError):
        os.symlink(request.place, request.question.dump)
