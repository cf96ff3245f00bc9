"""Judges a run by how its ranks ended and by the results that they left."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ..model.facts import ProcessView, Report, Snapshot
from ..model.wording import spoken
from ..report.markdown import inline
from ..report.stable import where_it_ended
from .calls import calls
from .conditions import Run, unmet
from .declaration import Private, Results
from .lab import Lab
from .machine import private_with_torch

_ENDINGS = {"hang": "hangs", "error": "fails", "running": "does not end in time"}


class Check(msgspec.Struct, frozen=True):
    """One thing that holds of a healthy run.

    Attributes:
        what: the thing, as a short sentence.
        why: what was seen instead; empty when it passed.
    """

    what: str
    why: str = ""

    @property
    def passed(self) -> bool:
        """True when nothing else was seen."""
        return not self.why


class Judgement(msgspec.Struct, frozen=True):
    """Every check of a run, in the order in which they are made.

    Attributes:
        trouble: what the run did instead of ending well, which leaves the checks unmade; else empty.
    """

    checks: tuple[Check, ...]
    trouble: str = ""

    @property
    def passed(self) -> bool:
        """True when the run ended well and every check has passed."""
        return not self.trouble and all(check.passed for check in self.checks)

    @property
    def verdict(self) -> str:
        """One line: passed, what the run did instead, or how many checks did not pass."""
        total = len(self.checks)
        if self.trouble:
            return f"not yet: {self.trouble}. {total} checks not evaluated."
        failed = sum(not check.passed for check in self.checks)
        return f"passed: {total} checks" if not failed else f"not yet: {failed} of {total} fail"

    @property
    def valid_checks(self) -> tuple[Check, ...]:
        """The checks, where the run lets them be made."""
        return () if self.trouble else self.checks

    def __repr__(self) -> str:
        width = max(len(check.what) for check in self.checks)
        lines = [
            f"{'ok ' if check.passed else 'no '} {check.what.ljust(width)}  {check.why}".rstrip()
            for check in self.valid_checks
        ]
        return "\n".join([self.verdict, *lines])

    def _repr_html_(self) -> str:
        heading = f"<p><strong>{escape(self.verdict)}</strong></p>"
        rows = "".join(
            f"<tr><td>{'✓ yes' if check.passed else '✗ no'}</td>"
            f'<td style="text-align:left">{inline(check.what)}</td>'
            f'<td style="text-align:left">{inline(check.why)}</td></tr>'
            for check in self.valid_checks
        )
        heads = "".join(f'<th scope="col">{head}</th>' for head in ("", "Check", "Seen instead"))
        table = f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
        return heading + (table if rows else "")


Output = Mapping[str, Sequence[str]]
"""The lines that processes have printed, by the names of `helpers.observe.logs.Logs`: `rank 0`, ..."""


def judge(
    lab: Lab,
    program: str,
    report: Report,
    folder: Path,
    knobs: Mapping[str, str],
    task: Output | None = None,
    looks: Sequence[Snapshot] = (),
) -> Judgement:
    """Judge a run of a lab's program.

    Args:
        lab: whose `lab.toml` says what the ranks leave.
        program: the program's name.
        report: of the run, which is over.
        folder: where its ranks have left their results.
        knobs: values that differed from the defaults.
        task: what the run has printed, where it is to be judged by the learner's task as well.
        looks: at the job, from its start to its end.
    """
    results, world_size = lab.results(folder), lab.ranks(program, knobs)
    judgement = judge_results(report, results, world_size, lab.file.results)
    if task is None:
        return judgement
    settings = lab.settings(program, knobs)
    conditions = [condition for condition in lab.turn(program).conditions if condition.covers(settings)]
    is_private = any(isinstance(condition, Private) for condition in conditions)
    with_torch = private_with_torch() if is_private else 0
    run = Run(report, folder, world_size, results, task, looks, calls(folder), with_torch)
    # A run that went wrong has left files that say nothing of the task.
    task_checks = [Check(c.what, "" if judgement.trouble else unmet(c, run)) for c in conditions]
    return replace(judgement, checks=(*judgement.checks, *task_checks))


def judge_results(
    report: Report, results: Sequence[Mapping[str, Any]], world_size: int, rules: Results
) -> Judgement:
    """Judge a run by its report and by what its ranks ended with.

    Args:
        report: of the run, which is over.
        results: one object a rank, in any order, with `rank`, `world_size` and what `rules` names.
        world_size: how many ranks there have to be.
        rules: which values have to be equal on all ranks, and which finite.
    """
    checks = [
        Check(f"the world size is {world_size}", _world_size(report, results, world_size)),
        Check("every rank ends by itself with exit code 0", ends(report, world_size)),
        Check("every rank leaves one result", _one_each(results, world_size)),
    ]
    checks += [
        Check(f"`{key}`: a finite number on every rank", _finite(results, key)) for key in rules.finite
    ]
    checks += [
        Check(f"`{key}`: the same value on all ranks", _equal(results, key)) for key in rules.equal
    ]
    checks += [
        Check("no two processes act as one rank", _duplicates(report)),
        Check("nothing is left running", leftovers(report)),
    ]
    return Judgement(tuple(checks), trouble(report))


def trouble(report: Report) -> str:
    """What a run did that was stopped before its end, or failed."""
    verdict = report.verdict
    if verdict.outcome == "ok" or verdict.cause == "duplicate-rank":
        return ""
    where = where_it_ended(report)
    return f"the run {_ENDINGS[verdict.outcome]} ({verdict.cause}){where and f': {where}'}"


def _world_size(report: Report, results: Sequence[Mapping[str, Any]], wanted: int) -> str:
    sizes = {report.snapshot.job.world_size} | {result.get("world_size") for result in results}
    wrong = sorted("unknown" if size is None else str(size) for size in sizes - {wanted})
    return f"it is {' and '.join(wrong)}" if wrong else ""


def ends(report: Report, world_size: int) -> str:
    """Which ranks did not end by themselves with exit code 0, in words; empty for none.

    How a failed rank ended is left out: after the first error, the others end in any order.
    """
    processes = {view.rank: view.process for view in report.snapshot.ranks}
    wrong = [rank for rank in range(world_size) if not _clean(processes.get(rank))]
    return f"{spoken(wrong)} did not" if wrong else ""


def _clean(process: ProcessView | None) -> bool:
    return process is not None and not process.alive and process.exit_code == 0


def _one_each(results: Sequence[Mapping[str, Any]], world_size: int) -> str:
    counted = Counter(result.get("rank") for result in results)
    lacking = [rank for rank in range(world_size) if counted[rank] == 0]
    strange = sum(count for rank, count in counted.items() if rank not in range(world_size))
    clauses = []
    if lacking:
        clauses.append(f"none from {spoken(lacking)}")
    if double := [rank for rank in range(world_size) if counted[rank] > 1]:
        clauses.append(f"more than one from {spoken(double)}")
    if strange:
        clauses.append(f"{strange} without a rank of this job")
    return "; ".join(clauses)


def _finite(results: Sequence[Mapping[str, Any]], key: str) -> str:
    if not results:
        return "there is no result"
    values = [result.get(key) for result in results]
    good = [isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values]
    return "" if all(good) else f"it is not on {good.count(False)} of {len(values)}"


def _equal(results: Sequence[Mapping[str, Any]], key: str) -> str:
    if not results:
        return "there is no result"
    if any(key not in result for result in results):
        return "a rank has not written it"
    return "" if all(result[key] == results[0][key] for result in results) else "the ranks differ"


def _duplicates(report: Report) -> str:
    joined = {
        child.joined_as_rank
        for view in report.snapshot.ranks
        for child in view.children
        if child.joined_as_rank is not None
    }
    if joined:
        return f"a child joined as {spoken(sorted(joined))}"
    return "the report says they do" if report.verdict.cause == "duplicate-rank" else ""


def leftovers(report: Report) -> str:
    """What was left of a run, in words; empty for nothing.

    Helper processes of Python do not count: they end on their own, after the rank.
    """
    views = report.snapshot.ranks
    ranks = [view.process for view in views if view.process is not None]
    workers = [c.process for v in views for c in v.children if c.worker_id is not None]
    if any(process.alive for process in (*ranks, *workers)):
        return "a rank or a worker was still there when the run was ended"
    return "" if report.snapshot.job.ended is not None else "the job did not end by itself"
