"""Judges a repaired copy of a program that hung: the run ends well, and the job still does its work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..model.facts import RankView, Report
from ..model.wording import spoken
from .results import Check, Judgement, Output, ends, leftovers, trouble

NUMBER = re.compile(r"[-+]?\b\d[\w.,:%+-]*|\b(?:nan|inf|[0-9a-f]{8,})\b")
"""What differs between two lines of one kind."""

NOISE = re.compile(
    r"Warning|warn|\bTip: |site-packages|^\[?rank\d|^\[?[EWI]\d{4} |^\s|^$|#.{0,3}it/s|\d+%\|"
)
"""Lines of libraries and their tips, second lines of what is printed in several, and progress bars."""


class RankWork(Struct, frozen=True, forbid_unknown_fields=True):
    """What one rank has done.

    Attributes:
        calls: of torch.distributed, made through Python, in all groups.
        workers: how many DataLoader workers were seen.
        finished: whether its interpreter came to its end, which `os._exit` leaves out.
    """

    calls: int = 0
    workers: int = 0
    finished: bool = False


class Work(Struct, frozen=True, forbid_unknown_fields=True):
    """What a run has done, as far as another run can be held to it.

    Attributes:
        world_size: None when unknown.
        ranks: rank -> what it has done.
        lines: kind of line -> how many all processes have printed; its numbers are left out.
        last: the kinds of line with which processes have ended.
    """

    world_size: int | None
    ranks: Mapping[int, RankWork]
    lines: Mapping[str, int]
    last: Collection[str] = ()


def work_of(report: Report, output: Output) -> Work:
    """What a run has done.

    Args:
        report: of the run.
        output: what it has printed.
    """
    ranks = {view.rank: _done(view) for view in report.snapshot.ranks if view.rank is not None}
    kinds = [[*_kinds(printed)] for printed in output.values()]
    lines = Counter(kind for printed in kinds for kind in printed)
    last = sorted({printed[-1] for printed in kinds if printed})
    return Work(report.snapshot.job.world_size, ranks, dict(lines), last)


def judge_repair(hung: Work, fixed: Work, report: Report, output: Output) -> Judgement:
    """Judge a run of a repaired copy.

    Args:
        hung: what the run that hung had done by then.
        fixed: what a run of a repaired version does.
        report: of the run of the copy, which is over.
        output: what it has printed.
    """
    work = work_of(report, output)
    sizes = [size for size in (fixed.world_size, hung.world_size) if size is not None]
    size = work.world_size if work.world_size in sizes else (fixed.world_size or 0)
    checks = (
        Check(f"the world size is {size}", _size(work, sizes)),
        Check("every rank ends by itself with exit code 0", ends(report, size) or _cut(fixed, work)),
        Check("the ranks still communicate", _calls(hung, fixed, work)),
        Check("the DataLoader workers are still there", _workers(fixed, work)),
        Check("the job still prints what it is to print", _lines(fixed, work)),
        Check("nothing is left running", leftovers(report)),
    )
    return Judgement(checks, trouble(report))


def _done(view: RankView) -> RankWork:
    workers = {child.worker_id for child in view.children if child.process.kind == "dataloader-worker"}
    process = view.process
    if process is None:
        return RankWork(workers=len(workers))
    return RankWork(process.calls, len(workers), process.interpreter_finished)


def _kinds(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if not NOISE.search(line):
            yield NUMBER.sub("#", line).strip()


def _size(work: Work, wanted: Sequence[int]) -> str:
    """The two may differ: where one rank is missing, it can be started or no longer counted."""
    return "" if not wanted or work.world_size in wanted else f"it is {work.world_size or 'unknown'}"


def _cut(fixed: Work, work: Work) -> str:
    ranks = [number for number, rank in work.ranks.items() if not rank.finished]
    cut = [number for number in ranks if number in fixed.ranks and fixed.ranks[number].finished]
    return f"{spoken(cut)} left before the interpreter had finished" if cut else ""


def _calls(hung: Work, fixed: Work, work: Work) -> str:
    """More than half of the calls of the repaired version, and no fewer than came before the hang.

    There are other repairs than that version, with more calls or fewer; and a repair may leave out the
    call that did not match.
    """
    before = min((rank.calls for rank in hung.ranks.values()), default=0)
    few = []
    for number, rank in fixed.ranks.items():
        if number >= (work.world_size or len(fixed.ranks)):
            continue
        wanted = min(rank.calls, max(rank.calls // 2 + 1, before - 1))
        if _rank(work, number).calls < wanted:
            few.append(number)
    if not few:
        return ""
    counts = ", ".join(str(_rank(work, number).calls) for number in few)
    needed = ", ".join(str(fixed.ranks[number].calls) for number in few)
    return f"{spoken(few)} made {counts} calls of torch.distributed; a repaired run makes {needed}"


def _workers(fixed: Work, work: Work) -> str:
    few = [
        number
        for number, rank in fixed.ranks.items()
        if rank.workers and not _rank(work, number).workers
    ]
    return f"{spoken(few)} had none" if few else ""


def _lines(fixed: Work, work: Work) -> str:
    """More than half of the lines of the repaired version, and those with which its processes end."""
    if cut := [kind for kind in fixed.last if kind not in work.lines]:
        return f"nothing like `{cut[0]}` was printed"
    wanted = sum(fixed.lines.values())
    count = sum(min(number, work.lines.get(kind, 0)) for kind, number in fixed.lines.items())
    return f"{count} of {wanted} lines were printed" if wanted and 2 * count <= wanted else ""


def _rank(work: Work, number: int) -> RankWork:
    return work.ranks.get(number, RankWork())
