"""The log of a job, its ranks mixed -> what each of them has said of itself."""

from __future__ import annotations

import math
import re
import signal
from collections.abc import Iterator

from ..observe import pyspy_record
from ..observe.account import Account
from . import patterns
from .log_rank import KIND, LONGEST, RAISED, TRACEBACK, UNNAMED, WORLD, LogRank, Operation, account
from .writers import Line, Writers

UNTOLD_GROUP = "?"
"""Id of the group of an operation of which no line tells the group."""

UNSET = 1 << 40
"""From which number on a number is one that nobody has set."""

WARNINGS = 5
"""Warnings of NCCL's that are kept: what follows from the first is warned of as well."""

SIGNALS = {
    "Out Of Memory": signal.SIGKILL,
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
}
"""How Slurm says that a signal has ended a task."""

PREFIX = 60
"""Letters that may stand before what a process says."""

_LOGGED = {
    patterns.GAVE_UP: "RuntimeError",
    patterns.REACHED: "RuntimeError",
    patterns.BIND: "DistNetworkError",
    patterns.WATCHDOG_ENDS: "DistBackendError",
}
"""Messages that are logged as well as raised, and as what."""

_FRAME = re.compile(r' +File ".+", line \d+, in ')
"""A line of a traceback, of which the log may not have the first."""

_BROKEN = re.compile(r"WorkNCCL\([^)]*$|ast enqueued[^.]*$|caught collective operation timeout: *$")
"""The end of a line that goes on in the next one: a terminal has broken it."""

_ROWS = [row for row in vars(patterns).values() if isinstance(row, patterns.Pattern)]

NEEDLES = (
    *dict.fromkeys(needle.encode() for row in _ROWS for needle in row.needles),
    *(b"Traceback (most recent call last)", b"Error: ", b"Exception: ", b"Interrupt: ", b'  File "'),
)
"""Texts of which every line that matters has one."""


class Log:
    """A log as it is read.

    Args:
        writers: of its lines.
    """

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._number = 0
        self._broken: Line | None = None
        self._memory_kills = 0
        self._warned: dict[str, None] = {}
        self._ranks: dict[int | str, LogRank] = {}
        self._names: dict[str, str] = {}
        self._failed: list[tuple[int, int, int]] = []
        self._in_summary: dict[str, LogRank] = {}
        self._reports: dict[str, int] = {}
        self._desync: int | None = None

    def take(self, line: Line) -> None:
        """The next line."""
        self._number += 1
        if self._broken is not None:
            line = self._broken._replace(text=self._broken.text.rstrip() + line.text)
        self._broken = line if _BROKEN.search(line.text) and len(line.text) < LONGEST else None
        if self._broken is not None:
            return
        self._watchdog(line)
        self._desync_report(line.text)
        self._ends(line)
        self._traceback(line)

    @property
    def listens(self) -> bool:
        """True while any next line may matter; else one with none of the `NEEDLES` does not."""
        return self._broken is not None or any(told.listens for told in self._ranks.values())

    def skip(self, lines: int) -> None:
        """Lines that have none of the `NEEDLES`."""
        self._number += lines

    def accounts(self, path: str) -> Iterator[Account]:
        """What each rank has said of itself."""
        self._place_writers()
        self._find_groups()
        self._name_operations()
        self._place_failures()
        self._place_exception()
        if self._memory_kills or self._warned:
            yield Account(
                file=path, kind=KIND, memory_kills=self._memory_kills, warned=tuple(self._warned)
            )
        for rank, told in self._ranks.items():
            found = account(rank if isinstance(rank, int) else None, told, self._names, path)
            if found.rank is not None or found.error is not None:
                yield found

    def _rank(self, rank: int | str) -> LogRank:
        return self._ranks.setdefault(rank, LogRank())

    def _watchdog(self, line: Line) -> None:
        """What NCCL's watchdog says of a rank, and of its progress in a group."""
        text = line.text
        if frame := patterns.FRAME.search(text):
            if line.writer in self._reports:
                file = frame["file"]
                user = pyspy_record.is_user(file, ())
                entry = (file, int(frame["line"]), frame["function"], user)
                self._rank(self._reports[line.writer]).frames.append(entry)
            return
        late = patterns.WORK.search(text) if patterns.LATE.search(text) else None
        status, timed_out = patterns.STATUS.search(text), patterns.TIMED_OUT.search(text)
        if late is None and status is None and timed_out is None:
            return
        group = patterns.GROUP.search(text)
        rank = _speaker(line, group)
        if rank is None:
            return
        told = self._rank(rank)
        told.timed_out = True
        self._reports[line.writer] = rank
        name = UNTOLD_GROUP if group is None else group["guid"] or group["name"] or group["id"]
        if group is not None and group["description"]:
            self._names[name] = group["description"]
        if late is not None and late["seq"] is not None:
            told.at(name).late = Operation(int(late["seq"]), late["op"], _elements(late))
        if status is not None:
            found = told.at(name)
            found.enqueued, found.completed = _known(status["enqueued"]), _known(status["completed"])
            # Operations of a group are carried out one after the other.
            next_one = (found.completed or 0) + 1
            seq = int(status["seq"]) if status["seq"] is not None else next_one
            pending = status["seq"] is not None or (found.enqueued or 0) >= next_one
            if pending and found.late is None:
                found.late = Operation(seq)

    def _desync_report(self, text: str) -> None:
        """Where a rank says that the others are, in a group that it does not name."""
        if absent := patterns.DESYNC_ABSENT.search(text):
            for rank in _numbers(absent["ranks"]):
                self._rank(rank).at(UNTOLD_GROUP).completed = 0
        elif seq := patterns.DESYNC_SEQ.search(text):
            self._desync = int(seq["seq"])
        elif (ranks := patterns.DESYNC_RANKS.search(text)) and self._desync is not None:
            for rank in _numbers(ranks["ranks"]):
                progress = self._rank(rank).at(UNTOLD_GROUP)
                if ranks["state"] == "finished":
                    progress.enqueued = progress.completed = self._desync
                elif progress.late is None:
                    progress.late = Operation(self._desync, ranks["op"])

    def _ends(self, line: Line) -> None:
        """What launchers and the kernel say of processes that have ended."""
        text = line.text
        if match := patterns.FAILED.search(text):
            self._failed.append((int(match["local"]), int(match["pid"]), int(match["code"])))
        elif match := patterns.SUMMARY_RANK.search(text):
            told = self._in_summary[line.writer] = self._rank(int(match["rank"]))
            told.local_rank = int(match["local"])
        elif (match := patterns.SUMMARY_EXIT.search(text)) and line.writer in self._in_summary:
            told = self._in_summary[line.writer]
            told.code, told.pid = int(match["code"]), int(match["pid"])
        elif match := patterns.TASK_ENDED.search(text):
            self._memory_kills += match["how"] == "Out Of Memory"
            code = int(match["code"]) if match["code"] else -SIGNALS[match["how"]]
            for rank in _numbers(match["tasks"]):
                self._rank(rank).code = code
        elif match := patterns.CHILD_ENDED.search(text):
            self._failed.append((int(match["local"]), int(match["pid"]), int(match["code"])))
        elif match := patterns.MEMBER.search(text):
            self._rank(int(match["rank"])).world_size = int(match["world"])
        elif patterns.MEMORY_KILL.search(text):
            self._memory_kills += 1
        elif (match := patterns.NCCL_WARN.search(text)) and len(self._warned) < WARNINGS:
            who = f"process {match['pid']} on {match['host']}" if match["pid"] else "a process"
            who = who if line.rank is None else f"rank {line.rank}"
            self._warned[f"{who}: NCCL WARN {match['said']}"] = None

    def _traceback(self, line: Line) -> None:
        """The lines of each process from its first traceback on, or of what the log has of it."""
        text = line.text
        rank: int | str = line.writer if line.rank is None else line.rank
        if match := patterns.STORE_BARRIER.search(text):
            rank = int(match["rank"])
            self._writers.note(line.writer, rank)
            self._rank(rank).world_size = int(match["world"])
        said = next((one for one in _LOGGED if one.search(text)), None)
        if said is not None and (match := said.search(text)):
            named = match.groupdict().get("rank")
            rank = int(named) if named is not None and line.rank is None else rank
            text = f"{_LOGGED[said]}: {match['said']}"
        raised = RAISED.search(text)
        if raised is not None and raised.start("type") < PREFIX:
            text = text[raised.start("type") :]
        told = self._ranks.get(rank)
        whole = text.endswith(TRACEBACK)
        if (whole or raised or _FRAME.match(text)) and (told is None or not told.lines):
            told = self._rank(rank)
            told.begins = self._number
            for one in (text,) if whole else (TRACEBACK, text):
                told.add(one)
        elif told is not None and told.listens:
            told.add(text)

    def _find_groups(self) -> None:
        """The groups of operations of which the line itself does not tell it: others do, by number."""
        named = {
            (name, progress.late.seq)
            for told in self._ranks.values()
            for name, progress in told.by_group.items()
            if name != UNTOLD_GROUP and progress.late is not None
        }
        for told in self._ranks.values():
            untold = told.by_group.get(UNTOLD_GROUP)
            if untold is None or untold.late is None:
                continue
            own = {n for n, p in told.by_group.items() if p.late and p.late.seq == untold.late.seq}
            groups = own - {UNTOLD_GROUP} or {n for n, number in named if number == untold.late.seq}
            if len(groups) == 1:
                told.at(groups.pop()).late = untold.late
                del told.by_group[UNTOLD_GROUP]

    def _name_operations(self) -> None:
        """The names of operations that one rank tells by number alone: others name them."""
        late = [
            (name, progress.late)
            for told in self._ranks.values()
            for name, progress in told.by_group.items()
            if progress.late is not None
        ]
        told_of = {(name, one.seq): one for name, one in late if one.op}
        for name, one in late:
            known = told_of.get((name, one.seq), one)
            one.op, one.numel = one.op or known.op or UNNAMED, known.numel if not one.op else one.numel

    def _place_failures(self) -> None:
        """The ranks of processes that a launcher tells by local rank; what follows from a timeout."""
        known = {told.pid for told in self._ranks.values()}
        for local, pid, code in self._failed:
            if pid not in known:
                told = self._rank(local)
                told.local_rank, told.pid, told.code = local, pid, code
        if any(told.timed_out for told in self._ranks.values()):
            for told in self._ranks.values():
                if told.code in (-signal.SIGABRT, -signal.SIGTERM):
                    told.code = None
        elif len({told.code for told in self._ranks.values()} - {None}) > 1:
            for told in self._ranks.values():
                if told.code == -signal.SIGTERM:
                    told.code = None

    def _place_writers(self) -> None:
        """Which ranks those are that only a label names."""
        locals_ = {
            rank: told.local_rank
            for rank, told in self._ranks.items()
            if isinstance(rank, int) and told.local_rank is not None
        }
        for name in [name for name in self._ranks if isinstance(name, str)]:
            rank = self._writers.rank(name, locals_)
            if rank is None:
                continue
            found, told = self._ranks.pop(name), self._rank(rank)
            if not told.lines or found.begins < told.begins:
                told.lines, told.begins = found.lines, found.begins

    def _place_exception(self) -> None:
        """Whose exception it is that nobody's name stands at: of the only process that has failed."""
        nameless = [name for name, told in self._ranks.items() if isinstance(name, str) and told.lines]
        if not nameless:
            return
        failed = [one for one in self._ranks.values() if (one.code or 0) > 0 and not one.lines]
        others = [one for one in self._ranks.values() if one not in failed]
        if len(nameless) == len(failed) == 1 and all(one.code is None for one in others):
            told = self._ranks.pop(nameless[0])
            failed[0].lines, failed[0].begins = told.lines, told.begins
            return
        for one in failed:
            one.code = None  # some of them have raised it


def _speaker(line: Line, group: re.Match[str] | None) -> int | None:
    """The global rank of a line: as it is labelled, else the rank in a group that may be all of them."""
    if line.rank is not None:
        return line.rank
    if group is not None and (group["description"] == WORLD or group["id"] == "0"):
        return int(group["rank"])
    in_group = patterns.IN_GROUP.search(line.text)
    return int(in_group["rank"]) if in_group is not None else None


def _elements(work: re.Match[str]) -> int | None:
    """How many elements go into an operation, where that is told."""
    if work["numel"] is not None:
        return _known(work["numel"])
    if work["shape"] is not None:
        return math.prod(int(size) for size in work["shape"].split(", ") if size)
    return None


def _known(text: str) -> int | None:
    """A number that somebody has set."""
    return int(text) if -1 <= int(text) < UNSET else None


def _numbers(text: str) -> list[int]:
    """`1,3-5` -> 1, 3, 4, 5."""
    found: list[int] = []
    for part in re.findall(r"\d+-\d+|\d+", text):
        first, _, last = part.partition("-")
        found += range(int(first), min(int(last or first), int(first) + 10_000) + 1)
    return found
