"""How far each rank has come, as NCCL's watchdog tells it in a log."""

from __future__ import annotations

import math
import re

from ..model.wording import UNTOLD_GROUP
from ..observe import pyspy_record
from .log_rank import UNNAMED, WORLD, LogRanks, Operation, Progress
from .patterns import watchdog_lines
from .writers import Line, numbers

UNSET = 1 << 40
"""From which number on a number is one that nobody has set."""


class Watchdog:
    """What watchdogs have said of the progress of ranks.

    Args:
        ranks: of the log, to which it is added.

    Attributes:
        names: id of a group -> how torch describes it.
    """

    def __init__(self, ranks: LogRanks) -> None:
        self.names: dict[str, str] = {}
        self._ranks = ranks
        self._reports: dict[str, int] = {}
        self._desync: int | None = None

    def take(self, line: Line) -> None:
        """The next line."""
        self._status(line)
        self._desync_report(line)

    def _status(self, line: Line) -> None:
        """What NCCL's watchdog says of a rank, and of its progress in a group."""
        text = line.text
        if frame := watchdog_lines.FRAME.search(text):
            self._frame(line, frame)
            return
        work = watchdog_lines.WORK.search(text) if watchdog_lines.LATE.search(text) else None
        status, timed_out = watchdog_lines.STATUS.search(text), watchdog_lines.TIMED_OUT.search(text)
        group = watchdog_lines.GROUP.search(text)
        rank = speaker(line, group) if work or status or timed_out else None
        if rank is None:
            return
        log_rank = self._ranks.of(rank)
        log_rank.late_at = log_rank.late_at or line.number
        log_rank.quote(line)
        self._reports[line.writer] = rank
        name = UNTOLD_GROUP if group is None else group["guid"] or group["name"] or group["id"]
        if group is not None and group["description"]:
            self.names[name] = group["description"]
        if work is not None:
            _add_work(log_rank.at(name), work)
        if status is not None:
            _add_status(log_rank.at(name), status)

    def _frame(self, line: Line, match: re.Match[str]) -> None:
        """A line of the stack that led to the overdue operation of the rank that was reported last."""
        if line.writer in self._reports:
            file, number, function = match["file"], int(match["line"]), match["function"]
            frames = self._ranks.of(self._reports[line.writer]).frames
            frames.append((file, number, function, pyspy_record.is_user(file, ())))

    def _desync_report(self, line: Line) -> None:
        """Where a rank says that the others are, in a group that it does not name."""
        text = line.text
        if absent := watchdog_lines.DESYNC_ABSENT.search(text):
            for rank in numbers(absent["ranks"]):
                self._ranks.of(rank).at(UNTOLD_GROUP).completed = 0
                self._ranks.of(rank).quote(line)
        elif seq := watchdog_lines.DESYNC_SEQ.search(text):
            self._desync = int(seq["seq"])
        elif (ranks := watchdog_lines.DESYNC_RANKS.search(text)) and self._desync is not None:
            for rank in numbers(ranks["ranks"]):
                self._ranks.of(rank).quote(line)
                progress = self._ranks.of(rank).at(UNTOLD_GROUP)
                if ranks["state"] == "finished":
                    progress.enqueued = progress.completed = self._desync
                elif progress.overdue is None:
                    progress.overdue = Operation(self._desync, ranks["op"])

    def find_groups(self) -> None:
        """The groups of operations of which the line itself does not tell it: others do, by number."""
        operations = {
            (name, progress.overdue.seq)
            for log_rank in self._ranks.values()
            for name, progress in log_rank.by_group.items()
            if name != UNTOLD_GROUP and progress.overdue is not None
        }
        for log_rank in self._ranks.values():
            untold = log_rank.by_group.get(UNTOLD_GROUP)
            if untold is None or untold.overdue is None:
                continue
            seq = untold.overdue.seq
            same_seq = {n for n, p in log_rank.by_group.items() if p.overdue and p.overdue.seq == seq}
            groups = same_seq - {UNTOLD_GROUP} or {n for n, number in operations if number == seq}
            if len(groups) == 1:
                log_rank.at(groups.pop()).overdue = untold.overdue
                del log_rank.by_group[UNTOLD_GROUP]

    def name_operations(self) -> None:
        """The names of operations that one rank tells by number alone: others name them."""
        operations = [
            (name, progress.overdue)
            for log_rank in self._ranks.values()
            for name, progress in log_rank.by_group.items()
            if progress.overdue is not None
        ]
        by_seq = {(name, operation.seq): operation for name, operation in operations if operation.op}
        for name, operation in operations:
            namesake = by_seq.get((name, operation.seq), operation)
            if not operation.op:
                operation.op, operation.numel = namesake.op or UNNAMED, namesake.numel


def _add_work(progress: Progress, work: re.Match[str]) -> None:
    """The overdue operation, unless its number is untold and another one is known."""
    if work["seq"] is not None or progress.overdue is None:
        seq = int(work["seq"]) if work["seq"] is not None else None
        progress.overdue = Operation(seq, work["op"], _elements(work))


def _add_status(progress: Progress, status: re.Match[str]) -> None:
    """The numbers of the last operations, and so of the overdue one: they are carried out in order."""
    progress.enqueued, progress.completed = _if_set(status["enqueued"]), _if_set(status["completed"])
    following = (progress.completed or 0) + 1
    pending = status["seq"] is not None or (progress.enqueued or 0) >= following
    if pending and progress.overdue is None:
        progress.overdue = Operation(int(status["seq"]) if status["seq"] is not None else following)


def speaker(line: Line, group: re.Match[str] | None) -> int | None:
    """The global rank of a line: that in the default group, else as it is labelled, else in any group.

    A label may be torchrun's, which numbers the ranks of a node.
    """
    if group is not None and (group["description"] == WORLD or group["id"] == "0"):
        return int(group["rank"])
    if line.rank is not None:
        return line.rank
    in_group = watchdog_lines.IN_GROUP.search(line.text) or watchdog_lines.CONNECTS.search(line.text)
    return int(in_group["rank"]) if in_group is not None else None


def _elements(work: re.Match[str]) -> int | None:
    """How many elements go into an operation, where that is told."""
    if work["numel"] is not None:
        return _if_set(work["numel"])
    if work["shape"] is not None:
        return math.prod(int(size) for size in work["shape"].split(", ") if size)
    return None


def _if_set(text: str) -> int | None:
    """A number that somebody has set."""
    return int(text) if -1 <= int(text) < UNSET else None
