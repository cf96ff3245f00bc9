"""How a process has ended: the frames of its last call, a fatal signal's stack, its error. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..beacon.record import Error, FrameEntry, Record
from ..model.facts import ErrorView
from ..model.frames import Frame
from . import pyspy_record as dumped
from . import tracebacks
from .evidence import Evidence, Source
from .judged_thread import NOTHING, explained
from .process_table import Row
from .source import Sources, frame_of, relative

SIGABRT = 6
_ABORT = re.compile(r"terminate called after throwing an instance of '([^']+)'\s+what\(\):\s+(.+)")

ENDED_FROM_OUTSIDE = (9, 15)
"""SIGKILL and SIGTERM: a launcher may send them to a process that is about to fail by itself."""

_UNCAUGHT = re.compile(r"^\[rank\d+\]: ?Traceback \(most recent call last\):$", re.MULTILINE)
"""What torch prints of an exception that nobody catches (`_distributed_excepthook` in
`distributed_c10d.py` of torch 2.1 to 2.15): the lines of one that is caught have no rank."""

_WRAPPED = re.compile(
    r"Original Traceback \(most recent call last\):|terminated with the following error:"
)


def crash(text: str, last_stack: Sequence[Frame], at: float, sources: Sources) -> Evidence:
    """What `faulthandler` has written at a fatal signal.

    Args:
        last_stack: the stack of the process when it was last seen, which tells the user's frames.
    """
    stack = explained(_crashed_stack(text, last_stack, sources.cwd), sources)
    return Evidence(Source.CRASH, at, stack=stack, waits=())


def exit_call(record: Record, at: float, sources: Sources, since: float | None = None) -> Evidence:
    """The call that ends a process: of `os._exit`, else of `sys.exit`, or the end of its program.

    Args:
        since: monotonic time since which it leaves, where Python has come to its end in order.
    """
    if since is None:
        return Evidence(Source.EXIT, at, stack=_stack(record["cut_off"], sources))
    stack = _stack(record["left"], sources, record.get("left_values", NOTHING))
    return Evidence(Source.EXIT, at, since=since, stack=stack)


def errors(
    row: Row, record: Record | None, sources: Sources, start: float, traceback: str, log: str
) -> Iterator[Evidence]:
    """The exception that ends a process, as far as each source tells.

    Args:
        start: monotonic time of the command's start, from which the time of an error counts.
        traceback: what a child of `mp.spawn` has left for its parent.
        log: the end of what the process has printed, looked at only after it has failed.
    """
    if record is not None:
        yield from own_error(record, sources, start)
    if row.ended is None:
        return
    texts = [(Source.TRACEBACK, traceback)] if row.exit_code != 0 else []
    cut_short = row.signal in ENDED_FROM_OUTSIDE and _UNCAUGHT.search(log)
    texts += [(Source.LOG, log)] if row.exit_code or cut_short else []
    for source, text in texts:
        if (error := tracebacks.first_error(text)) is not None:
            stack = explained(mark_user(error.stack, sources.cwd), sources)
            yield Evidence(source, row.ended, error=replace(error, stack=stack, time=row.ended - start))
    abort = _ABORT.search(log) if row.signal == SIGABRT else None
    if abort is not None:
        error = ErrorView(abort[1], abort[2].strip(), (), row.ended - start)
        yield Evidence(Source.LOG, row.ended, error=error)


def own_error(record: Record, sources: Sources, start: float) -> Iterator[Evidence]:
    """The exception of which the record of a process tells."""
    raw = record["error"]
    if raw is not None:
        error = unwrap(exception(raw, sources, start), sources.cwd)
        yield Evidence(Source.RECORD, raw["time"], error=error)


def exception(raw: Error, sources: Sources, start: float = 0.0) -> ErrorView:
    """An exception as a record tells it."""
    return ErrorView(
        raw["type"],
        raw["message"],
        _stack(raw["frames"], sources, raw.get("values", NOTHING)),
        raw["time"] - start,
        tuple(raw["masked"]),
        tuple(raw.get("needed", ())),
        raw.get("caused_by", ""),
    )


def _stack(
    entries: Sequence[FrameEntry], sources: Sources, values: Mapping[int, Mapping[str, str]] = NOTHING
) -> tuple[Frame, ...]:
    return explained([frame_of(entry, sources.cwd) for entry in entries], sources, values)


def unwrap(error: ErrorView, cwd: str) -> ErrorView:
    """The error of a child that its parent raises again with the child's traceback as text.

    Its stack goes on with the parent's: the calls that had the child do what failed.
    """
    if not _WRAPPED.search(error.message):
        return error
    text = error.message.replace("Original Traceback", "Traceback")
    original = tracebacks.first_error(text)
    if original is None:
        return error
    return replace(
        original,
        stack=mark_user(original.stack, cwd) + error.stack,
        time=error.time,
        masked=original.masked + error.masked,
    )


def mark_user(stack: Sequence[Frame], cwd: str) -> tuple[Frame, ...]:
    """Frames read from text: those inside the job's folder, and outside any library, are the user's."""
    frames = []
    for frame in stack:
        file = relative(frame.file, cwd)
        library = dumped.LIBRARY.search(frame.file) or file.startswith("<frozen")
        frames.append(replace(frame, file=file, user=not library))
    return tuple(frames)


def _crashed_stack(text: str, last_stack: Sequence[Frame], cwd: str) -> tuple[Frame, ...]:
    """The frames of the thread that crashed, else of the newest in the text."""
    is_user = {(frame.file, frame.function): frame.user for frame in last_stack}
    if "Current thread" in text:
        block = text.partition("Current thread")[2].partition("\n\n")[0]
    else:
        block = text.rpartition("(most recent call first):")[2]
    frames = []
    for match in re.finditer(r'File "(.+?)", line (\d+) in (.+)', block):
        file = relative(match[1], cwd)
        user = is_user.get(
            (file, match[3]), not file.startswith(("/", "<")) and not dumped.LIBRARY.search(match[1])
        )
        frames.append(Frame(file, int(match[2]), match[3], user))
    return tuple(frames) or tuple(last_stack)
