"""The exceptions that processes print, or that libraries log of them, line by line."""

from __future__ import annotations

import re

from ..observe import tracebacks
from ..observe.tracebacks import TRACEBACK
from .log_rank import LogRank, LogRanks
from .patterns import exit_lines, failure_lines, watchdog_lines
from .raising import RAISED, Raising
from .rich_box import BOX, RichBox
from .watchdog import speaker
from .writers import Line, Writers

WRITERS = 4096
"""Processes of which lines without an event are remembered."""

_SPEAKERS = (
    failure_lines.GAVE_UP,
    failure_lines.REACHED,
    watchdog_lines.CONNECTS,
    failure_lines.OF_PROCESS,
)
"""Messages that tell which rank has failed."""

DETAILS = (
    failure_lines.DUPLICATE_GPU,
    failure_lines.FINGERPRINTS,
    failure_lines.REDUCER,
    failure_lines.SHAPES,
    failure_lines.UNANSWERED,
    failure_lines.CANN_REASON,
)
"""Messages of several lines: these say what it is, whatever the first one says."""

_OF_ACTOR = re.compile(r"\b(?:ActorDiedError|RayActorError|WorkerCrashedError): ")
"""Exceptions of Ray's that say which process has died."""

_BY_LAUNCHER = re.compile(
    r"^(?:srun|slurmstepd|mpirun|mpiexec|prterun|orterun|pdsh@\S+): |^[A-Z]+:torch\.distributed\.elastic"
    r"|^\[\d{4}-[^\]]*\] torch\.distributed\.elastic|^[EWI]\d{4} .*torch/distributed/elastic"
)
"""A line of a launcher's own, wherever it stands."""

FRAME_INDENT = 2
"""Blanks before a frame of a traceback (Python's Lib/traceback.py)."""

PREFIX = 60
"""Letters that may stand before what a process says."""

_LOGGED = {
    failure_lines.GAVE_UP: "RuntimeError",
    failure_lines.REACHED: "RuntimeError",
    failure_lines.BIND: "DistNetworkError",
    failure_lines.WATCHDOG_ENDS: "NCCL",
    failure_lines.UNCONNECTED: "Gloo",
    failure_lines.UNREACHED: "DistNetworkError",
    failure_lines.WHAT: "exception",
    failure_lines.KERNEL_ASSERTION: "CUDA",
    failure_lines.CHILDS_MESSAGE: "",
    failure_lines.FINGERPRINTS: "RuntimeError",
    failure_lines.DUPLICATE_GPU: "DistBackendError",
    failure_lines.REDUCER: "RuntimeError",
    failure_lines.AMD_FAULT: "ROCm",
    failure_lines.GPU_MEMORY: "OutOfMemoryError",
    failure_lines.IN_USE: "OSError",
    failure_lines.HCCL_LISTEN: "HCCL",
    failure_lines.WORKER_BUS_ERROR: "RuntimeError",
    failure_lines.XLA_DEVICE: "RuntimeError",
    failure_lines.UNHANDLED: "exception",
}
"""Messages that are logged as well as raised, and as what; empty: the message begins with it."""

_FRAME = re.compile(r' +File ".+", line \d+, in ')
"""A line of a traceback, of which the log may not have the first."""


class ExceptionLines:
    """The exceptions of each process, as their lines come.

    Args:
        ranks: of the log, to which they are added; writers: of its lines.
    """

    def __init__(self, ranks: LogRanks, writers: Writers) -> None:
        self._ranks = ranks
        self._writers = writers
        self._spawned: dict[str, int] = {}
        self._boxes: dict[int | str, RichBox] = {}

    def take(self, line: Line, *, has_needle: bool) -> None:
        """The lines of each process from its first traceback on, or of what the log has of it.

        Args:
            has_needle: whether the line may be one of those that patterns take apart.
        """
        if _BY_LAUNCHER.match(line.text):
            return
        unboxed = self._unboxed(line)
        if unboxed is None:
            return
        line = unboxed
        text, logged = _logged(line.text) if has_needle else (line.text, False)
        rank = self._author(line, text) if has_needle else self._rank_or_writer(line)
        raised = RAISED.search(text)
        if raised is not None and raised.start("type") < PREFIX:
            text = text[raised.start("type") :]
        if rank not in self._ranks and len(self._ranks) >= WRITERS:
            return
        log_rank = self._ranks.of(rank)
        text = _within(log_rank, text)
        names_exception = raised is not None or (log_rank.indented and tracebacks.names_exception(text))
        if _begins(log_rank, text, logged or names_exception):
            _begin(log_rank, line, text)
        else:
            log_rank.hear(line, text)
        if log_rank.raised and has_needle:
            _add_details(log_rank.raised[-1], text)

    def _unboxed(self, line: Line) -> Line | None:
        """A line without the box that rich draws; None for a line of the box alone."""
        if line.text[:1] not in BOX:
            return line
        text = self._boxes.setdefault(line.speaker, RichBox()).unboxed(line.text)
        return line._replace(text=text) if text is not None else None

    def _rank_or_writer(self, line: Line) -> int | str:
        """The rank that a line is labelled with, or that its writer was started as, else the writer."""
        return line.rank if line.rank is not None else self._spawned.get(line.writer, line.writer)

    def _author(self, line: Line, text: str) -> int | str:
        """The rank of which a line tells, else its writer.

        Args:
            text: of the line, as an exception.
        """
        if (match := failure_lines.STORE_BARRIER.search(text)) and not match["waits"]:
            number = int(match["rank"])
            self._writers.note(line.writer, number)
            self._ranks.of(number).world_size = int(match["world"])
            return number
        if match := exit_lines.SPAWNED.search(text):
            self._spawned[line.writer] = int(match["rank"])
        if line.writer in self._spawned:
            return self._spawned[line.writer]
        if line.rank is not None:
            return line.rank
        match = next(filter(None, (row.search(line.text) for row in _SPEAKERS)), None)
        rank = (
            int(match["rank"]) if match is not None else speaker(line, watchdog_lines.GROUP.search(text))
        )
        return line.writer if rank is None else rank


def _within(log_rank: LogRank, text: str) -> str:
    """A line without the blanks that stand before all lines of its traceback, as where it was pasted."""
    blanks = len(text) - len(text.lstrip())
    if text.endswith(TRACEBACK):
        log_rank.margin = blanks
    elif not log_rank.raised and _FRAME.match(text):
        log_rank.margin = max(0, blanks - FRAME_INDENT)
    return text if text[: log_rank.margin].strip() else text[log_rank.margin :]


def _begin(log_rank: LogRank, line: Line, text: str) -> None:
    """The first line that a log has of an exception, which may say what it is."""
    log_rank.begin(line, *((text,) if text.endswith(TRACEBACK) else (TRACEBACK, text)))
    if log_rank.raised and (before := failure_lines.VLLM_WORKER.search(text)):
        log_rank.raised[-1].message = before["said"]


def _add_details(newest: Raising, text: str) -> None:
    """What the line after an exception, or of it, says besides its first message."""
    # What a parent says of the end of a child is no failure of its own.
    newest.nonfatal |= newest.since <= 1 and exit_lines.RANK_ENDED.search(text) is not None
    for match in filter(None, (row.search(text) for row in DETAILS)):
        newest.details[match["said"]] = None
    lost = exit_lines.LOST_ACTOR.search(text) if _OF_ACTOR.search(newest.raw) else None
    if lost is not None and newest.open:
        newest.details[lost["about"] or lost["how"] or lost["why"]] = None


def is_assertion(raised: Raising) -> bool:
    """True for an assertion of a kernel."""
    return any(line.startswith("CUDA: Assertion") for line in raised.lines[:2])


def _logged(text: str) -> tuple[str, bool]:
    """A line as the last one of a traceback, and whether a library has logged it as an error."""
    for row, kind in _LOGGED.items():
        if match := row.search(text):
            return (f"{kind}: {match['said']}" if kind else match["said"]), True
    return text, False


def _begins(log_rank: LogRank, text: str, names_exception: bool) -> bool:
    """True for the first line that a log has of an exception.

    Args:
        names_exception: whether it names one.
    """
    whole = text.endswith(TRACEBACK)
    if not log_rank.raised:
        return whole or names_exception or _FRAME.match(text) is not None
    newest = log_rank.raised[-1]
    return whole and bool(newest.since) and not newest.chained
