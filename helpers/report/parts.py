"""The parts that every form of a report shares: a place, a wait, the table of ranks.

Text that comes from the job passes through `printable` before it reaches a screen or a file.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..diagnose.scene import FROZEN, runs
from ..model.facts import ChildView, Frame, ProcessView, RankView, Report, Wait

_ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_STUCK_WAITS = {"collective", "p2p", "store", "rendezvous", "lock", "input"}


@dataclass(frozen=True)
class Row:
    """Ranks that are in the same place, as one row of the table.

    Attributes:
        label: `0, 2-5`, or `?` where the number is unknown.
        doing: one entry per wait, or how the rank ended.
        at: where it stands, `train.py:41 validate`; empty when no line of the user's is known.
        children: one sentence for each child that matters, the same for all ranks of the row.
        stack: innermost frame first.
    """

    label: str
    ranks: tuple[int | None, ...]
    state: str
    doing: tuple[str, ...]
    at: str
    children: tuple[str, ...]
    stack: tuple[Frame, ...]


def printable(text: str) -> str:
    """Takes terminal codes, text-direction marks and control characters out of the job's text."""
    return _CONTROL.sub("?", _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str) -> str:
    """`printable`, on one line."""
    return " ".join(printable(text).split())


def place(frame: Frame | None) -> str:
    """`train.py:41 validate`, or nothing."""
    return one_line(f"{frame.file}:{frame.line} {frame.function}") if frame else ""


def where_of(process: ProcessView) -> Frame | None:
    """The user's line that a process stands at; the line of its error, when one ended it."""
    if process.error and process.error.stack:
        return next((frame for frame in process.error.stack if frame.user), None)
    return process.where


def stack_of(process: ProcessView) -> tuple[Frame, ...]:
    """The stack, innermost frame first; that of its error, when one ended it."""
    if process.error and process.error.stack:
        return process.error.stack
    return process.stack


def spans(numbers: Iterable[int | None]) -> str:
    """`0, 2-5` for 0, 2, 3, 4, 5; unknown numbers as `?` at the end."""
    given = list(numbers)
    labels = runs(sorted({number for number in given if number is not None}))
    unknown = len([number for number in given if number is None])
    if unknown:
        labels.append("?" if unknown == 1 else f"? (x{unknown})")
    return ", ".join(labels)


def by_number(views: Sequence[RankView]) -> list[RankView]:
    """Ranks by number, those of unknown number last."""
    return sorted(views, key=lambda view: (view.rank is None, view.rank or 0))


def wait_text(wait: Wait) -> str:
    """`all_reduce #7 in group default, sizes [1]`."""
    parts = [wait.op if wait.seq is None else f"{wait.op} #{wait.seq}"]
    if wait.kind == "p2p" and wait.peers:
        parts.append(f"with rank {spans(wait.peers)}")
    if wait.group is not None:
        parts.append(f"in group {wait.group}")
    if wait.key is not None:
        parts.append(f"for {wait.key}")
    if wait.holder is not None:
        parts.append(f"held by pid {wait.holder}" if wait.holder else "held by nobody")
    text = " ".join(parts)
    if wait.sizes:
        text += ", sizes " + " ".join(str(list(size)) for size in wait.sizes)
    return one_line(text if wait.blocking else f"pending: {text}")


def ending(process: ProcessView) -> str:
    """`exit code 1: ValueError: no such file`, or nothing for a process that lives."""
    if process.signal is not None:
        text = f"signal {process.signal} ({signal_name(process.signal)})"
    elif process.exit_code is not None:
        text = f"exit code {process.exit_code}"
    elif process.error:
        return one_line(process.error.text)
    else:
        return ""
    return one_line(f"{text}: {process.error.text}" if process.error else text)


def signal_name(number: int) -> str:
    """`SIGKILL` for 9."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown signal"


def doing(process: ProcessView) -> tuple[str, ...]:
    """What a process waits in, or how it ended."""
    end = ending(process)
    if end:
        return (end,)
    if process.frozen:
        return (FROZEN,)
    said = [wait_text(wait) for wait in process.waits]
    if process.gil_held:
        said.append("holds the GIL")
    if process.asleep:
        said.append(f"asleep in {one_line(process.asleep)}")
    return tuple(said)


def matters(child: ChildView) -> bool:
    """True for a child that tells something: it failed, it joined as a rank, or it is stuck.

    A DataLoader worker that waits for its next task stands in torch's own code and is left out. So is
    a program that ends with an exit code: `grep` and a test of a compiler answer with it whoever
    started them, and whether so short a life is seen at all is chance.
    """
    process = child.process
    program = process.kind == "process" and not process.beacon
    failed = (
        process.error is not None
        or process.signal is not None
        or (bool(process.exit_code) and not program)
    )
    held = process.state == "stopped" or process.gil_held
    waits = any(wait.kind in _STUCK_WAITS for wait in process.waits)
    stands = process.where is not None and (process.state == "waiting" or bool(process.asleep))
    stuck = process.alive and (held or waits or stands)
    return child.joined_as_rank is not None or failed or stuck


def child_name(child: ChildView) -> str:
    """`DataLoader worker 0`, or the kind of another child."""
    kind = "DataLoader worker" if child.process.kind == "dataloader-worker" else child.process.kind
    return one_line(kind if child.worker_id is None else f"{kind} {child.worker_id}")


def child_text(child: ChildView) -> str:
    """One sentence on a child, without its pid."""
    process = child.process
    parts = [process.state, *doing(process)]
    if child.joined_as_rank is not None:
        parts.insert(0, f"has joined as rank {child.joined_as_rank}")
    at = place(where_of(process))
    if at:
        parts.append(f"at {at}")
    return one_line(f"{child_name(child)}: {'; '.join(parts)}")


def table(report: Report) -> list[Row]:
    """The ranks, those that are in the same place together, in the order of their numbers."""
    grouped: dict[tuple[object, ...], list[RankView]] = {}
    for view in by_number(report.snapshot.ranks):
        grouped.setdefault(_alike(view), []).append(view)
    return [_row(views) for views in grouped.values()]


def _alike(view: RankView) -> tuple[object, ...]:
    """What two ranks have in common when they share a row."""
    children = _children(view)
    process = view.process
    if process is None:
        return (view.state, children)
    stack = tuple((frame.file, frame.line, frame.function) for frame in stack_of(process))
    return (view.state, doing(process), place(where_of(process)), stack, children)


def _row(views: list[RankView]) -> Row:
    ranks = tuple(view.rank for view in views)
    process = views[0].process
    return Row(
        label=spans(ranks),
        ranks=ranks,
        state=views[0].state,
        doing=doing(process) if process else (),
        at=place(where_of(process)) if process else "",
        children=_children(views[0]),
        stack=stack_of(process) if process else (),
    )


def _children(view: RankView) -> tuple[str, ...]:
    return tuple(child_text(child) for child in view.children if matters(child))
