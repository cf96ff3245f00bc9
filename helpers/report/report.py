"""From a verdict to a report: what is woven in, and its JSON form.

The other forms are in `report_text` (terminal, ticket), `report_html` and `report_stable` (what a
notebook test compares); all of them can be imported from here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..diagnose.pages import page
from ..model.facts import (
    ChildView,
    Frame,
    Job,
    Port,
    RankView,
    Report,
    Snapshot,
    Verdict,
    Wait,
)
from ..model.wording import by_number, printable, stack_of, where_of
from .page import to_html
from .stable import stable_text
from .text import to_markdown, to_text

__all__ = ["build", "stable_text", "to_html", "to_json", "to_markdown", "to_text"]

SCHEMA = 1


def build(
    verdict: Verdict,
    snapshot: Snapshot,
    *,
    interrupted: bool = False,
    first_rank: float | None = None,
    stall: float | None = None,
    verdict_at: float | None = None,
) -> Report:
    """Weaves the page of the cause into a report.

    Args:
        verdict: the last verdict of the run.
        snapshot: the snapshot that it was made from.
        interrupted: True when a person stopped the run.
        first_rank: seconds at which the first rank was seen, None if none was.
        stall: seconds at which the stall began; the verdict's own `since` unless given.
        verdict_at: seconds at which the verdict was reached.
    """
    known = None if verdict.cause == "none" else page(verdict.cause)
    return Report(
        verdict=verdict,
        snapshot=snapshot,
        explanation=f"{known.meaning}\n\n{known.why}" if known else "",
        fix=f"{known.fix}\n\nHow to confirm: {known.confirm}" if known else "",
        references=known.references if known else (),
        interrupted=interrupted,
        first_rank=first_rank,
        stall=verdict.since if stall is None else stall,
        verdict_at=verdict_at,
    )


def to_json(report: Report) -> dict[str, object]:
    """The report as plain lists, dictionaries, strings and numbers, key for key as documented.

    A child that a signal ended has the negative number of the signal as its `exit_code`, as in
    Python's `subprocess`. Seconds are rounded to 0.01.
    """
    verdict, snapshot = report.verdict, report.snapshot
    return {
        "schema": SCHEMA,
        "outcome": verdict.outcome,
        "proved": verdict.proved,
        "interrupted": report.interrupted,
        "cause": verdict.cause,
        "detail": printable(verdict.detail),
        "culprits": sorted(verdict.culprits),
        "blockers": [
            {"pid": blocker.pid, "what": blocker.what, "command": printable(blocker.command)}
            for blocker in verdict.blockers
        ],
        "where": _frame(verdict.where),
        "summary": printable(verdict.summary),
        "explanation": report.explanation,
        "fix": report.fix,
        "references": list(report.references),
        "masked": [printable(text) for text in verdict.masked],
        "job": _job(snapshot.job),
        "ranks": [_rank(view) for view in by_number(snapshot.ranks)],
        "evidence": [printable(text) for text in verdict.evidence],
        "not_seen": [printable(text) for text in snapshot.not_seen],
        "seconds": {
            "first_rank": _seconds(report.first_rank),
            "stall": _seconds(report.stall),
            "verdict": _seconds(report.verdict_at),
        },
    }


def _job(job: Job) -> dict[str, object]:
    return {
        "command": list(job.command),
        "launcher": job.launcher,
        "world_size": job.world_size,
        "nodes_seen": job.nodes_seen,
        "attempt": job.attempt,
        "exit_code": job.exit_code,
        "signal": job.signal,
        "hardware": job.hardware,
        "backends": list(job.backends),
    }


def _rank(view: RankView) -> dict[str, object]:
    process = view.process
    return {
        "rank": view.rank,
        "local_rank": view.local_rank,
        "node": view.node,
        "pid": process.pid if process else None,
        "state": view.state,
        "where": _frame(where_of(process)) if process else None,
        "stack": _stack(stack_of(process)) if process else [],
        "waits": [_wait(wait) for wait in process.waits] if process else [],
        "children": [_child(child) for child in view.children],
        "ports": _ports(process.ports) if process else [],
        "exit_code": process.exit_code if process else None,
        "signal": process.signal if process else None,
        "error": printable(process.error.text) if process and process.error else None,
    }


def _child(child: ChildView) -> dict[str, object]:
    process = child.process
    code = -process.signal if process.signal is not None else process.exit_code
    return {
        "kind": process.kind,
        "worker_id": child.worker_id,
        "pid": process.pid,
        "state": process.state,
        "joined_as_rank": child.joined_as_rank,
        "where": _frame(where_of(process)),
        "stack": _stack(stack_of(process)),
        "ports": _ports(process.ports),
        "exit_code": code,
        "error": printable(process.error.text) if process.error else None,
    }


def _wait(wait: Wait) -> dict[str, object]:
    return {
        "kind": wait.kind,
        "op": wait.op,
        "group": wait.group,
        "group_ranks": list(wait.group_ranks),
        "seq": wait.seq,
        "sizes": [list(size) for size in wait.sizes],
        "peers": list(wait.peers),
        "key": wait.key,
        "thread": wait.thread,
        "where": _frame(wait.where),
    }


def _frame(frame: Frame | None) -> dict[str, object] | None:
    if frame is None:
        return None
    return {"file": frame.file, "line": frame.line, "function": frame.function}


def _stack(frames: Sequence[Frame]) -> list[dict[str, object] | None]:
    return [_frame(frame) for frame in frames]


def _ports(ports: Sequence[Port]) -> list[dict[str, object]]:
    return [{"address": port.address, "port": port.port, "role": port.role} for port in ports]


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
