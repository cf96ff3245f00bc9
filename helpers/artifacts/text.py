"""A text of any length -> the dumps of stacks in it, and what it tells as the log of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from ..observe.account import Account
from ..observe.logs import NEWEST
from . import faulthandler_text, pyspy_dump
from .log import NEEDLES as OF_LOGS
from .log import Log
from .writers import Writers

NEEDLES = (*OF_LOGS, b"Process ", b"(most recent call first)")
"""Texts of which every line that matters has one, outside of a dump."""

LONGEST = 20_000
"""Lines of the dump of one process at most."""

APART = 50
"""Lines that are no part of a dump, after which it is over: a command may have several lines."""


@dataclass
class _Dump:
    """The dump of a process as it is read.

    Attributes:
        lines: of it; apart: how many lines ago the last one was that can only be a part of it.
    """

    lines: list[str] = field(default_factory=list)
    apart: int = 0


class Text:
    """A text as it is read.

    Args:
        path: of its file.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._writers = Writers()
        self._log = Log(self._writers)
        self._dumps: dict[str, _Dump] = {}
        self._found: list[tuple[str, Account]] = []

    @property
    def listens(self) -> bool:
        """True while any next line may matter; else one with none of the `NEEDLES` does not."""
        return bool(self._dumps) or self._log.listens

    def skip(self, lines: int) -> None:
        """Lines that have none of the `NEEDLES`."""
        self._log.skip(lines)

    def take(self, text: str) -> None:
        """The next line."""
        line = self._writers.line(text)
        self._log.take(line)
        thread = faulthandler_text.BEGINS.match(line.text) is not None
        process = pyspy_dump.PROCESS.match(line.text) is not None
        dump = self._dumps.get(line.writer)
        if process or (thread and dump is None):
            self._end(line.writer)
            dump = self._dumps[line.writer] = _Dump()
        if dump is None:
            return
        if len(dump.lines) < LONGEST:
            dump.lines.append(line.text)
        part = thread or process or pyspy_dump.PART.match(line.text) or not line.text.strip()
        dump.apart = 0 if part else dump.apart + 1
        if dump.apart > APART:
            self._end(line.writer)

    def output(self, newest: Iterable[str]) -> dict[int | None, list[str]]:
        """Rank -> the newest lines that it has printed; None for lines that do not tell who has.

        Args:
            newest: lines of the text, the last ones, which have been read before.
        """
        found: dict[int | str, list[str]] = {}
        for line in map(self._writers.line, newest):
            found.setdefault(line.writer if line.rank is None else line.rank, []).append(line.text)
        by_rank: dict[int | None, list[str]] = {}
        for writer, lines in found.items():
            rank = writer if isinstance(writer, int) else self._writers.rank(writer, {})
            by_rank.setdefault(rank, []).extend(lines)
        return {rank: lines[-NEWEST:] for rank, lines in by_rank.items()}

    def accounts(self) -> Iterator[Account]:
        """What the text tells, once it has been read."""
        for writer in list(self._dumps):
            self._end(writer)
        told = list(self._log.accounts(self._path))
        locals_ = {
            one.rank: one.local_rank
            for one in told
            if one.rank is not None and one.local_rank is not None
        }
        for writer, account in self._found:
            rank = self._writers.rank(writer, locals_)
            yield replace(account, rank=rank) if rank is not None else account
        yield from told

    def _end(self, writer: str) -> None:
        """The dump of a process is over."""
        dump = self._dumps.pop(writer, None)
        if dump is None:
            return
        of_pyspy = pyspy_dump.PROCESS.match(dump.lines[0]) is not None
        read = pyspy_dump.from_text if of_pyspy else faulthandler_text.account
        found = read(dump.lines, self._path)
        if found is not None:
            self._found.append((writer, found))
