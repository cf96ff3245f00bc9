"""From a verdict to a report: what is woven in, and its JSON form.

The other forms are in `text` (terminal), `ticket` (Markdown) and `stable` (what a notebook test
compares), which can be imported from here, and in `page` (HTML), which takes longer to import.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec.structs import fields

from ..diagnose.fixes import fitting
from ..diagnose.pages import page
from ..model.facts import ChildView, Job, ProcessView, RankView, Report, Snapshot, Verdict
from ..model.findings import Finding
from ..model.frames import Frame
from ..model.parting import Call, Parting
from ..model.slow import Slow
from ..model.waits import Communication, ForRanks, InCollective, InP2P, InRPC, OnCondition, Wait
from ..model.wording import by_number, printable, stack_of, subject, where_of
from .contract import (
    BlockerJSON,
    BranchJSON,
    CallJSON,
    ChildJSON,
    FrameJSON,
    GuardJSON,
    JobJSON,
    MetJSON,
    PartingJSON,
    PortJSON,
    PrintedJSON,
    RankJSON,
    ReportJSON,
    SecondsJSON,
    SlowJSON,
    WaitJSON,
)
from .parts import confirmed, fits
from .stable import stable_text
from .text import brief, to_text
from .ticket import to_markdown

__all__ = ["brief", "build", "stable_text", "to_json", "to_markdown", "to_text"]

SCHEMA: Literal[1] = 1

MOST_MEMBERS = 1024
"""Members of a group up to which each wait in it names them: their number times itself is written."""


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
    cause_page = None if verdict.cause == "none" else page(verdict.cause)
    return Report(
        verdict=verdict,
        snapshot=snapshot,
        explanation=f"{cause_page.meaning}\n\n{cause_page.why}" if cause_page else "",
        fix=cause_page.fix if cause_page else "",
        confirm=cause_page.confirm if cause_page else "",
        fitting=fitting(cause_page.fixes, verdict, snapshot) if cause_page else (),
        references=cause_page.references if cause_page else (),
        interrupted=interrupted,
        first_rank=first_rank,
        stall=verdict.since if stall is None else stall,
        verdict_at=verdict_at,
    )


def to_json(report: Report) -> dict[str, object]:
    """The report as plain lists, dictionaries, strings and numbers, as `contract.ReportJSON` says.

    A child that a signal ended has the negative number of the signal as its `exit_code`, as in
    Python's `subprocess`. Seconds are rounded to 0.01. Every text is `printable`. The `group_ranks` of
    a wait in a group of more than `MOST_MEMBERS` are left empty.
    """
    verdict, snapshot = report.verdict, report.snapshot
    contract = ReportJSON(
        schema=SCHEMA,
        outcome=verdict.outcome,
        proved=verdict.proved,
        interrupted=report.interrupted,
        cause=verdict.cause,
        detail=verdict.detail,
        culprits=sorted(verdict.culprits),
        blockers=[
            BlockerJSON(pid=blocker.pid, what=blocker.what, command=blocker.command)
            for blocker in verdict.blockers
        ],
        where=_line(verdict.where),
        parting=_parting(verdict.parting),
        summary=verdict.summary,
        explanation=report.explanation,
        fix="\n\n".join(part for part in (fits(report), report.fix, *confirmed(report)) if part),
        applies=[fix.number for fix in report.fitting],
        references=[*report.references],
        finding=_finding(verdict.finding),
        printed=[PrintedJSON(ranks=[*line.ranks], text=line.text) for line in verdict.printed],
        masked=[*verdict.masked],
        job=_job(snapshot.job),
        ranks=[_rank(view) for view in by_number(snapshot.ranks)],
        slow=_slow(verdict.slow),
        evidence=[*verdict.evidence],
        not_seen=[*snapshot.not_seen],
        seconds=SecondsJSON(
            first_rank=_seconds(report.first_rank),
            stall=_seconds(report.stall),
            verdict=_seconds(report.verdict_at),
        ),
    )
    plain: dict[str, object] = _plain(contract)
    return plain


def _line(frame: Frame | None) -> FrameJSON | None:
    return None if frame is None else _frame(frame)


def _frame(frame: Frame) -> FrameJSON:
    return FrameJSON(file=frame.file, line=frame.line, function=frame.function)


def _slow(slow: Slow | None) -> SlowJSON | None:
    if slow is None:
        return None
    return SlowJSON(
        rank=slow.rank,
        ranks=[*slow.ranks],
        where=_line(slow.where),
        share=round(slow.share, 2),
        kind=slow.kind,
        seconds=round(slow.seconds, 2),
    )


def _parting(parting: Parting | None) -> PartingJSON | None:
    """Where ranks parted; ranks are text where they are keys, as JSON has them."""
    if parting is None:
        return None
    return PartingJSON(
        kind=parting.kind,
        where=_line(parting.where),
        source=parting.source or None,
        branches=[BranchJSON(label=way.label, ranks=[*way.ranks]) for way in parting.branches],
        values={
            name: {str(rank): value for rank, value in by_rank.items()}
            for name, by_rank in parting.values.items()
        },
        differ=[*parting.differ],
        guards=[
            GuardJSON(ranks=[*guard.ranks], where=_frame(guard.where), source=guard.source)
            for guard in parting.guards
        ],
        history=[
            MetJSON(
                group=met.group,
                seq=met.seq,
                calls=[*map(_call, met.calls)],
            )
            for met in parting.history
        ],
    )


def _call(call: Call) -> CallJSON:
    return CallJSON(ranks=[*call.ranks], op=call.op, where=_line(call.where))


def _finding(finding: Finding | None) -> dict[str, object] | None:
    """What the cause has found; a finding is told by its fields."""
    if finding is None:
        return None
    return {"kind": finding.kind} | {
        field.name: _field(getattr(finding, field.name)) for field in fields(finding)
    }


def _field(value: object) -> object:
    """A field of a finding: a line is told as everywhere, the calls of a mismatch by their fields."""
    if isinstance(value, Call):
        return _call(value)
    if isinstance(value, Frame):
        return _line(value)
    return [_field(element) for element in value] if isinstance(value, tuple) else value


def _job(job: Job) -> JobJSON:
    """The job as a whole; of one that is known by what it has left, not how it was started."""
    return JobJSON(
        command=[*job.command] or None,
        launcher=job.launcher or None,
        world_size=job.world_size,
        nodes_seen=job.nodes_seen,
        attempt=job.attempt,
        exit_code=job.exit_code,
        signal=job.signal,
        hardware=job.hardware or None,
        backends=[*job.backends],
        test=job.test,
    )


def _rank(view: RankView) -> RankJSON:
    process = view.process or ProcessView(0, "rank")
    return RankJSON(
        rank=view.rank,
        local_rank=view.local_rank,
        node=view.node,
        host=view.host or None,
        pid=process.pid if process.pid > 0 else None,
        state=view.state,
        where=_line(where_of(process)),
        stack=[*map(_frame, stack_of(process))],
        waits=[*map(_wait, process.waits)],
        children=[*map(_child, view.children)],
        ports=_ports(process),
        exit_code=process.exit_code,
        signal=process.signal,
        error=process.error.text if process.error else None,
    )


def _ports(process: ProcessView) -> list[PortJSON]:
    return [PortJSON(address=port.address, port=port.port, role=port.role) for port in process.ports]


def _wait(wait: Wait) -> WaitJSON:
    """A wait of any kind; what its kind does not have is null or empty."""
    return WaitJSON(
        kind=wait.kind,
        op=wait.op,
        group=wait.group if isinstance(wait, ForRanks) else None,
        group_ranks=[*_members(wait)] if isinstance(wait, Communication) else [],
        seq=wait.seq if isinstance(wait, InCollective) else None,
        sizes=[[*size] for size in wait.sizes] if isinstance(wait, Communication) else [],
        peers=[*wait.peers] if isinstance(wait, InP2P | InRPC) else [],
        key=subject(wait),
        detail=", ".join(wait.values) or None if isinstance(wait, OnCondition) else None,
        thread=wait.thread,
        where=_line(wait.where),
    )


def _members(wait: Communication) -> tuple[int, ...]:
    return wait.members if len(wait.members) <= MOST_MEMBERS else ()


def _child(child: ChildView) -> ChildJSON:
    process = child.process
    return ChildJSON(
        kind=process.kind,
        worker_id=child.worker_id,
        pid=process.pid,
        state=process.state,
        joined_as_rank=child.joined_as_rank,
        where=_line(where_of(process)),
        stack=[*map(_frame, stack_of(process))],
        ports=_ports(process),
        exit_code=process.exit_code if process.signal is None else -process.signal,
        error=process.error.text if process.error else None,
    )


def _plain(value: Any) -> Any:
    """Dictionaries in place of parts of the contract, and every text as it may be printed."""
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return printable(value) if isinstance(value, str) else value


def _seconds(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
