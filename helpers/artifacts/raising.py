"""An exception as a log has it, and whether the process that has raised it goes on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from ..model.facts import CUT_OFF, ErrorView
from ..model.frames import Frame
from ..observe import tracebacks
from .writers import Line

LONGEST = 2_000
"""Lines that are kept from a first traceback on; letters of a line that is broken."""

CHAINED = 20
"""Lines after an exception within which the traceback of one that follows from it begins: a message
may have several lines."""

WATCHED = 200
"""Lines after an exception that may tell whether its process goes on."""

GOES_ON = 3
"""Lines of one new kind after which a process goes on with its work."""

LETTERS = 60
"""How much of a line tells its kind."""

_NO_WORK = re.compile(
    r"^\s|^$|^\[ERROR\]|^\[[EWIF]\d|^[EWIF]\d{4} |^frame #|^Traceback|^\[\d+\]:|^ *\w+ *: |^[=-]{5}"
    r"|^[\w.]+(?:Error|Exception|Warning|Interrupt)\b"
    r"|^(?:wandb|terminate called|Exception|srun|slurmstepd|mpirun|During handling)"
    r"|^(?:The above exception|CUDA )|torch[./]distributed|NCCL|resource_tracker|leaked"
    r"|[Uu]pload|[Ss]ync|COMET|[Ww]arning|exit ?code|signal|[Kk]ill|frames? |what\(\)|Caught .* in "
    r"|0x[0-9a-f]{6}"
)
"""Lines that a process prints on its way out, or others print of it."""

_LAUNCHER = re.compile(
    r"(?:^|/)bin/(?:torchrun|accelerate|deepspeed|ds)$"
    r"|(?:^|/)torch/distributed/(?:run|launch|launcher/api)\.py$|(?:^|/)accelerate/commands/launch\.py$"
)
"""Files of launchers: no rank runs in them."""

_SPAWN = re.compile(r"(?:^|[/\\])torch[/\\]multiprocessing[/\\]spawn\.py$")
"""Where a process starts ranks, waits for them in `join`, and raises what one of them has raised."""

_RELAYED = "ChildFailedError"
"""What torchrun raises once a rank has failed: torch/distributed/elastic/multiprocessing/errors."""

INDENTED = re.compile(r' *File ".+", line \d+, in | {4,}\S')
"""A frame, or the line of the program in it."""

UNNAMED = "an exception"
"""An exception of which only the message is told."""

RAISED = re.compile(
    r"(?:^|\]:? ?|\) )(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt))(?:\((?P<cause>\w+)\))?: \S"
)
"""The last line of a traceback, of which the log may not have the others."""


class Raising(msgspec.Struct):
    """An exception as it is printed, and what its process prints after it.

    Attributes:
        begins: number of its first line in the log; lines: of it, and of those chained to it.
        named_at: number of the line that names it, 0 before it is; newest: of the newest line of its
            traceback; raw: the line that names it, as the file has it, else the newest one.
        certain: whether it is called an exception there: else a line of another process may stand before
            it.
        since: how many lines ago that was.
        message: what stands before the traceback.
        details: what later lines of its message say it is, each once.
        logged: what it is, of one that was logged by a library, and not raised.
        nonfatal: True for one of a thread or a finaliser, which ends no process.
        outlived: True once its process goes on with its work.
    """

    begins: int
    lines: list[str] = msgspec.field(default_factory=list)
    named_at: int = 0
    newest: int = 0
    raw: str = ""
    certain: bool = False
    since: int = 0
    message: str = ""
    details: dict[str, None] = msgspec.field(default_factory=dict)
    logged: ErrorView | None = None
    nonfatal: bool = False
    outlived: bool = False
    _later: dict[str, set[str]] = msgspec.field(default_factory=dict)

    @property
    def open(self) -> bool:
        """True while lines of it may follow."""
        return len(self.lines) < LONGEST and self.since <= CHAINED

    @property
    def chained(self) -> bool:
        """True where the newest lines say that the next traceback follows from this one."""
        return any(line.strip() in tracebacks.LINKS for line in self.lines[-3:])

    @property
    def of_launcher(self) -> bool:
        """True for the exception of what has started the ranks."""
        return _of_launcher(self._frames)

    @property
    def _frames(self) -> list[Frame]:
        """The frames of the first traceback, the outermost first."""
        frames: list[Frame] = []
        for line in self.lines:
            if frames and line.endswith(tracebacks.TRACEBACK):
                break
            frames += tracebacks.frames((line,))
        return frames

    def add(self, line: Line, text: str, heard: Mapping[str, str]) -> None:
        """One more line of its process.

        Args:
            heard: shape of each line that the process has printed before -> the line.
        """
        if self.open:
            self.lines.append(text)
        if text.endswith(tracebacks.TRACEBACK):
            self.since, self.certain = 0, False
        elif self.since and not self.certain and self.since <= CHAINED and INDENTED.match(text):
            self.since, self.named_at, self.outlived = 0, 0, False
            self._later.clear()
        elif not self.since and (not text.strip() or text[0].isspace()):
            if text.strip() and not self.message:
                self.newest, self.raw = line.number, line.raw
        else:
            self._follow(line, text, heard)

    def _follow(self, line: Line, text: str, heard: Mapping[str, str]) -> None:
        """A line after a traceback: it names the exception, or shows that the process goes on."""
        self.since += 1
        certain = not self.certain and tracebacks.names_exception(text)
        if certain and self.since <= tracebacks.NEAR:
            self.since, self.certain = 1, True
        if self.since == 1:
            self.named_at, self.raw = line.number, line.raw
        shape = work_shape(text) if self.since > 1 else ""
        if shape and shape in heard:
            self.outlived = self.outlived or heard[shape] != text  # with other numbers
        elif shape:
            self._later.setdefault(shape, set()).add(text)
            self.outlived = self.outlived or len(self._later[shape]) >= GOES_ON

    def error(self) -> ErrorView | None:
        """The exception."""
        if self.logged is not None:
            return self.logged
        view, details = self._printed(), "; ".join(self.details)
        return replace(view, message=details) if view is not None and details else view

    def _printed(self) -> ErrorView | None:
        """The exception as its lines tell it."""
        frames = self._frames
        errors = [view for view in tracebacks.errors("\n".join(self.lines)) if view.type != _RELAYED]
        alike = [view for view in errors if _of_launcher(view.stack) == self.of_launcher]
        if errors:
            return next(iter(alike or errors))
        if len(self.lines) > 1 and (match := RAISED.match(self.lines[1])):
            return ErrorView(tracebacks.type_in(match), self.lines[1][match.end() - 1 :])
        begun = frames or (not self.since and self.lines[-1].endswith(tracebacks.TRACEBACK))
        if not begun or self.named_at or self.of_launcher:
            return None
        return ErrorView(UNNAMED if self.message else CUT_OFF, self.message, tuple(reversed(frames)))


def work_shape(text: str) -> str:
    """A line of a program at work, without its numbers; empty for lines that a dying process prints."""
    if _NO_WORK.search(text) or not any(map(str.isdigit, text)):
        return ""
    return re.sub(r"\d+(?:\.\d+)?(?:e[-+]\d+)?", "#", text)[:LETTERS]


def is_launcher(file: str) -> bool:
    """True for a file of what starts the ranks, in which no rank runs."""
    return _LAUNCHER.search(file) is not None


def _of_launcher(stack: Iterable[Frame]) -> bool:
    return any(
        is_launcher(frame.file) or (frame.function == "join" and _SPAWN.search(frame.file))
        for frame in stack
    )
