"""The table of ranks, which every form of a report shows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from ..model.facts import ChildView, ProcessView, RankView, Report, Snapshot
from ..model.frames import Frame
from ..model.parting import Branch, Parting
from ..model.redaction import Source
from ..model.waits import ForOutside
from ..model.wording import (
    activities,
    child_name,
    child_text,
    joined,
    label,
    one_line,
    place_in,
    runs,
    spans,
    spoken,
    stack_of,
    where_of,
)
from .alike import Alike, common, shared, together

_COMMENT = re.compile(r"\s+# [^'\"]*$")

MOST = 32
"""Rows of the table."""


class Row(msgspec.Struct, frozen=True):
    """Ranks that are in the same place, as one row of the table; of too many places, how many there are.

    Attributes:
        label: `0, 2-5`, or `?` where the number is unknown.
        on: the node that they run on, or how many; empty for a job on one node.
        doing: one entry per wait, or how the rank ended.
        at: `train.py:41 validate`; empty when no line of the user's code is known.
        line: the same with its source, where that is known: `train.py:41  dist.barrier()`.
        children: one sentence for each child that matters, the same for all ranks of the row.
        stack: innermost frame first; empty where it is not the same for all.
    """

    label: str
    ranks: tuple[int | None, ...]
    on: str
    state: str
    doing: tuple[str, ...]
    at: str
    line: str
    children: tuple[str, ...]
    stack: tuple[Frame, ...]


def fits(report: Report) -> str:
    """The fixes that fit, in the user's own lines, as Markdown; nothing where that cannot be told."""
    fixes = [fix.advice for fix in report.fitting]
    return fixes[0] if len(fixes) == 1 else "\n".join(f"- {fix}" for fix in fixes)


def what_to_do(report: Report) -> str:
    """What fits, else all fixes of the cause's page, and how to confirm it, as Markdown."""
    cause = report.verdict.cause
    hint = f"Other fixes: `stuck-ranks explain {cause}`."
    fixes = [fits(report), hint] if report.fitting else [report.fix]
    return "\n\n".join([*fixes, *confirmed(report)]) if report.fix else ""


def confirmed(report: Report) -> list[str]:
    """How to confirm that the fix has worked, as Markdown."""
    return [f"How to confirm: {report.confirm}"] if report.confirm else []


def matters(child: ChildView) -> bool:
    """True for a child worth reporting: it failed, it joined as a rank, or it is stuck.

    A DataLoader worker that waits for its next task is inside torch's own code and is left out. So is
    a program that ends with an exit code: that is how `grep` or a test of a compiler answers, and so
    short a process is only seen by chance. A bookkeeping process of `multiprocessing` is never told: it
    runs none of the job's code, and outlives the job by a moment.
    """
    process = child.process
    if process.kind == "helper":
        return False
    program = process.kind == "process" and not process.beacon
    failed = (
        process.error is not None
        or process.signal is not None
        or (bool(process.exit_code) and not program)
    )
    halted = process.state == "stopped" or process.gil_held
    waits = any(not isinstance(wait, ForOutside) for wait in process.waits)
    stands = process.where is not None and (process.state == "waiting" or bool(process.asleep))
    stuck = process.alive and (halted or waits or stands)
    return child.joined_as_rank is not None or failed or stuck


def table(report: Report) -> list[Row]:
    """The ranks, those that are in the same place together, in the order of their numbers."""
    rows = together(report.snapshot.ranks, _likeness, report.verdict.culprits, most=MOST)
    texts = sources(report.snapshot)
    return [_row(row, texts) for row in rows]


def sources(snapshot: Snapshot) -> dict[str, str]:
    """The user's files, as far as stacks hold their text."""
    views = snapshot.ranks
    children = (child.process for view in views for child in view.children)
    processes = [*(view.process for view in views if view.process is not None), *children]
    frames = [frame for process in processes for frame in (*process.stack, *stack_of(process))]
    return {frame.file: frame.text for frame in frames if frame.user and frame.text}


def quoted(frame: Frame | None, texts: Mapping[str, str]) -> str:
    """A line with its source: `train.py:41  dist.barrier()`; nothing where the source is not known."""
    if frame is None or not frame.user:
        return ""
    lines = (frame.text or texts.get(frame.file, "")).splitlines()[frame.line - 1 : frame.line]
    source = _COMMENT.sub("", one_line(Source(lines[0]))) if lines else ""
    return f"{frame.place}  {source}" if source else ""


_WAYS = {
    **{(kind, "in its body"): "true on" for kind in ("if", "ifexp")},
    **{(kind, label): "false on" for kind in ("if", "ifexp") for label in ("after it", "in its else")},
    ("ifexp", "in its first part"): "true on",
    **{(kind, "in its body"): "still running on" for kind in ("for", "while")},
    **{(kind, "after it"): "finished on" for kind in ("for", "while")},
}
"""How a way that ranks have taken is said, by the kind of statement and the label of the way."""


def way_text(parting: Parting, way: Branch) -> str:
    """`true on rank 0`, `finished on ranks 1 and 2`, `rank 0 in its except ValueError`."""
    label, labels = way.label, [branch.label for branch in parting.branches]
    if label == "after it" and "in its else" in labels:
        label = "in its body"  # where some are in the `else`, those that are past it were not
    elif label == "after it" and any(name.startswith("in its elif") for name in labels):
        return f"{spoken(way.ranks)} {label}"
    words = _WAYS.get((parting.kind or "", label))
    return f"{words} {spoken(way.ranks)}" if words else f"{spoken(way.ranks)} {way.label}"


def _likeness(view: RankView) -> tuple[object, ...]:
    process = view.process
    if process is None:
        return (view.state, _children(view))
    return (
        view.state,
        _short(process),
        activities(process),
        place_in(where_of(process)),
        _children(view),
        _lines(process),
    )


def _short(process: ProcessView) -> str:
    """What it is blocked in, or how it ended, in a word or two."""
    return label(process) if process.blocking or not process.alive else ""


def _lines(process: ProcessView) -> tuple[tuple[str, int, str], ...]:
    return tuple((frame.file, frame.line, frame.function) for frame in stack_of(process))


def _row(row: Alike, texts: Mapping[str, str]) -> Row:
    views = row.views
    processes = [view.process for view in views if view.process]
    doing = common(map(activities, processes)) if processes else ()
    same_stack = common(map(_lines, processes)) is not None
    at = shared((place_in(where_of(process)) for process in processes), "lines") if processes else ""
    lines = {quoted(frame, texts) for frame in {where_of(process) for process in processes}}
    return Row(
        label=spans(row.ranks),
        ranks=row.ranks,
        on=row.on,
        state=shared((view.state for view in views), "states"),
        doing=(shared(map(_short, processes), "different ones"),) if doing is None else doing,
        at=at,
        line=(lines.pop() if len(lines) == 1 else "") or at,
        children=common(map(_children, views)) or (),
        stack=stack_of(processes[0]) if same_stack else (),
    )


def _children(view: RankView) -> tuple[str, ...]:
    """A sentence for each child that matters; of DataLoader workers of which the same is true, one."""
    sentences: dict[str, list[ChildView]] = {}
    for child in filter(matters, view.children):
        sentences.setdefault(child_text(child).removeprefix(child_name(child)), []).append(child)
    return tuple(f"{_names(children)}{text}" for text, children in sentences.items())


def _names(children: Sequence[ChildView]) -> str:
    """`DataLoader worker 0`, `DataLoader workers 0-3`, `process and process`."""
    numbers = [child.worker_id for child in children if child.worker_id is not None]
    if len(children) > 1 and len(numbers) == len(children):
        return f"DataLoader workers {joined(runs(sorted(numbers)))}"
    return joined(list(map(child_name, children)))
