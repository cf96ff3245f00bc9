"""One file that a job has left -> what it tells, recognised by its content."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from ..observe import flight_dump
from ..observe.account import Account, UnreadableError
from ..observe.recording import RecordingError
from . import collected, error_file, log_rank, ncclras, pyspy_dump
from .files import Budget, is_text, opened, pieces, whole
from .moments import moments, packed
from .text import Text

HEAD = 4096
"""Bytes by which a file is recognised."""

EMPTIED = 1 << 24
"""Bytes that may be empty at the beginning of a log."""

LABEL = 64
"""Bytes by which a recording is recognised: few, since one that is still written may end soon."""

LINE = 1 << 16
"""Bytes of a line that are looked at."""

RECORDING = re.compile(rb'\{"recording":\s*\d+')
DUMP = re.compile(rb'"(?:entries|pg_config|thread_id|py_callstack|communicators)"\s*:')
"""What JSON has that is a dump, and no line of a log."""

PICKLE = re.compile(rb"\x80[\x02-\x05]")
JSON = re.compile(rb'\s*(\{\s*"|\[\s*[{\]])')
_NAMED = re.compile(r"(?<!local_)(?<!local-)rank[_\-. ]?(\d+)", re.IGNORECASE)


class FileContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one file holds.

    Attributes:
        accounts: of processes; empty for a recording, and for what is not recognised.
        output: what ranks have printed, in the same form.
        telling: of a text, number and wording of the lines that say most; alarming: whether they do.
        part: the last moments that a recording shows, as `moments` packs them.
        damaged: why it cannot be read.
    """

    accounts: tuple[Account, ...] = ()
    output: tuple[Account, ...] = ()
    telling: tuple[tuple[int, str], ...] = ()
    alarming: bool = False
    part: bytes = b""
    damaged: str = ""

    @property
    def recognised(self) -> bool:
        """True unless it is none of the files that are known here, and no text."""
        return bool(self.accounts or self.part or self.damaged or self.telling or self.output)


def content_of(file: Path, budget: Budget) -> FileContent:
    """What a file holds, recognised by its content."""
    try:
        with opened(file) as content:
            if RECORDING.match(content.read(LABEL)):
                return FileContent(part=packed(moments(file)))
            content.seek(0)
            head = content.read(HEAD)
            content.seek(0)
            file_content = _recognised(head, content, str(file), budget)
        written = file.stat().st_mtime
    except UnreadableError as problem:
        return FileContent(damaged=str(problem))
    except RecordingError as problem:
        return FileContent(damaged=f"it {problem}")
    dated = (
        account if account.written is not None else replace(account, written=written)
        for account in file_content.accounts
    )
    return replace(file_content, accounts=tuple(dated))


def _recognised(head: bytes, content: IO[bytes], path: str, budget: Budget) -> FileContent:
    if PICKLE.match(head):
        return FileContent(
            accounts=tuple(_of_value(flight_dump.unpickled(whole(content, budget)), path))
        )
    if JSON.match(head):
        return _of_json(content, path, budget)
    if ncclras.is_text(head):
        lines = whole(content, budget).decode("utf-8", "replace").splitlines()
        content.seek(0)
        of_lines = _of_text(content, path, budget)
        return replace(of_lines, accounts=(ncclras.from_text(lines, path), *of_lines.accounts))
    if not head.strip(b"\0"):  # a log that was emptied while it was written
        head = content.read(EMPTIED).lstrip(b"\0")[:HEAD]
        content.seek(0)
    return _of_text(content, path, budget) if is_text(head) else FileContent()


def _of_json(content: IO[bytes], path: str, budget: Budget) -> FileContent:
    """What a JSON text holds: dumps, the records of a collector, or a log whose first line is one."""
    data = whole(content, budget)
    accounts: list[Account] = []
    values: list[object] = []
    damaged: UnreadableError | None = None
    try:
        for value in flight_dump.parsed(data):
            values.append(value)
            accounts += _of_value(value, path)
    except UnreadableError as problem:
        damaged = problem
    if accounts:
        return FileContent(accounts=tuple(accounts))
    records = [] if damaged is not None else list(collected.records(values))
    if records:
        return _of_records(records, data.decode("utf-8", "replace").splitlines(), path)
    content.seek(0)
    of_lines = _of_text(content, path, budget)
    if damaged is not None and not of_lines.accounts and DUMP.search(data[:HEAD]):
        raise damaged
    return of_lines


def _of_value(value: object, path: str) -> Iterator[Account]:
    if flight_dump.is_dump(value):
        assert isinstance(value, dict)
        yield flight_dump.account(value, path)
    elif pyspy_dump.is_json(value):
        yield _with_named_rank(pyspy_dump.from_json(value, path))
    elif ncclras.is_json(value):
        yield ncclras.from_json(value, path)
    elif error_file.is_error_file(value):
        assert isinstance(value, dict)
        yield error_file.account(value, path)


def _of_records(records: Iterable[collected.Record], lines: Sequence[str], path: str) -> FileContent:
    """What a collector has wrapped in the lines of a file."""
    text, at = Text(path, rank_named(path)), 0
    for record in records:
        following = (n for n in range(at, len(lines)) if record.quoted in lines[n])
        at = next(following, at)
        text.take_record(record, at + 1, lines[at])
    return _text_content(text, path, (record.text for record in records))


def _of_text(content: IO[bytes], path: str, budget: Budget) -> FileContent:
    text = Text(path, rank_named(path))
    newest = deque[bytes](maxlen=2)
    for piece in pieces(content, budget):
        newest.append(piece)
        if not text.needs(piece):
            text.skip(piece)
            continue
        for line in piece.split(b"\n"):
            text.take(line[:LINE].decode("utf-8", "replace").rstrip("\r"))
    last = (line[:LINE].decode("utf-8", "replace") for piece in newest for line in piece.split(b"\n"))
    return _text_content(text, path, last)


def _text_content(text: Text, path: str, last: Iterable[str]) -> FileContent:
    """What a text has told.

    Args:
        last: its newest lines.
    """
    accounts = [
        account if account.kind == log_rank.KIND else _with_named_rank(account)
        for account in text.accounts()
    ]
    output = (
        Account(file=path, kind=log_rank.KIND, rank=rank, output=tuple(lines))
        for rank, lines in text.output(last).items()
        if rank is not None
    )
    telling, alarming = text.telling()
    return FileContent(
        accounts=tuple(accounts), output=tuple(output), telling=tuple(telling), alarming=alarming
    )


def rank_named(path: str) -> int | None:
    """The rank that the name of a log, or of its folder, tells; of torchrun's folders the local one.

    A name may speak of a rank that has not written the log: it has to begin with the rank, or to be
    one of several names that differ in the rank alone.
    """
    file = Path(path).absolute()
    for part in (file, file.parent):
        match = _NAMED.search(part.name)
        if match is not None and (match.start() == 0 or _has_siblings(part)):
            return int(match[1])
    if placed := error_file.PLACE.search(path):
        return int(placed[1])
    return None


def _has_siblings(path: Path) -> bool:
    """True where another file beside it has the same name but for the rank in it."""
    same = _NAMED.sub("", path.name)
    with suppress(OSError):
        return any(n != path.name and _NAMED.sub("", n) == same for n in os.listdir(path.parent))
    return False


def _with_named_rank(account: Account) -> Account:
    """A dump of one process, with the rank that the name of its file tells."""
    path = Path(account.file)
    for name in (path.name, path.parent.name):
        if match := _NAMED.search(name):
            return replace(account, rank=int(match[1]))
    number = flight_dump.rank_of(account.file)
    if account.rank is None and number is not None and number != account.pid:
        return replace(account, rank=number)
    return account
