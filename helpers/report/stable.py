"""What stays the same when the same program fails the same way again.

A notebook test compares this text, so it holds only what the cause decides. See `stable_text`.
"""

from __future__ import annotations

import re
from pathlib import PurePath
from signal import SIGTERM

import msgspec
from msgspec.structs import replace

from ..model.clauses import grouped
from ..model.facts import ErrorView, ProcessView, RankView, Report, Verdict
from ..model.frames import Frame
from ..model.waits import Communication, ForRanks, InCollective, Wait
from ..model.wording import (
    by_number,
    child_name,
    doing,
    one_line,
    outcome_text,
    place_in,
    signal_name,
    spans,
    spoken,
    wait_label,
    where_of,
)
from .parts import matters

_TYPE = re.compile(r"([A-Za-z_][\w.]*)(?::|$)")
_WHOSE = re.compile(r"\((?:rank \d+|launcher)\)$")
_FROM_OUTSIDE = {"rank-crashed", "out-of-memory"}
OBJECTS = {
    *("all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list"),
    *("recv_object_list", "send_object_list"),
}
"""torch's functions that send pickled objects (`torch/distributed/distributed_c10d.py`, torch 2.13)."""


def stable_text(report: Report) -> str:
    """The facts of a report that do not change from run to run.

    Left out, and why:

    - pids, ports, seconds, memory, thread names, store keys, lock files, paths outside the job:
      they are new in each run. A file outside the job is shown by its name alone.
    - texts of errors, evidence and the summary: they may hold any of those. Of an error only the
      type stays.
    - sequence numbers, unless the job is proved to hang: elsewhere they say how far a rank had
      come. Also for a rank that a signal ended, since that moment comes from outside.
    - sizes of pickled objects on their way: one may be a path, which is longer elsewhere.
    - operations that are pending while the rank is blocked in another one.
    - the place of a rank that runs and is not a culprit: it differs from look to look.
    - after an error, everything about ranks that are not culprits, and how far the end of the
      culprits has come: SIGTERM by the launcher, the error of a broken connection and the patience
      of the instrument race each other. What failed first in a culprit, or in its child, stays.
    - which ranks ran out of memory, when the kernel chose them: it may choose others next time.
    - children that neither failed nor are stuck; of a child that joined as a rank and did not
      fail, how it ended, since its rank ends it when the job is over. In a run that ended well also
      those that have not quite ended, and those that their rank has ended because it took too long.
    """
    return str(stable(report))


class RankRow(msgspec.Struct, frozen=True):
    """Ranks that have the same to tell.

    Attributes:
        ranks: their numbers: `0, 2-5`.
        children: a line for each child that adds something.
        odd: True for culprits.
    """

    ranks: str
    text: str
    children: tuple[str, ...]
    odd: bool


class Stable(msgspec.Struct, frozen=True):
    """`stable_text` in parts.

    Attributes:
        facts: of the whole run, by name.
        masked: types of the errors that hide the first one, or nothing.
    """

    facts: tuple[tuple[str, str], ...]
    ranks: tuple[RankRow, ...]
    masked: str

    def __str__(self) -> str:
        lines = [f"{name}: {value}" for name, value in self.facts]
        for row in self.ranks:
            lines += [f"rank {row.ranks}: {row.text}", *(f"  {child}" for child in row.children)]
        if self.masked:
            lines.append(f"masked: {self.masked}")
        return "\n".join(lines)


def stable(report: Report) -> Stable:
    """The facts that `stable_text` tells."""
    verdict, job = report.verdict, report.snapshot.job
    world = "unknown" if job.world_size is None else job.world_size
    facts = [
        ("outcome", outcome_text(verdict)),
        ("cause", verdict.cause),
        ("job", f"{one_line(job.launcher)}, world size {world}{_exit(report)}"),
    ]
    ranks: tuple[RankRow, ...] = ()
    if not chosen_by_chance(report):
        where = [("where", _place(verdict.where))] if verdict.where else []
        facts[2:2] = [("culprits", spans(verdict.culprits) or "none"), *where, *_parted(verdict)]
        ranks = _ranks(report)
    types = sorted({match[1] for text in _own_masks(report) if (match := _TYPE.match(text))})
    return Stable(tuple(facts), ranks, ", ".join(types))


def _parted(verdict: Verdict) -> list[tuple[str, str]]:
    """The statement at which ranks of a job that hangs have parted."""
    parting = verdict.parting
    if verdict.outcome != "hang" or parting is None or parting.where is None:
        return []
    return [("parted", f"{_line(parting.where)}, {one_line(parting.source)}")]


def where_it_ended(report: Report) -> str:
    """The calls in which the ranks hang, or the error that came first, with their lines, as one phrase.

    Empty where that is new in each run, as for `stable_text`.
    """
    verdict, snapshot = report.verdict, report.snapshot
    if chosen_by_chance(report):
        return ""
    if verdict.outcome == "hang":
        calls = {v.rank: _blocked(report, v.process) for v in snapshot.ranks if v.rank is not None}
        return ", ".join(f"{spoken(ranks)} {call}" for call, ranks in grouped(calls).items())
    culprits = [view for view in snapshot.ranks if view.rank in verdict.culprits]
    processes = [process for view in culprits for process in _processes(view)]
    failed = {_type(p.error) for p in processes if p.error and where_of(p) == verdict.where}
    at = [f"at {_line(verdict.where)}"] if verdict.where else []
    return " ".join([*sorted(failed), *at])


def _blocked(report: Report, process: ProcessView | None) -> str:
    """`in all_reduce #4 at train.py:69`."""
    if process is None or not process.blocking:
        return doing(process)
    wait, at = process.blocking[0], where_of(process)
    numbered = not isinstance(wait, InCollective) or _has_numbers(report.verdict)
    label = wait_label(wait) if numbered else wait.op
    return f"in {label} at {_line(at)}" if at else f"in {label}"


def chosen_by_chance(report: Report) -> bool:
    """True when the culprits may be others next time: the kernel, or a monitor, chose them."""
    return report.verdict.cause == "out-of-memory" and not _has_error(report)


def _has_error(report: Report) -> bool:
    """True when a process failed by itself, so that the same one fails next time."""
    return any(process.error for view in report.snapshot.ranks for process in _processes(view))


def _processes(view: RankView) -> list[ProcessView]:
    """That of the rank, and its children."""
    main = [] if view.process is None else [view.process]
    return [*main, *(child.process for child in view.children)]


def _exit(report: Report) -> str:
    job = report.snapshot.job
    if report.verdict.outcome in ("hang", "running"):
        return ""
    if job.signal is not None:
        return ", ended by a signal"
    if job.exit_code is None or report.verdict.cause not in ("none", "duplicate-rank"):
        return ""
    return ", exit code zero" if job.exit_code == 0 else ", exit code not zero"


def _ranks(report: Report) -> tuple[RankRow, ...]:
    """One row for the ranks that have the same to tell."""
    rows: dict[tuple[bool, str, tuple[str, ...]], list[int | None]] = {}
    after_error = report.verdict.outcome == "error"
    for view in by_number(report.snapshot.ranks):
        odd = view.rank in report.verdict.culprits
        if odd or not after_error:
            row = (odd, _rank(report, view), tuple(_children(report, view)))
            rows.setdefault(row, []).append(view.rank)
    return tuple(
        RankRow(spans(ranks), text, children, odd) for (odd, text, children), ranks in rows.items()
    )


def _rank(report: Report, view: RankView) -> str:
    verdict, process = report.verdict, view.process
    culprit = view.rank in verdict.culprits
    if process is None:
        return view.state
    if verdict.outcome == "error":
        if verdict.cause == "duplicate-rank" and process.exit_code == 0:
            return "exited, exit code 0"
        return _failed(view, process)
    if not process.alive or view.state == "exited":
        return ", ".join(["exited", *_end(process)])
    parts: list[str] = [view.state, *_waits(report, process)]
    where = where_of(process)
    if where and (culprit or view.state in ("waiting", "stopped")):
        parts.append(f"at {_place(where)}")
    return ", ".join(parts)


def _own_masks(report: Report) -> list[str]:
    """Errors that hide the first one in a culprit itself; others may come too late to be seen."""
    ranks = {f"(rank {rank})" for rank in report.verdict.culprits}
    return [
        text for text in report.verdict.masked if not (match := _WHOSE.search(text)) or match[0] in ranks
    ]


def _failed(view: RankView, process: ProcessView) -> str:
    """How the rank itself failed, unless a child of it failed first, or that it did not."""
    if any(child.process.error or child.joined_as_rank is not None for child in view.children):
        return "failed"
    if process.interpreter_finished:
        return "ended without an exception"
    explained = process.error or process.signal is not None
    return ", ".join(["failed", *_end(replace(process, exit_code=None) if explained else process)])


def _end(process: ProcessView) -> list[str]:
    parts = []
    if process.signal is not None:
        parts.append(signal_name(process.signal))
    elif process.exit_code is not None:
        parts.append(f"exit code {process.exit_code}")
    if process.error:
        parts.append(_type(process.error))
    where = where_of(process)
    if where and process.error:
        parts.append(f"at {_place(where)}")
    return parts


def _waits(report: Report, process: ProcessView) -> list[str]:
    verdict = report.verdict
    numbered = _has_numbers(verdict)
    blocking = [wait for wait in process.waits if wait.blocking]
    sized = not any(frame.function in OBJECTS for frame in process.stack)
    waits = [_wait(wait, numbered, sized) for wait in blocking or process.waits]
    return list(dict.fromkeys(waits))


def _has_numbers(verdict: Verdict) -> bool:
    """True where the sequence numbers are the same in each run."""
    return verdict.outcome == "hang" and verdict.proved and verdict.cause not in _FROM_OUTSIDE


def _wait(wait: Wait, numbered: bool, sized: bool) -> str:
    parts = [wait.kind, wait.op]
    if isinstance(wait, InCollective) and wait.seq is not None and numbered:
        parts.append(f"#{wait.seq}")
    if isinstance(wait, ForRanks) and wait.group is not None:
        parts.append(f"in group {wait.group}")
    if sized and isinstance(wait, Communication):
        parts += [f"size {list(size)}" for size in wait.sizes]
    return one_line(" ".join(parts))


def _children(report: Report, view: RankView) -> list[str]:
    sentences = []
    for child in view.children:
        lingering = child.process.alive or child.process.signal == SIGTERM
        if not matters(child) or (report.verdict.outcome == "ok" and lingering):
            continue
        process = child.process
        parts: list[str] = [] if report.verdict.outcome == "error" else [process.state]
        if child.joined_as_rank is not None:
            parts.append(f"joined as rank {child.joined_as_rank}")
        if child.joined_as_rank is None or process.error:
            parts += _end(process)
        sentences.append(f"{child_name(child)}: {', '.join(parts)}")
    return sorted(sentences)


def _type(error: ErrorView) -> str:
    return one_line(error.type)


def _place(frame: Frame) -> str:
    return place_in(_near(frame))


def _line(frame: Frame) -> str:
    return one_line(_near(frame).place)


def _near(frame: Frame) -> Frame:
    """A frame whose file, where it lies outside the job's folder, is named without a path."""
    path = PurePath(frame.file)
    outside = path.is_absolute() or ".." in path.parts
    return replace(frame, file=path.name) if outside else frame
