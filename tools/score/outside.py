"""How often a look from outside is right: `attach` to jobs that hang, `read` of what they have left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import psutil

from . import attached, left
from .attached import Attached
from .jobs import Job
from .score import judged, said, share

UNTOLD = ("unknown", "none", None)
"""Causes that a report may give where the true one cannot be told from outside; None: nothing that the
job has left tells of a rank, so there is no report."""


@dataclass(frozen=True)
class Way:
    """A way to look at a job from outside.

    Attributes:
        least: the least share of causes that has to be right, 0.0 where none is promised.
    """

    title: str
    about: str
    run: Callable[[Job], Attached]
    least: float = 0.0


ATTACH = Way(
    "With `attach`",
    f"looked at from outside for {attached.PATIENCE} s and as long as that takes",
    attached.run,
)
READS = tuple(
    Way(
        f"With `read`: {mixture}",
        f"ended, and judged by what somebody has collected ({mixture}), and the log",
        partial(left.run, mixture=mixture),
        least=0.9 if mixture == "everything" else 0.0,
    )
    for mixture in left.MIXTURES
)


@dataclass(frozen=True)
class OutsideScore:
    """What a way made of jobs that hang; `failed` says of others why they could not be asked."""

    way: Way
    done: tuple[Attached, ...]
    failed: Mapping[str, str]

    def right(self, kind: str) -> tuple[int, int]:
        """How many checks of a kind are right of how many."""
        checks = [check for one in self.done for check in one.checks() if check.kind == kind]
        return sum(check.right for check in checks), len(checks)

    @property
    def misled(self) -> int:
        """Jobs for which a cause was named that is not the true one."""
        causes = [check for one in self.done for check in one.checks() if check.kind == "cause"]
        return sum(not check.right and check.seen not in UNTOLD for check in causes)

    def bar(self) -> dict[str, bool]:
        """Each demand in words, and whether it is met."""
        demands = {"wrong causes: none": self.misled == 0}
        if self.way.least:
            enough = share(self.right("cause")) >= self.way.least
            demands[f"cause right: {self.way.least:.0%} at least"] = enough
        return demands


def measure(way: Way, jobs: Mapping[str, Job]) -> OutsideScore:
    """Look at every job that hangs, one after the other."""
    done: list[Attached] = []
    failed: dict[str, str] = {}
    for job in jobs.values():
        if job.outcome != "hang":
            continue
        try:
            done.append(way.run(job))
            wrong = "; ".join(said(check) for check in done[-1].checks() if not check.right)
        except (TimeoutError, psutil.Error) as problem:
            wrong = failed[job.name] = str(problem)
        print(f"{way.title}, {job.name}: {wrong or 'right'}", file=sys.stderr, flush=True)
    return OutsideScore(way, tuple(done), failed)


def to_markdown(score: OutsideScore) -> str:
    """The result as a part of a page."""
    parts = [
        "",
        f"## {score.way.title}",
        "",
        f"{len(score.done)} jobs that hang, started by themselves and {score.way.about}.",
        "",
        "| measure | result |",
        "|---|---|",
    ]
    for kind in ("outcome", "cause", "culprits", "line", "parting"):
        right, asked = score.right(kind)
        parts.append(f"| {kind} right | {right} of {asked} ({share((right, asked)):.1%}) |")
    parts += [f"| wrong causes | {score.misled} of {len(score.done)} |", ""]
    parts += [f"- {demand}: {'met' if met else 'MISSED'}" for demand, met in score.bar().items()]
    parts += ["", "| job | outcome | cause | culprits | lines | seconds |", "|---|---|---|---|---|---|"]
    parts += [_row(one) for one in score.done]
    parts += [f"- {name}: {why}" for name, why in score.failed.items()]
    return "\n".join(parts) + "\n"


def _row(one: Attached) -> str:
    cells = [*judged(one.job, one.report, one.checks()), f"{one.took:.1f}"]
    return f"| {' | '.join(cells)} |"
