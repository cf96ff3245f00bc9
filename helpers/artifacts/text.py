"""A text of any length -> the dumps of stacks in it, and what it tells as the log of a job."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from ..observe.account import Account
from ..observe.logs import NEWEST
from . import collected, elastic_event, faulthandler_text, gdb_text, pyspy_dump
from .fr_trace import Analysis
from .lock_log import LockLog
from .log import NEEDLES as OF_LOGS
from .log import OF_TRACEBACKS, Log
from .patterns import exit_lines, failure_lines, watchdog_lines
from .telling import ALARM, Telling
from .writers import Line, Writers, parted

BEGINS = (faulthandler_text.BEGINS, pyspy_dump.THREAD, gdb_text.BEGINS)
"""How the stack of a thread begins."""

_BEGINS = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in BEGINS))

_BESIDE = re.compile(
    "|".join(
        re.escape(needle)
        for row in (
            watchdog_lines.UNJOINED,
            watchdog_lines.ANALYSED,
            failure_lines.LOCK,
            exit_lines.WORKER_FAILED,
        )
        for needle in row.needles
    )
)
"""What every line has that matters to none but a reader of its own."""

NEEDLES = (
    *(*OF_LOGS, b"Process ", b"(most recent call first", b"Traceback for thread", b"Thread ", b"#0 "),
    *(b"LWP ", b" signal SIG"),
)
"""Texts of which every line that matters has one, outside of a dump and of tracebacks."""

LOGGED = re.compile(r"\[[EWIF]\d{3,4} ")
"""How lines begin that torch's own C++ logs."""

HITS = 8
"""Lines that tell of a failure, and are remembered, of a piece of a text that is skipped."""

LONGEST = 20_000
"""Lines of the dump of one process at most."""

OUTSIDE = 50
"""Lines that are no part of a dump, after which it is over: a command may have several lines."""


ABOVE = 4
"""Lines within which the stacks of a rank stand below the line that names it."""


class _Dump(msgspec.Struct):
    """The dump of a process as it is read.

    Attributes:
        heading: the rank that a line above it names.
        lines: of it; outside: how many lines ago the last one was that can only be a part of it.
    """

    heading: int | None = None
    lines: list[str] = msgspec.field(default_factory=list)
    outside: int = 0


class Text:
    """A text as it is read.

    Args:
        path: of its file.
        home: the rank that its name tells.
    """

    def __init__(self, path: str, home: int | None = None) -> None:
        self._path = path
        self._number = 0
        self._writers = Writers(home)
        self._log = Log(self._writers)
        self._dumps: dict[str, _Dump] = {}
        self._stacks: list[tuple[str, Account]] = []
        self._headings: dict[str, tuple[int, int]] = {}
        self._analysis = Analysis()
        self._locks = LockLog()
        self._failed: list[Account] = []
        self._telling = Telling()

    @property
    def listens(self) -> bool:
        """True while any next line may matter; else one with none of the `NEEDLES` does not."""
        return bool(self._dumps) or self._log.listens

    def needs(self, piece: bytes) -> bool:
        """True where the lines of a piece of the text have to be taken."""
        if self._number == 0 or self.listens:
            return True
        needles = NEEDLES if self._log.settled else (*NEEDLES, *OF_TRACEBACKS)
        return any(needle in piece for needle in needles)

    def skip(self, piece: bytes) -> None:
        """Lines that have none of the `NEEDLES`; a few that tell of a failure are remembered."""
        for hit in itertools.islice(ALARM.finditer(piece), HITS):
            begin = piece.rfind(b"\n", 0, hit.start()) + 1
            line = _text(piece[begin:].partition(b"\n")[0])
            number = self._number + 1 + piece.count(b"\n", 0, begin)
            self._telling.take(Line("", None, line, number, line))
        self._number += piece.count(b"\n") + 1

    def take(self, text: str) -> None:
        """The next line, or what a collector has wrapped in it."""
        self._number += 1
        wrapped = list(collected.unwrapped(text))
        for record in wrapped:
            self.take_record(record, self._number, text)
        if not wrapped:
            for part in parted(text):
                self._take(self._writers.line(part, self._number))

    def take_record(self, record: collected.Record, number: int, raw: str) -> None:
        """The lines of a record.

        Args:
            number: of the line of the file in which it stands; raw: that line.
        """
        quoted = record.quoted if record.quoted in raw else raw
        for text in record.text.splitlines() or [""]:
            shown = text if text.strip() and text in raw else quoted
            self._take(self._writers.line(text, number, record.source, shown, record.rank))

    def _take(self, line: Line) -> None:
        self._log.take(line)
        if self._analysis.listens or _BESIDE.search(line.text) is not None:
            self._take_beside(line)
        self._telling.take(line)
        self._take_of_dump(line)

    def _take_beside(self, line: Line) -> None:
        """A line by a tool or a library that tells of ranks, or of locks, in a way of its own."""
        self._analysis.take(line)
        self._locks.take(line)
        failed = elastic_event.account(line, self._path)
        self._failed += [failed] if failed is not None else []

    def _take_of_dump(self, line: Line) -> None:
        """A line that may belong to the stacks of a process."""
        thread = _BEGINS.match(line.text) is not None
        process = pyspy_dump.PROCESS.match(line.text) is not None
        self._heading(line)
        dump = self._dumps.get(line.writer)
        if process or (thread and dump is None):
            self._end(line.writer)
            rank, number = self._headings.get(line.writer, (None, -ABOVE))
            dump = self._dumps[line.writer] = _Dump(rank if line.number - number <= ABOVE else None)
        if dump is None:
            return
        if len(dump.lines) < LONGEST:
            dump.lines.append(line.text)
        parts = (pyspy_dump.PART, gdb_text.PART)
        part = thread or process or any(p.match(line.text) for p in parts) or not line.text.strip()
        dump.outside = 0 if part else dump.outside + 1
        if dump.outside > OUTSIDE:
            self._end(line.writer)

    def _heading(self, line: Line) -> None:
        """A line that somebody has written above the stacks of a rank; those of another one are over."""
        heading = gdb_text.HEADING.match(line.text) if "ank" in line.text.lower() else None
        if heading is None:
            return
        self._headings[line.writer] = int(heading["rank"]), line.number
        dump = self._dumps.get(line.writer)
        if dump is not None and gdb_text.BEGINS.match(dump.lines[0]):
            self._end(line.writer)

    def output(self, newest: Iterable[str]) -> dict[int | None, list[str]]:
        """Rank -> the newest lines that it has printed; None for lines that do not tell who has.

        Args:
            newest: lines of the text, the last ones, which have been read before.
        """
        by_writer: dict[int | str, list[str]] = {}
        for line in map(self._writers.line, newest):
            if LOGGED.match(line.text):
                continue
            by_writer.setdefault(line.speaker, []).append(line.text)
        by_rank: dict[int | None, list[str]] = {}
        for writer, lines in by_writer.items():
            rank = writer if isinstance(writer, int) else self._writers.rank(writer, {})
            by_rank.setdefault(rank, []).extend(lines)
        return {rank: lines[-NEWEST:] for rank, lines in by_rank.items()}

    def accounts(self) -> Iterator[Account]:
        """What the text tells, once it has been read."""
        for writer in list(self._dumps):
            self._end(writer)
        log_accounts = self._with_stacks(list(self._log.accounts(self._path)))
        locals_ = {
            account.rank: account.local_rank
            for account in log_accounts
            if account.rank is not None and account.local_rank is not None
        }
        for writer, account in self._stacks:
            rank = self._writers.rank(writer, locals_)
            yield replace(account, rank=rank) if rank is not None else account
        yield from log_accounts
        yield from self._failed
        yield from self._locks.accounts(self._path, self._number)
        yield from self._analysis.accounts(self._path)

    def telling(self) -> tuple[list[tuple[int, str]], bool]:
        """The lines that say most, and whether any of them tells of a failure that nothing outlives."""
        lines = self._telling.lines(self._log.outlived)
        return lines, self._telling.alarming(self._log.outlived)

    def _with_stacks(self, accounts: list[Account]) -> list[Account]:
        """What the log tells, less the ends of processes whose stacks it has: these have both."""
        without_stack = []
        for account in accounts:
            at = next(
                (n for n, (_, stack) in enumerate(self._stacks) if _is_crash_of(stack, account)), None
            )
            if at is None:
                without_stack.append(account)
                continue
            writer, dumped = self._stacks[at]
            dumped = replace(dumped, signal=account.signal, quotes=account.quotes, host=account.host)
            self._stacks[at] = writer, dumped
        return without_stack

    def _end(self, writer: str) -> None:
        """The dump of a process is over."""
        dump = self._dumps.pop(writer, None)
        if dump is None:
            return
        begun = (pyspy_dump.PROCESS, pyspy_dump.THREAD)
        of_pyspy = any(pattern.match(dump.lines[0]) for pattern in begun)
        of_gdb = gdb_text.BEGINS.match(dump.lines[0]) is not None
        read = pyspy_dump.from_text if of_pyspy else faulthandler_text.account
        account = (gdb_text.account if of_gdb else read)(dump.lines, self._path)
        if account is not None and of_gdb:
            account = replace(account, rank=dump.heading)
        if account is not None:
            self._stacks.append((writer, account))


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


def _is_crash_of(dumped: Account, account: Account) -> bool:
    """True for the stack of a process that a signal has ended: Python has written it as it died."""
    crash = account.rank is None and account.signal is not None and dumped.kind == faulthandler_text.KIND
    return crash and dumped.signal is None
