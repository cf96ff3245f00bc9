"""The table of ranks, which every form of a report shows."""

from __future__ import annotations

from dataclasses import dataclass

from ..model.facts import ChildView, RankView, Report
from ..model.frames import Frame
from ..model.waits import ForOutside
from ..model.wording import (
    activities,
    by_number,
    child_text,
    place_in,
    spans,
    stack_of,
    where_of,
)


@dataclass(frozen=True)
class Row:
    """Ranks that are in the same place, as one row of the table.

    Attributes:
        label: `0, 2-5`, or `?` where the number is unknown.
        doing: one entry per wait, or how the rank ended.
        at: `train.py:41 validate`; empty when no line of the user's code is known.
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


def fits(report: Report) -> str:
    """The fixes that fit, in the user's own lines, as Markdown; nothing where that cannot be told."""
    said = [one.said for one in report.fitting]
    return said[0] if len(said) == 1 else "\n".join(f"- {one}" for one in said)


def what_to_do(report: Report) -> str:
    """What fits, else all fixes of the cause's page, and how to confirm it, as Markdown."""
    cause = report.verdict.cause
    others = f"What else cures `{cause}`, in other cases: `stuck-ranks explain {cause}`."
    fixes = [fits(report), others] if report.fitting else [report.fix]
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
    held = process.state == "stopped" or process.gil_held
    waits = any(not isinstance(wait, ForOutside) for wait in process.waits)
    stands = process.where is not None and (process.state == "waiting" or bool(process.asleep))
    stuck = process.alive and (held or waits or stands)
    return child.joined_as_rank is not None or failed or stuck


def table(report: Report) -> list[Row]:
    """The ranks, those that are in the same place together, in the order of their numbers."""
    grouped: dict[tuple[object, ...], list[RankView]] = {}
    for view in by_number(report.snapshot.ranks):
        grouped.setdefault(_alike(view), []).append(view)
    return [_row(views) for views in grouped.values()]


def _alike(view: RankView) -> tuple[object, ...]:
    """The key by which ranks share a row."""
    children = _children(view)
    process = view.process
    if process is None:
        return (view.state, children)
    stack = tuple((frame.file, frame.line, frame.function) for frame in stack_of(process))
    return (view.state, activities(process), place_in(where_of(process)), stack, children)


def _row(views: list[RankView]) -> Row:
    ranks = tuple(view.rank for view in views)
    process = views[0].process
    return Row(
        label=spans(ranks),
        ranks=ranks,
        state=views[0].state,
        doing=activities(process) if process else (),
        at=place_in(where_of(process)) if process else "",
        children=_children(views[0]),
        stack=stack_of(process) if process else (),
    )


def _children(view: RankView) -> tuple[str, ...]:
    return tuple(child_text(child) for child in view.children if matters(child))
