"""One file that a job has left -> what it tells, recognised by its content."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec.structs import replace

from ..observe import flight_dump
from ..observe.account import Account, UnreadableError
from ..observe.recording import RecordingError
from . import error_file, log_rank, ncclras, pyspy_dump
from .files import Budget, opened, pieces, whole
from .moments import moments, packed
from .text import NEEDLES, Text

HEAD = 4096
"""Bytes by which a file is recognised."""

LABEL = 64
"""Bytes by which a recording is recognised: few, since one that is still written may end soon."""

LINE = 1 << 16
"""Bytes of a line that are looked at."""

RECORDING = re.compile(rb'\{"recording":\s*\d+')
PICKLE = re.compile(rb"\x80[\x02-\x05]")
JSON = re.compile(rb'\s*(\{\s*"|\[\s*[{\]])')
_NAMED = re.compile(r"rank[_\-. ]?(\d+)", re.IGNORECASE)


class Found(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one file holds.

    Attributes:
        accounts: of processes; empty for a recording, and for what is not recognised.
        output: what ranks have printed, in the same form.
        part: the last moments that a recording shows, as `moments` packs them.
        damaged: why it cannot be read.
    """

    accounts: tuple[Account, ...] = ()
    output: tuple[Account, ...] = ()
    part: bytes = b""
    damaged: str = ""

    @property
    def recognised(self) -> bool:
        """True unless it is none of the files that are known here."""
        return bool(self.accounts or self.part or self.damaged)


def found_in(file: Path, budget: Budget) -> Found:
    """What a file holds, recognised by its content."""
    try:
        with opened(file) as content:
            if RECORDING.match(content.read(LABEL)):
                return Found(part=packed(moments(file)))
            content.seek(0)
            head = content.read(HEAD)
            content.seek(0)
            found = list(_accounts(head, content, str(file), budget))
        written = file.stat().st_mtime
    except UnreadableError as problem:
        return Found(damaged=str(problem))
    except RecordingError as problem:
        return Found(damaged=f"it {problem}")
    dated = (one if one.written is not None else replace(one, written=written) for one in found)
    accounts = list(dated)
    return Found(
        accounts=tuple(account for account in accounts if not account.output),
        output=tuple(account for account in accounts if account.output),
    )


def _accounts(head: bytes, content: BinaryIO, path: str, budget: Budget) -> Iterator[Account]:
    if PICKLE.match(head):
        yield from _of_value(flight_dump.unpickled(whole(content, budget)), path)
    elif JSON.match(head):
        yield from _of_json(content, path, budget)
    elif ncclras.is_text(head):
        lines = whole(content, budget).decode("utf-8", "replace").splitlines()
        yield ncclras.from_text(lines, path)
    elif b"\0" not in head:
        yield from _of_text(content, path, budget)


def _of_json(content: BinaryIO, path: str, budget: Budget) -> Iterator[Account]:
    """What a JSON text holds, or a log whose first line is one."""
    damaged: UnreadableError | None = None
    found: list[Account] = []
    try:
        for value in flight_dump.parsed(whole(content, budget)):
            found += _of_value(value, path)
    except UnreadableError as problem:
        damaged = problem
    if not found:
        content.seek(0)
        found = list(_of_text(content, path, budget))
    if damaged is not None and not found:
        raise damaged
    yield from found


def _of_value(value: object, path: str) -> Iterator[Account]:
    if flight_dump.is_dump(value):
        assert isinstance(value, dict)
        yield flight_dump.account(value, path)
    elif pyspy_dump.is_json(value):
        yield _named(pyspy_dump.from_json(value, path))
    elif ncclras.is_json(value):
        yield ncclras.from_json(value, path)
    elif error_file.is_error_file(value):
        assert isinstance(value, dict)
        yield error_file.account(value, path)


def _of_text(content: BinaryIO, path: str, budget: Budget) -> Iterator[Account]:
    text = Text(path)
    newest = deque[bytes](maxlen=2)
    for piece in pieces(content, budget):
        newest.append(piece)
        if not text.listens and not any(needle in piece for needle in NEEDLES):
            text.skip(piece.count(b"\n"))
            continue
        for line in piece.split(b"\n"):
            text.take(line[:LINE].decode("utf-8", "replace").rstrip("\r"))
    for account in text.accounts():
        yield account if account.kind == log_rank.KIND else _named(account)
    last = (line[:LINE].decode("utf-8", "replace") for piece in newest for line in piece.split(b"\n"))
    for rank, lines in text.output(last).items():
        account = Account(file=path, kind=log_rank.KIND, rank=rank, output=tuple(lines))
        account = account if rank is not None else _named(account)
        if account.rank is not None:
            yield account


def _named(account: Account) -> Account:
    """With the rank that the name of its file, or of its folder, tells."""
    path = Path(account.file)
    for name in (path.name, path.parent.name):
        named = _NAMED.search(name)
        if named is not None:
            return replace(account, rank=int(named[1]))
    number = flight_dump.rank_of(account.file)
    if account.rank is None and number is not None and number != account.pid:
        return replace(account, rank=number)
    return account
