"""The log of a job, its ranks mixed -> what each of them has said of itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from ..beacon.record import Error
from ..model.facts import CUT_OFF, EXTENSION, ErrorView, LockWait
from ..observe.account import Account
from . import baton
from .exception_lines import ExceptionLines, is_assertion
from .log_rank import INTERRUPTED, KIND, LogRank, LogRanks, account, error
from .patterns import PATTERNS, failure_lines, kill_lines, watchdog_lines
from .process_ends import ProcessEnds
from .raising import LONGEST
from .store_barrier import StoreBarrier
from .watchdog import Watchdog
from .writers import Line, Writers, numbers

WARNINGS = 5
"""Warnings of NCCL's that are kept: what follows from the first is warned of as well."""

ENOUGH = 20
"""Letters of a message that ends within it, by which it is known."""

_SIGNALLED = {"2": "SIGINT", "15": "SIGTERM", "1": "SIGHUP", "9": "SIGKILL"}

_OUTSIDE = {
    "slurm": "Slurm ended the job ({})",
    "signal": "the launcher was ended from outside by signal {}",
    "death": "the launcher was ended from outside by {}",
    "pbs": "PBS ended the job at its limit of time",
    "lsf": "LSF ended the job at its limit of time",
    "reason": "Kubernetes ended the pod ({})",
    "evicted": "Kubernetes evicted the pod: its node was {}",
    "state": "Slurm ended the job ({})",
    "job": "Slurm ended the job ({})",
    "shell": "somebody ended the command ({})",
    "node": "Slurm ended the job (node {})",
    "canceled": "the runner of the workflow ended the job",
    "gitlab": "the runner ended the job, which took longer than {}",
    "timeout": "`timeout` ended the job by {}",
    "deadline": "Kubernetes ended the job at its deadline",
    "spot": "the machine was taken away ({})",
    "mpi": "mpirun ended the job (its {})",
    "mail": "the scheduler ended the job ({})",
    "main": "the launcher was ended from outside by {}",
}
"""Who has ended a job, by the group of `kill_lines.ENDED_FROM_OUTSIDE`."""

FATAL_WARNINGS = re.compile(
    r"has already checked in|Mismatched collective|Connect to \S+<\d+> (?:failed|returned)"
    r"|no socket interface|Connection closed by|Broken pipe|Connection reset|Cuda failure|Failed to CUDA"
    r"|Call to ibv_\w+ failed"
)
"""Warnings of NCCL's after which a job cannot go on, and which no exception may follow."""

_SEVERAL = (
    "torch.distributed",
    "torch/distributed",
    "NCCL",
    "srun",
    "world_size",
    "nproc",
)
"""Texts of a log to which several processes may have written."""

_BROKEN = re.compile(
    r"WorkNCCL\([^)]*$|ast enqueued(?!.*last completed (?:NCCL )?work: -?\d+)[^.]*$"
    r"|[Cc]aught collective operation timeout(?!.* before timing out)"
)
"""The end of a line that goes on in the next one: a terminal has broken it."""

_HEAD = re.compile(
    r"^\[[EWIF]\d{3,4} |^\[[EWIF] |^\[\d{4}-|^\d{4}-\d\d-\d\d|^[EWIF]\d{4} |^\s\s|^$"
    r"|^(?:Traceback|Exception raised|frame #|terminate called|\w*(?:Error|Exception): )"
)
"""How a line begins that goes on with no other."""

_KNOWN = re.compile(
    "|".join(dict.fromkeys(re.escape(needle) for row in PATTERNS.values() for needle in row.needles))
)
"""What every line has that a pattern takes apart."""

OF_TRACEBACKS = (
    *(b"Traceback (most recent call last)", b"Error: ", b"Exception: ", b"Interrupt", b'  File "'),
    *(b'  File \\"', b"py_callstack", b"Error\n", b"Exception\n"),
)
"""Texts of which every line has one that begins or names an exception."""

_NEEDLES = dict.fromkeys(needle.encode() for row in PATTERNS.values() for needle in row.needles)

NEEDLES = tuple(
    needle for needle in _NEEDLES if not any(part != needle and part in needle for part in _NEEDLES)
)
"""Texts of which every other line that matters has one; none of them has another one in it."""


class Log:
    """A log as it is read.

    Args:
        writers: of its lines.
    """

    def __init__(self, writers: Writers) -> None:
        self._writers = writers
        self._broken: Line | None = None
        self._barrier = StoreBarrier()
        self._outside: tuple[int, str] | None = None
        self._quotes: dict[int, str] = {}
        self._warned: dict[str, None] = {}
        self._ranks = LogRanks()
        self._watchdog = Watchdog(self._ranks)
        self._exceptions = ExceptionLines(self._ranks, writers)
        self._ends = ProcessEnds(self._ranks, writers, self._quote)
        self._several = False
        self._last = 0
        self._cancelled: Line | None = None
        self._absent: set[int] = set()
        self._stalled = False
        self._ready: list[frozenset[int]] = []

    def take(self, line: Line) -> None:
        """The next line."""
        broken, self._broken = self._broken, None
        if broken is not None and self._continues(broken, line):
            line = broken._replace(text=_joined(broken.text, line.text))
        elif broken is not None:
            self._note(broken)
        if _BROKEN.search(line.text) and len(line.text) < LONGEST:
            self._broken = line
        else:
            self._note(line)

    def _continues(self, broken: Line, line: Line) -> bool:
        """True for a line that may be the rest of one: nothing shows that another has written it."""
        bare = not line.writer and line.rank is None
        same = (line.writer, line.rank) == (broken.writer, broken.rank)
        return (bare or same) and _HEAD.match(line.text) is None

    def _note(self, line: Line) -> None:
        self._last = line.number if line.text.strip() else self._last
        self._several = self._several or any(text in line.text for text in _SEVERAL)
        self._barrier.take(line)
        has_needle = self._stalled or _KNOWN.search(line.text) is not None
        if has_needle and line.text.strip():
            self._watchdog.take(line)
            self._stall(line)
            if not self._of_devices(line):
                self._ends.take(line)
            self._from_outside(line)
        self._exceptions.take(line, has_needle=has_needle)

    @property
    def settled(self) -> bool:
        """True once a process has died, and has raised so often that no more of it is kept."""
        return any(log_rank.full and log_rank.death is not None for log_rank in self._ranks.values())

    @property
    def listens(self) -> bool:
        """True while any next line may matter; else one with none of the `NEEDLES` does not."""
        return self._broken is not None or any(log_rank.listens for log_rank in self._ranks.values())

    @property
    def outlived(self) -> frozenset[int]:
        """Numbers of the lines that name exceptions which their processes have outlived."""
        raised = (raising for log_rank in self._ranks.values() for raising in log_rank.raised)
        return frozenset(raising.named_at for raising in raised if raising.outlived or raising.nonfatal)

    def accounts(self, path: str) -> Iterator[Account]:
        """What each rank has said of itself."""
        if self._broken is not None:
            self._note(self._broken)
        self._place_writers()
        self._place_waiting()
        self._forget_assertions()
        self._watchdog.find_groups()
        self._watchdog.name_operations()
        self._ends.place()
        self._place_exception()
        yield from self._waits_for_builds(path)
        self._cancellation()
        self._interruptions()
        self._complete()
        self._cut_off()
        masked = (*self._attempts_before(), *self._of_launchers(), *self._consequences())
        job = Account(
            file=path,
            kind=KIND,
            memory_kills=self._ends.memory_kills,
            warned=tuple(self._warned),
            masked=masked,
            absent=tuple(sorted(self._absent | self._unready())),
            doubled=self._ends.doubled,
            ended_by=self._outside[1] if self._outside is not None else "",
        )
        if job != Account(file=path, kind=KIND):
            yield replace(job, quotes=tuple(self._quotes.items()))
        for rank, log_rank in self._ranks.items():
            rank_account = account(rank, log_rank, self._watchdog.names, path)
            if isinstance(rank, int) or rank_account.has_failed or rank_account.timed_out:
                yield rank_account

    def _unready(self) -> set[int]:
        """The ranks that lists of those which are ready lack."""
        ranks = range(max((max(ready) for ready in self._ready), default=0))
        return {rank for ready in self._ready for rank in ranks if rank not in ready}

    def _place_waiting(self) -> None:
        """The ranks that wait for others to join."""
        deaths = [log_rank.death for log_rank in self._ranks.values()]
        for rank, line in self._barrier.stuck(deaths).items():
            log_rank = self._ranks.of(rank)
            log_rank.world_size, log_rank.joins = self._barrier.world, True
            log_rank.quote(line)

    def _forget_assertions(self) -> None:
        """What a kernel has found wrong, where the exceptions that follow from it are in the log."""
        raised = [raising for log_rank in self._ranks.values() for raising in log_rank.raised]
        if not all(map(is_assertion, raised)):
            for log_rank in self._ranks.values():
                log_rank.raised = [raising for raising in log_rank.raised if not is_assertion(raising)]

    def _waits_for_builds(self, path: str) -> Iterator[Account]:
        """Ranks that were ended in the wait for the lock of a build: that is no failure of theirs."""
        waiting = baton.waiting(self._ranks.values())
        for rank, log_rank in self._ranks.items():
            if any(log_rank is waiter for waiter in waiting):
                number = rank if isinstance(rank, int) else None
                wait = LockWait(EXTENSION, interrupted=True)
                quotes = tuple(sorted(log_rank.quoted.items()))
                log_rank.raised.clear()
                yield Account(file=path, kind=KIND, rank=number, lock=wait, quotes=quotes)

    def _interruptions(self) -> None:
        """Exceptions by which somebody has ended a process from outside are no failures of it."""
        for log_rank in self._ranks.values():
            raised = error(log_rank)
            if raised is not None and raised["type"] in INTERRUPTED and log_rank.death is not None:
                begins = log_rank.death.begins
                if self._outside is None or begins < self._outside[0]:
                    by = "Ctrl-C" if raised["type"] == INTERRUPTED[0] else raised["message"]
                    self._outside = begins, f"the job was ended from outside ({by})"
                    self._quotes[log_rank.death.named_at or begins] = log_rank.death.raw

    def _cancellation(self) -> None:
        """Slurm cancels without a reason what somebody has ended, unless a task had failed."""
        failed = any((t.code or 0) > 0 or t.for_memory or t.death for t in self._ranks.values())
        well = not failed and not self._ends.memory_kills
        if self._cancelled is not None and self._outside is None and well:
            self._outside = self._cancelled.number, "the job was cancelled (`scancel`)"
            self._quote(self._cancelled)

    def _complete(self) -> None:
        """The last line of a log may end inside a message that another rank has raised, too."""
        for cut in self._ranks.values():
            death = cut.death
            if death is None or death.named_at != self._last:
                continue
            begun = error(cut)
            for raised in filter(None, map(error, self._ranks.values())):
                if begun is not None and _is_begun(begun, raised):
                    death.logged = ErrorView(raised["type"], raised["message"])

    def _cut_off(self) -> None:
        """An exception whose message is not in the log counts where nothing else tells of an end."""
        cut_off = [
            log_rank
            for log_rank in self._ranks.values()
            if (raised := error(log_rank)) and raised["type"] == CUT_OFF
        ]
        uncut = (t for t in self._ranks.values() if t not in cut_off and not t.is_launcher)
        ends = [log_rank for log_rank in self._ranks.values() if log_rank.code is not None]
        if ends or self._ends.memory_kills or any(map(error, uncut)):
            for log_rank in cut_off:
                log_rank.raised.clear()

    def _attempts_before(self) -> Iterator[str]:
        """Failures after which all ranks were started again, where nothing has failed since."""
        failed = [
            (rank, log_rank, log_rank.death) for rank, log_rank in self._ranks.items() if log_rank.death
        ]
        ends = [
            log_rank.code_at
            for log_rank in self._ranks.values()
            if log_rank.code is not None or log_rank.died
        ]
        newest = max((*(log_rank.raised[-1].begins for _, log_rank, _ in failed), *ends), default=0)
        if not self._ends.restarted_at or newest >= self._ends.restarted_at:
            return
        for rank, log_rank, death in failed:
            raised = death.error()
            if raised is not None and isinstance(rank, int):
                yield f"{raised.text} (rank {rank}, in an attempt before)"
            log_rank.raised.clear()
        for log_rank in self._ranks.values():
            log_rank.code, log_rank.died = None, False

    def _of_launchers(self) -> Iterator[str]:
        """What launchers have raised, which follows from the end of a rank where one is told."""
        launchers = [log_rank for log_rank in self._ranks.values() if log_rank.is_launcher]
        workers = [log_rank for log_rank in self._ranks.values() if log_rank not in launchers]
        if not any(log_rank.code or log_rank.died or log_rank.death is not None for log_rank in workers):
            return
        for log_rank in launchers:
            raised = error(log_rank)
            log_rank.raised.clear()
            if raised is not None:
                yield f"{raised['type']}: {raised['message']}".rstrip(": ") + " (the launcher)"

    def _consequences(self) -> Iterator[str]:
        """What follows from a timeout, or from an end from outside, that stands before it in the log.

        Yields:
            What each exception says that counts no longer.
        """
        begun = [log_rank.late_at for log_rank in self._ranks.values() if log_rank.late_at]
        begun += [self._outside[0]] if self._outside is not None else []
        stopped = min(begun, default=math.inf)
        first = min(stopped, self._ends.killed_at or math.inf)
        for rank, log_rank in self._ranks.items():
            raised = error(log_rank)
            if raised is not None and log_rank.death is not None and log_rank.death.begins >= first:
                who = f"rank {rank}" if isinstance(rank, int) else "a process"
                if log_rank.death.begins > first and " " not in raised["type"]:
                    yield f"{raised['type']}: {raised['message'].partition(chr(10))[0]} ({who})"
                log_rank.raised.clear()
            if log_rank.code_at > stopped and not log_rank.for_memory:
                log_rank.code, log_rank.died = None, False

    def _stall(self, line: Line) -> None:
        """The ranks for which others wait, as Horovod tells them."""
        text = line.text
        listed = watchdog_lines.STALLED_RANK.search(text) if self._stalled else None
        absent = watchdog_lines.ABSENT.search(text) or listed
        self._stalled = watchdog_lines.STALLED.search(text) is not None or (
            self._stalled and absent is not None
        )
        if absent is not None:
            self._absent |= {*numbers(absent.groupdict().get("ranks") or absent["rank"])}
            self._quote(line)
        for ready in watchdog_lines.READY.matches(text):
            self._ready.append(frozenset(numbers(ready["ranks"])))
            for rank in self._ready[-1]:
                self._waits(rank, line)
        if no_progress := watchdog_lines.NO_PROGRESS.search(text):
            self._waits(int(no_progress["rank"]) if no_progress["rank"] else line.speaker, line)

    def _waits(self, rank: int | str, line: Line) -> None:
        """A rank has waited for longer than a library expects."""
        log_rank = self._ranks.of(rank)
        log_rank.late_at = log_rank.late_at or line.number
        log_rank.quote(line)

    def _of_devices(self, line: Line) -> bool:
        """What NCCL, or the driver, warns of; False where none of them speaks."""
        if match := failure_lines.NCCL_WARN.search(line.text):
            self._warning(line, match)
        elif match := kill_lines.XID.search(line.text):
            self._ranks.of(match["device"]).log(line, "Xid", match["said"])
        return match is not None

    def _warning(self, line: Line, match: re.Match[str]) -> None:
        process = f"{match['pid']}@{match['host']}" if match["pid"] else line.writer
        who = f"process {match['pid']} on {match['host']}" if match["pid"] else "a process"
        who = who if line.rank is None else f"rank {line.rank}"
        if len(self._warned) < WARNINGS:
            self._warned[f"{who}: NCCL WARN {match['said']}"] = None
            self._quote(line)
        if FATAL_WARNINGS.search(match["said"]):
            log_rank = self._ranks.of(line.rank if line.rank is not None else process)
            log_rank.host = match["host"] or log_rank.host
            if not log_rank.raised:
                log_rank.log(line, "NCCL WARN", match["said"])

    def _from_outside(self, line: Line) -> None:
        """Somebody has ended the job, whose ranks were well."""
        if kill_lines.CANCELLED.search(line.text):
            self._cancelled = self._cancelled or line
        match = kill_lines.ENDED_FROM_OUTSIDE.search(line.text) if self._outside is None else None
        if match is not None and match.lastgroup is not None:
            reason = match[match.lastgroup].strip()
            reason = _SIGNALLED.get(reason, reason).removeprefix("Signals.")
            words = reason if reason.startswith("SIG") else reason.lower().replace("_", " ")
            self._outside = line.number, _OUTSIDE[match.lastgroup].format(words)
            self._quote(line)

    def _quote(self, line: Line) -> None:
        if len(self._quotes) < WARNINGS:
            self._quotes[line.number] = line.raw

    def _place_writers(self) -> None:
        """Which ranks those are that only a label names."""
        locals_ = {
            rank: log_rank.local_rank
            for rank, log_rank in self._ranks.items()
            if isinstance(rank, int) and log_rank.local_rank is not None
        }
        names = [name for name, log_rank in self._ranks.items() if isinstance(name, str)]
        for name in [name for name in names if not self._ranks[name].is_launcher]:
            rank = self._writers.rank(name, locals_)
            if rank is not None:
                duplicate, log_rank = self._ranks.pop(name), self._ranks.of(rank)
                log_rank.raised = sorted(
                    [*log_rank.raised, *duplicate.raised], key=lambda raising: raising.begins
                )
                log_rank.quotes |= duplicate.quotes
                log_rank.code = duplicate.code if log_rank.code is None else log_rank.code

    def _place_exception(self) -> None:
        """Whose exception it is that nobody's name stands at: of the only process that has failed.

        A process that says the same as a rank is that rank. Of a log to which several processes have
        written without their names, nothing tells that the one which has raised is the one that goes on.
        """
        by_message = {
            _message(log_rank): rank for rank, log_rank in self._ranks.items() if isinstance(rank, int)
        }
        nameless = self._nameless()
        if len(self._ranks) > 1 or self._several or self._ends.by_local_rank:
            for name in nameless:
                for raising in self._ranks[name].raised:
                    raising.outlived = False
        nameless = [name for name in nameless if not self._merge(name, by_message)]
        if not nameless:
            return
        ended = [log_rank for log_rank in self._ranks.values() if log_rank.code is not None]
        failed = [log_rank for log_rank in ended if (log_rank.code or 0) > 0 and not log_rank.raised]
        if len(nameless) == len(failed) == len(ended) == 1:
            failed[0].raised = self._ranks.pop(nameless[0]).raised
            return
        for log_rank in failed:
            log_rank.follows = True  # some of them have raised it

    def _nameless(self) -> list[str]:
        """Writers without a rank that have raised something, and are no launchers."""
        return [
            name
            for name, log_rank in self._ranks.items()
            if isinstance(name, str) and log_rank.raised and not log_rank.is_launcher
        ]

    def _merge(self, name: str, by_message: Mapping[str, int]) -> bool:
        """Make a process that says the same as a rank that rank; False where no rank does."""
        message = _message(self._ranks[name])
        rank = by_message.get(message) if message else None
        if rank is not None:
            duplicate = self._ranks.pop(name)
            self._ranks[rank].raised = [*duplicate.raised, *self._ranks[rank].raised]
        return rank is not None


def _joined(begin: str, rest: str) -> str:
    """A line that was broken; a blank at its end is one of it, several are padding."""
    bare = begin.rstrip()
    between = " " if bare.endswith((",", ":")) or begin == f"{bare} " else ""
    return bare + between + rest


def _is_begun(part: Error, whole: Error) -> bool:
    """True for an exception of which the message ends where that of another one goes on."""
    longer = len(whole["message"]) > len(part["message"]) > ENOUGH
    return longer and part["type"] == whole["type"] and whole["message"].startswith(part["message"])


def _message(log_rank: LogRank) -> str:
    """The first line of what a process has raised; empty for nothing."""
    raised = error(log_rank)
    return raised["message"].partition("\n")[0] if raised is not None else ""
