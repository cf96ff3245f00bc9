"""How processes have ended, as launchers, shells, schedulers and the kernel tell it in a log."""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Callable

from .log_rank import LogRank, LogRanks
from .patterns import exit_lines, failure_lines, kill_lines, line_heads, watchdog_lines
from .writers import Line, Writers, numbers

_FROM_SHELL = 128
"""What a shell and a container add to the number of the signal that has ended a process."""

SIGNALS = {
    "Out Of Memory": signal.SIGKILL,
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Aborted": signal.SIGABRT,
    "Bus error": signal.SIGBUS,
    "Illegal instruction": signal.SIGILL,
    "Floating point exception": signal.SIGFPE,
    "Terminated": signal.SIGTERM,
}
"""How shells, Python and Slurm say that a signal has ended a process."""


class ProcessEnds:
    """The ends of processes.

    Args:
        ranks: of the log, to which they are added; writers: of its lines.
        quote: keeps a line that tells something.

    Attributes:
        by_local_rank: local rank, pid and exit code of processes, each with the line that tells them.
        memory_kills: how many processes were killed for memory; killed_at: the first line that says so.
        restarted_at: the line that tells that all ranks were started again; 0 for none.
    """

    def __init__(self, ranks: LogRanks, writers: Writers, quote: Callable[[Line], None]) -> None:
        self.by_local_rank: list[tuple[int, int, int, Line]] = []
        self.memory_kills = 0
        self.killed_at = 0
        self.restarted_at = 0
        self._ranks = ranks
        self._writers = writers
        self._quote = quote
        self._started: dict[int, set[str]] = {}
        self._second_starts: dict[int, Line] = {}
        self._announced: Counter[int] = Counter()
        self._world = 0
        self._in_summary: dict[str, LogRank] = {}
        self._root: LogRank | None = None
        self._root_next = False
        self._mpi_rank: int | None = None
        self._aborted: LogRank | None = None
        self._quits = False

    def take(self, line: Line) -> None:
        """The next line."""
        text = line.text
        if match := exit_lines.FAILED.search(text) or exit_lines.CHILD_ENDED.search(text):
            failed = int(match["local"]), int(match["pid"]), int(match["code"]), line
            self.by_local_rank.append(failed)
        elif exit_lines.RESTARTS.search(text):
            self.restarted_at = line.number
            self._started.clear()
            self._announced.clear()
            self._second_starts.clear()
        elif self._summary(line):
            pass
        elif match := exit_lines.TASK_ENDED.search(text):
            self._tasks(line, match)
        elif match := exit_lines.MEMBER.search(text):
            self._starts(line, int(match["rank"]), int(match["world"]))
        elif match := kill_lines.MEMORY_KILL.search(text):
            if match["other"] is None:
                self._killed(line, 1)
        elif match := exit_lines.WORKERS_KILLED.search(text):
            self._killed(line, int(match["number"]))
        elif not self._by_launcher(line):
            self._by_signal(line)

    @property
    def doubled(self) -> tuple[int, ...]:
        """Ranks as which processes of different labels have started.

        Without labels it shows where as many processes have started as there are ranks, and each of some
        ranks as often: machines that do not know their number.
        """
        labelled = (rank for rank, labels in self._started.items() if len(labels) > 1)
        counts = self._announced
        every = counts.total() == self._world and len({*counts.values()}) == 1
        return tuple(sorted({*labelled, *(rank for rank in counts if every and counts[rank] > 1)}))

    def _starts(self, line: Line, rank: int, world: int) -> None:
        """A process is about to join as a rank."""
        self._ranks.of(rank).world_size = self._world = world
        self._announced[rank] += 1
        if self._announced[rank] > 1:
            self._second_starts.setdefault(rank, line)
        labels = self._started.setdefault(rank, set())
        if line.writer:
            labels.add(line.writer)

    def place(self) -> None:
        """The ranks of processes that a launcher tells by local rank, and who has failed first."""
        pids = {log_rank.pid for log_rank in self._ranks.values()}
        for local, pid, code, line in self.by_local_rank:
            if pid not in pids:
                log_rank = self._ranks.of(local)
                log_rank.local_rank, log_rank.pid = local, pid
                log_rank.ended(line, code)
        # Who aborts says so, and its launcher tells the signal: that is one end.
        by_signal = {t.code for rank, t in self._ranks.items() if isinstance(rank, int)}
        for name, log_rank in [*self._ranks.items()]:
            ended = log_rank.code is not None and log_rank.code < 0 and log_rank.code in by_signal
            if isinstance(name, str) and ended and not log_rank.raised:
                del self._ranks[name]
        for rank in self.doubled:
            self._quote(self._second_starts[rank])
        if self._root is not None:
            self._place_root(self._root)

    def _place_root(self, root: LogRank) -> None:
        """The root cause stands last in a table of failures, and was observed first."""
        at = (log_rank.code_at for log_rank in self._ranks.values() if log_rank.code_at)
        root.code_at = min(at, default=1) - 1 or -1
        for log_rank in self._ranks.values():
            log_rank.follows = log_rank is not root and root.code is not None

    def _summary(self, line: Line) -> bool:
        """A row of torchelastic's table of failures, or several in one line; False where it is none."""
        rows = (exit_lines.ROOT_CAUSE, exit_lines.SUMMARY_RANK, exit_lines.SUMMARY_EXIT)
        cells = [(row, match) for row in rows for match in row.matches(line.text)]
        for row, match in sorted(cells, key=lambda cell: cell[1].start()):
            if row is exit_lines.ROOT_CAUSE:
                self._root_next = True
            elif row is exit_lines.SUMMARY_RANK:
                self._in_summary[line.writer] = self._failed_first(line, match)
            elif (log_rank := self._in_summary.get(line.writer)) is not None:
                log_rank.ended(line, int(match["code"]))
                log_rank.pid = int(match["pid"])
        return bool(cells)

    def _failed_first(self, line: Line, match: re.Match[str]) -> LogRank:
        """The rank that a table of failures names; below `Root Cause` it is the first to have failed."""
        log_rank = self._ranks.of(int(match["rank"]))
        log_rank.local_rank = int(match["local"])
        if self._root_next and not log_rank.died:
            log_rank.died, log_rank.code_at = True, log_rank.code_at or line.number
        self._root = log_rank if self._root_next else self._root
        self._root_next = False
        self._writers.note(line.writer, int(match["rank"]))
        return log_rank

    def _tasks(self, line: Line, match: re.Match[str]) -> None:
        """How tasks of Slurm have ended."""
        tasks, for_memory = numbers(match["tasks"]), match["how"] == "Out Of Memory"
        self.memory_kills += for_memory * len(tasks)
        for rank in tasks:
            log_rank = self._ranks.of(rank)
            log_rank.ended(line, int(match["code"]) if match["code"] else -SIGNALS[match["how"]])
            log_rank.for_memory |= for_memory

    def _killed(self, line: Line, number: int) -> None:
        """Processes have been killed for memory."""
        self.memory_kills += number
        self.killed_at = self.killed_at or line.number
        self._quote(line)

    def _by_launcher(self, line: Line) -> bool:
        """What has started a process tells how it has ended, or its rank; False where it does not."""
        if match := exit_lines.RANK_ENDED.search(line.text):
            self._rank_ended(line, match)
        elif match := exit_lines.MPI_RANK.search(line.text):
            self._mpi_rank = int(match["rank"] or match["number"] or match["named"])
        elif (match := exit_lines.MPI_SIGNAL.search(line.text)) and self._mpi_rank is not None:
            self._ranks.of(self._mpi_rank).ended(line, -int(match["number"]))
        elif (match := exit_lines.MPI_EXIT.search(line.text)) and self._mpi_rank is not None:
            self._ranks.of(self._mpi_rank).ended(line, int(match["code"]))
        elif match := line_heads.WORLD_RANK.search(line.text):
            self._writers.note(f"{match['pid']}@{match['ip']}", int(match["rank"]))
        elif match := exit_lines.POD_ENDED.search(line.text):
            code = int(match["code"] or match["exit"])
            log_rank = self._ranks.of(f"{match['pod'] or match['ended']} ")
            log_rank.ended(line, _FROM_SHELL - code if code > _FROM_SHELL else code)
        else:
            return False
        return True

    def _rank_ended(self, line: Line, match: re.Match[str]) -> None:
        """A launcher tells how a rank has ended, or a process without a rank."""
        labels = (match[name] for name in ("rank", "worker", "train", "task", "index", "mpi"))
        rank = next(filter(None, labels), None)
        code = match["code"] or match["returned"] or match["exit"]
        name, number = match["signal"] or match["died"], match["number"]
        by_signal = -signal.Signals[name] if name else -int(number) if number else None
        # Whose end a launcher tells is not the launcher: it has a name of its own.
        log_rank = self._ranks.of(int(rank) if rank else f"{line.writer} ")
        log_rank.ended(line, int(code) if code else by_signal)

    def _by_signal(self, line: Line) -> None:
        """A process, or the shell or the library around it, tells of the signal that ends it."""
        if match := kill_lines.SIGNAL_BLOCK.search(line.text):
            self._ranks.of(line.speaker).ended(line, -SIGNALS[match["how"]])
        elif match := kill_lines.SIGNAL_HANDLER.search(line.text):
            log_rank = self._ranks.of(line.speaker)
            log_rank.pid = int(match["pid"])
            log_rank.ended(line, -signal.Signals[match["name"]])
        elif failure_lines.TERMINATED.search(line.text):
            self._aborted = self._ranks.of(line.speaker)
            self._aborted.ended(line, -signal.SIGABRT)
        elif (
            failure_lines.WHAT.search(line.text)
            and watchdog_lines.LATE.search(line.text)
            and self._aborted
        ):
            self._aborted.code = None  # by a watchdog, whose operation has taken too long
        elif exit_lines.SOME_ENDED.search(line.text):
            self._quits = self._quits or exit_lines.QUITS.search(line.text) is not None
            self._ranks.of(line.writer).ended(line, None)
        elif match := exit_lines.CRASHED.search(line.text):
            how = match["fatal"] or match["how"].capitalize()
            if not (self._quits and how == "Killed"):
                self._ranks.of(line.speaker).ended(line, -SIGNALS[how])
