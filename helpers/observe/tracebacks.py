"""Read Python tracebacks back from text: a child's error as its parent words it, or a log."""

from __future__ import annotations

import io
import pickle
import re
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from ..model.facts import ErrorView
from ..model.frames import Frame

_FRAME = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+), in (?P<function>.+)$')
_SYNTAX = re.compile(r'^\s*File "(?P<file>.+?)", line (?P<line>\d+)$')
_ERROR = re.compile(
    r"^(?!(?:ERROR|WARNING|INFO|DEBUG|CRITICAL)\b)(?P<type>[A-Za-z_][\w.]*?)(?:\((?P<cause>\w+)\))?"
    r"(?::(?: (?P<message>.*))?)?$"
)
_EXCEPTION = re.compile(r"(?:\w+\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:\(\w+\))?(?::(?: .*)?)?")
"""A line that names an exception by what such classes are called: a line of a program hardly does."""

_BROKEN = re.compile(r'^\s*File "[^"]*$')
_REST = re.compile(r'^[^"]*", line \d+')
"""The line of a frame whose file name a terminal has broken, and the rest of it."""

NEAR = 40
"""Lines after a frame within which its traceback ends: others may write between its lines."""

_RANK = re.compile(r"^\[rank\d+\]: ?")
"""What torch writes before each line of an uncaught exception once a process group exists."""

_BY_ACCIDENT = "During handling of the above exception, another exception occurred:"
_ON_PURPOSE = "The above exception was the direct cause of the following exception:"

TRACEBACK = "Traceback (most recent call last):"
"""The first line of a traceback."""

LINKS = (_BY_ACCIDENT, _ON_PURPOSE)
"""What stands between two tracebacks of which one follows from the other."""

NO_SCRIPT = re.compile(
    r"can't open file '[^']*': \[Errno \d+\] .+|No module named (?!.*Traceback).+"
    r"|can't find '__main__' module in .+|Error while finding module specification .+"
)


def first_error(text: str) -> ErrorView | None:
    """The first cause among the tracebacks in `text`, with the later ones as `masked`."""
    return next(iter(reversed(errors(text))), None)


def errors(text: str) -> list[ErrorView]:
    """What has gone wrong, one after the other: of tracebacks that follow from each other, the cause.

    A traceback that follows another one "during the handling" of it hides the earlier one, unless the
    frame that caught the first raised the second itself: then the later one is the message meant. What
    is hidden is `masked`; what it was raised for is `caused_by`. Frames keep the text's file names;
    whether a frame is the user's is decided by the caller.
    """
    chains: list[list[tuple[ErrorView, str]]] = []
    for error, link in _blocks(text):
        if link and chains:
            chains[-1].append((error, link))
        else:
            chains.append([(error, "")])
    return [_cause(chain) for chain in chains]


def frames(lines: Iterable[str]) -> list[Frame]:
    """The frames in some lines, of a traceback that may be cut off; the outermost frame first."""
    matches = (_FRAME.match(line) for line in lines)
    return [Frame(match["file"], int(match["line"]), match["function"]) for match in matches if match]


def _cause(chain: list[tuple[ErrorView, str]]) -> ErrorView:
    *earlier, (chosen, link) = chain
    masked: list[str] = []
    while earlier and link == _BY_ACCIDENT and not _translated(earlier[-1][0], chosen):
        masked.append(chosen.text)
        *earlier, (chosen, link) = earlier
    root = _cause(earlier) if earlier else chosen
    caused_by = root.caused_by or root.text
    return replace(chosen, masked=tuple(masked), caused_by="" if caused_by == chosen.text else caused_by)


def pickled_text(content: bytes) -> str:
    """The traceback that a child of `mp.spawn` leaves for its parent: a pickled string.

    Nothing but a string is unpickled; anything else gives an empty text.
    """
    try:
        text = _StringsOnly(io.BytesIO(content)).load()
    except Exception:  # a pickle that is not what it claims to be raises anything
        return ""
    return text if isinstance(text, str) else ""


class _StringsOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed here")


def _translated(earlier: ErrorView, later: ErrorView) -> bool:
    if not earlier.stack or not later.stack:
        return False
    caught, raised = earlier.stack[-1], later.stack[0]
    return (caught.file, caught.function) == (raised.file, raised.function)


def type_in(match: re.Match[str]) -> str:
    """The name of an exception's class; in Ray's `RayTaskError(X)`, that of its cause: `X`."""
    return str(match["cause"] or match["type"].rpartition(".")[2])


def names_exception(line: str) -> bool:
    """True for the last line of a traceback whose exception is called one, with or without a message."""
    return _EXCEPTION.fullmatch(line.rstrip()) is not None


def _blocks(text: str) -> list[tuple[ErrorView, str]]:
    """Every traceback in `text` in order, with the sentence that links it to the one before."""
    blocks = _Blocks()
    for line in _whole_lines(text):
        blocks.take(line)
    blocks.close()
    return blocks.closed


def _whole_lines(text: str) -> Iterator[str]:
    """The lines without torch's label; those of a frame that a terminal has broken are one."""
    broken = ""
    for raw in text.splitlines():
        line = broken + _RANK.sub("", raw).rstrip()
        if broken and not _REST.match(line.removeprefix(broken)):
            yield broken
            line = line.removeprefix(broken)
        broken = line if _BROKEN.match(line) else ""
        if not broken:
            yield line
    yield broken


class _Blocks:
    """The tracebacks of a text as it is read.

    Attributes:
        closed: those that are over, each with its link to the one before.
    """

    def __init__(self) -> None:
        self.closed: list[tuple[ErrorView, str]] = []
        self._frames: list[Frame] | None = None
        self._ending: ErrorView | None = None
        self._since = 0
        self._link = ""

    def take(self, line: str) -> None:
        """The next line."""
        if line.endswith(TRACEBACK):
            self.close()
            self._frames = []
        elif line.strip() in LINKS:
            self.close()
            self._link = line.strip()
        elif self._frames is not None and line:
            self._within(line, self._frames)

    def _within(self, line: str, frames: list[Frame]) -> None:
        """A line behind the first one of a traceback: of it, or of another process.

        A line that may name the exception does so unless more of the traceback follows.
        """
        self._since += 1
        if match := _FRAME.match(line) or _SYNTAX.match(line):
            function = match.groupdict().get("function", "<module>")
            frames.append(Frame(match["file"], int(match["line"]), function))
            self._ending, self._since = None, 0
        elif error := _ERROR.match(line):
            certain = names_exception(line)
            if self._ending is None or certain:
                kind = type_in(error)
                self._ending = ErrorView(kind, error["message"] or "", tuple(reversed(frames)))
            if certain:
                self.close()
        if self._since > NEAR:
            self.close()

    def close(self) -> None:
        """The newest traceback is over."""
        if self._ending is not None:
            self.closed.append((self._ending, self._link if self.closed else ""))
            self._link = ""
        self._frames, self._ending, self._since = None, None, 0
