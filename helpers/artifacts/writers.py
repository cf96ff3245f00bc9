"""Who has written each line of a log that many processes share, as the labels before it tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..observe import tracebacks
from .patterns import line_heads
from .patterns.pattern import Pattern

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_QUOTED = re.compile(r"(?:> ?)+(?=\S| )|\*\*(?=[^*]+\*\*\s*$)")
_EMPHASIS = re.compile(r"(?<=[^*])\*\*\s*$")
_TICKS = re.compile(r"(?: (?=`))?(?P<blanks>\s*)`(?P<text>[^`]+)`?\s*$|(?P<whole>[^`]+)`\s*$")
"""What Markdown has around the lines of a text that somebody has pasted."""

_MPI_INSIDE = re.compile(r"\[\d+,\d+\]<std(?:out|err|diag)>:")
"""The label of `mpirun`, which it writes before each piece that a process has written."""

HEAD = 16
"""Letters of the beginning of a line by which its label is known."""

_DIGITS = str.maketrans("123456789", "000000000")

_SAYS = re.compile(
    r"Traceback \(most recent|\[rank\d|\[[A-Za-z_]\w*\d+\]:|\[[EFW][\d ]|  File \"|[\w.]*Error: "
    r"|\[\d{4}-[\d-]+ [\d:.]+: [EFIW] |Initializing distributed: GLOBAL_RANK"
)
"""What a number and a colon are a label before, not a part of."""

_INSIDE = re.compile(
    r'(?P<label>[^\s%][^%"]{0,100}?)(?:  File ".+", line \d+,? in|\[[EWIF]\d{3,4} [\d:.]+ )'
)
"""A text before a line of a traceback, or of torch's own log: a label, whoever has set it."""

_TIME = re.compile(r"\d{1,4}[-/]\d\d?[-/]\d{1,4}|\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?Z?")
"""A day or a time, which a label may have and which differs from line to line."""

_NO_NAME = re.compile(
    _TIME.pattern + r"|(?<!\S)\d\d-\d\d(?!\S)"
    r"|\b(?:ERROR|WARNING|WARN|INFO|DEBUG|CRITICAL|FATAL)\b|\[?[\w./-]+\.py:\d+\]?"
    r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b(?: +\d+\b)?"
)
"""What a label has that is no name: a time, a level, a place in a source."""

_RANK = re.compile(r"\brank=(\d+)")

BEFORE = 60
"""Letters that a collector may have put before the label of a launcher."""

LABELS = 8
"""Kinds of labels that are learned from one log."""


class Line(NamedTuple):
    """A line without its labels.

    Attributes:
        writer: a name for the process, or for the processes, that have written it; empty where
            nothing tells.
        rank: of the job, where the line itself tells it.
        number: of the line in its file, from 1; raw: what stands there.
    """

    writer: str
    rank: int | None
    text: str
    number: int = 0
    raw: str = ""

    @property
    def speaker(self) -> int | str:
        """The rank that has written it, else the name of its writer."""
        return self.writer if self.rank is None else self.rank


class _Head:
    """What launchers and collectors have put before the text of a line, taken off piece by piece.

    Attributes:
        rest: of the line; labels: of its writer; rank: that it tells.
        local: a number of the writer on its machine or in its step, and of which kind it is.
    """

    def __init__(self, rest: str, source: str, rank: int | None) -> None:
        self.rest, self.rank = rest, rank
        self.labels = [source] if source else []
        self.local: tuple[str, int] | None = None

    def take(self, prefix: Pattern) -> re.Match[str] | None:
        """Take a prefix off, where it stands there."""
        match = prefix.search(self.rest)
        if match is not None:
            self.rest = self.rest[match.end() :]
        return match

    def numbered(self, kind: str, match: re.Match[str]) -> None:
        """Its writer has a number of a kind."""
        self.local = (kind, int(match["number"]))
        self.labels.append("{} {}".format(*self.local))

    def take_pod(self) -> None:
        """The name of a pod."""
        if match := self.take(line_heads.POD):
            self.labels.append(match["writer"])

    def take_mpi(self) -> None:
        """mpirun's tag, which may stand again inside a line, where another one was written into it."""
        inside = _MPI_INSIDE.search(self.rest)
        if inside is not None and inside.start() <= BEFORE:
            self.rest = inside[0] + _MPI_INSIDE.sub("", self.rest[inside.end() :])
        if match := self.take(line_heads.MPI):
            self.rank = int(match["rank"])
            self.labels.append(f"mpi {self.rank}")

    def take_actor(self) -> None:
        """Ray's name of an actor, with its rank, if it tells that."""
        if match := self.take(line_heads.ACTOR):
            self.labels.append(f"{match['pid']}@{match['ip'] or ''}")
            rank = _RANK.search(match["more"])
            self.rank = int(rank[1]) if rank is not None else None

    def take_place(self) -> None:
        """A server's own label."""
        match = line_heads.PLACE.search(self.rest)
        if match is not None and match["place"]:
            self.rest = self.rest[match.end() :]
            self.labels.append(match["place"].strip())
            if self.labels[-1] == f"TP{match['tensor']}" and self.rank is None:
                self.rank = int(match["tensor"])

    def take_tee(self) -> None:
        """torchrun's local rank."""
        if match := self.take(line_heads.TEE):
            self.numbered("local", match)

    def take_tags(self) -> None:
        """A rank that the process, or its launcher, has written."""
        for tag in (line_heads.RANK, line_heads.TAGGED):
            if self.rank is None and (match := self.take(tag)):
                self.rank = int(match["rank"])


class Writers:
    """The writers of a log as it is read.

    Args:
        home: the rank that the name of the file tells: of every line without a label.
    """

    def __init__(self, home: int | None = None) -> None:
        self._home = home
        self._tasks = False
        self._prepended = False
        self._record: _Head | None = None
        self._learned: dict[str, re.Pattern[str]] = {}
        self._ranks: dict[str, set[int]] = {}
        self._numbers: dict[str, tuple[str, int]] = {}

    def line(
        self, line: str, number: int = 0, source: str = "", raw: str = "", rank: int | None = None
    ) -> Line:
        """The next line.

        Args:
            number: of it in its file; raw: what stands there, if it is not the line itself.
            source, rank: what wrote it, as a collector tells.
        """
        head = _Head(_without_markdown(_COLOURS.sub("", line)), source, rank)
        head.take(line_heads.COLLECTED)
        head.take_pod()
        head.take_mpi()
        self._take_task(head)
        head.take_actor()
        head.take_tee()
        head.take_tags()
        self._take_prepended(head)
        self._take_record(head)
        self._take_label(head)
        writer = " ".join(filter(None, head.labels))
        if head.local is not None:
            self._numbers[writer] = head.local
        rank = self._home if head.rank is None and not writer else head.rank
        if rank is not None:
            self.note(writer, rank)
        return Line(writer, rank, head.rest, number, raw or line)

    def note(self, writer: str, rank: int) -> None:
        """A line of a writer comes from a rank."""
        if writer:
            self._ranks.setdefault(writer, set()).add(rank)

    def rank(self, writer: str, locals_: Mapping[int, int]) -> int | None:
        """The rank that a writer is; None where it is several, or nothing tells.

        Args:
            locals_: rank -> local rank, as far as the log tells.
        """
        by_lines = self._ranks.get(writer, set())
        if len(by_lines) == 1:
            return next(iter(by_lines))
        if by_lines or writer not in self._numbers:
            return None
        kind, number = self._numbers[writer]
        ranks = [rank for rank, local in locals_.items() if local == number]
        if kind == "local" and ranks:
            return ranks[0] if len(ranks) == 1 else None
        # A label is the rank unless a line under one of them says otherwise, or two processes have it.
        alike = {name: n for name, (k, n) in self._numbers.items() if k == kind}
        same = all(self._ranks.get(name, {n}) == {n} for name, n in alike.items())
        return number if same and list(alike.values()).count(number) == 1 else None

    def _take_task(self, head: _Head) -> None:
        """Slurm's number of a task, once a line of this log has shown that it is no other number."""
        match = line_heads.TASK.search(head.rest)
        if match is None:
            return
        self._tasks = self._tasks or _SAYS.match(head.rest[match.end() :]) is not None
        if self._tasks:
            head.rest = head.rest[match.end() :]
            head.numbered("task", match)

    def _take_prepended(self, head: _Head) -> None:
        """A rank without a word beside it, once a line of this log has shown that it is one."""
        match = line_heads.PREPENDED.search(head.rest)
        if head.rank is not None or head.labels or match is None:
            return
        self._prepended = self._prepended or _SAYS.match(head.rest[match.end() :]) is not None
        if self._prepended:
            head.rank, head.rest = int(match["rank"]), head.rest[match.end() :]

    def _take_record(self, head: _Head) -> None:
        """A server's label, which its logger writes before the first line of a traceback alone."""
        labelled, record = bool(head.labels) or head.rank is not None, self._record
        head.take_place()
        if record is not None and not labelled and not head.labels and _goes_on(head.rest):
            head.labels, head.rank = [*record.labels], record.rank
        else:
            begins = (
                not labelled and bool(head.labels) and head.rest.rstrip().endswith(tracebacks.TRACEBACK)
            )
            self._record = head if begins else None

    def _take_label(self, head: _Head) -> None:
        """A label that only this log has."""
        match = self._label(head.rest)
        if match is None:
            return
        if head.rank is None:
            head.labels.append(_NO_NAME.sub("", match[0]).strip(" :|>[]"))
        head.rest = head.rest[match.end() :]

    def _label(self, line: str) -> re.Match[str] | None:
        """A label of a kind that this log has shown before a line of a traceback."""
        match = _INSIDE.match(line)
        if match is not None and len(self._learned) < LABELS:
            shape = _shape(match["label"])
            self._learned.setdefault(shape, re.compile(shape))
        matches = (pattern.match(line) for pattern in self._learned.values())
        return max((m for m in matches if m is not None), key=lambda match: match.end(), default=None)


def _goes_on(text: str) -> bool:
    """True for a line of a traceback that is not its first one."""
    bare = text.strip()
    begins = (
        not bare or text[0].isspace() or bare.endswith(tracebacks.TRACEBACK) or bare in tracebacks.LINKS
    )
    return begins or tracebacks.names_exception(text)


def _shape(label: str) -> str:
    """A pattern of all labels of its kind: other numbers, other times."""
    fixed = (re.sub(r"\d+", r"\\d+", re.escape(part)) for part in _TIME.split(label))
    return f"(?:{_TIME.pattern})".join(fixed)


def parted(line: str) -> Iterator[str]:
    """The lines that padding has made one: each begins as the first does, but for its numbers."""
    shape = line.translate(_DIGITS)
    head, begin, at = shape[:HEAD], 0, 0
    if not head[:1].isspace() and "0" in head:
        while (at := shape.find(head, at + 1)) > 0:
            if line[at - 2 : at].isspace():
                yield line[begin:at].rstrip()
                begin = at
    yield line[begin:]


def _without_markdown(line: str) -> str:
    """A line as it was before somebody quoted it."""
    quoted = _QUOTED.match(line)
    if quoted is not None:
        line = line[quoted.end() :]
        line = _EMPHASIS.sub("", line) if quoted[0].startswith("*") else line
    if "`" in line and (ticks := _TICKS.match(line)):
        line = ticks["whole"] or ticks["blanks"] + ticks["text"]
    return line


def numbers(text: str) -> list[int]:
    """`1,3-5` -> 1, 3, 4, 5."""
    expansion: list[int] = []
    for part in re.findall(r"\d+-\d+|\d+", text):
        first, _, last = part.partition("-")
        expansion += range(int(first), min(int(last or first), int(first) + 10_000) + 1)
    return expansion
