"""A report for a terminal and for a ticket."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from ..model.clauses import values_of
from ..model.facts import RankView, Report, Verdict
from ..model.frames import Frame
from ..model.parting import Parting
from ..model.waits import InCollective
from ..model.wording import (
    by_number,
    group_name,
    node_name,
    one_line,
    place,
    place_in,
    plural,
    shortened,
    spans,
    spoken,
    verdict_line,
)
from .parts import Row, fits, quoted, sources, table, way_text
from .slow import help_line, slow_line

WIDTH = 100
_GAP = "  "
MOST_NODES = 8
"""Nodes that a line names."""
MOST_MASKED = 4
"""Errors that a line names."""
MOST_ENTRIES = 32
"""Entries of a list."""

HEAD = ("rank", "state", "waits in, or ended with", "at")

SHORTEST = 24
"""Letters of a line of source that are shown, if it is longer, at least."""

_UNMOVED = re.compile(r", unmoved for \d+ s$")

_LINKS = frozenset(
    (
        *("a", "again", "against", "and", "are", "at", "by", "from", "group", "has", "have", "in", "is"),
        *("it", "its", "of", "on", "the", "to", "wait", "waits", "waiting", "was", "were", "with"),
    )
)
"""Words that say nothing by themselves."""


def headline(report: Report) -> str:
    """`HANG (proved): collective-mismatch`."""
    outcome = report.verdict.outcome
    line = verdict_line(report.verdict, interrupted=report.interrupted)
    return outcome.upper() + line.removeprefix(outcome)


def facts(report: Report) -> list[tuple[str, str]]:
    """The short facts under the summary, as name and text; what is not known is left out."""
    verdict = report.verdict
    blockers = "; ".join(
        f"pid {blocker.pid} {blocker.what}: {blocker.command}" for blocker in verdict.blockers
    )
    entries = [
        ("Cause", one_line(verdict.detail) if _adds(verdict.detail, verdict.summary) else ""),
        ("Line", where_line(report)),
        ("Decided by", parted_line(verdict.parting)),
        ("Calls differ", history_line(report)),
        ("Printed only by", printed_line(verdict)),
        ("Slow", slow_line(verdict)),
        ("What helps", help_line(verdict)),
        ("Odd one out", culprits_line(report)),
        ("In the way", one_line(blockers)),
        ("Job", "; ".join(filter(None, (job_line(report), seconds_line(report))))),
        ("Nodes", nodes_line(report)),
        ("Command", one_line(" ".join(report.snapshot.job.command))),
    ]
    return [(name, text) for name, text in entries if text]


def where_line(report: Report) -> str:
    """`train.py:41  dist.barrier()`, the line of the first cause."""
    where = report.verdict.where
    return quoted(where, sources(report.snapshot)) or place_in(where)


def parted_line(parting: Parting | None) -> str:
    """`train.py:9  if rank == 0: true on rank 0, false on rank 1; rank is 0 on rank 0, ...`."""
    if parting is None or parting.where is None:
        return guards_line(parting) if parting is not None else ""
    ways = ", ".join(way_text(parting, way) for way in parting.branches)
    values = "; ".join(values_of(name, by_rank) for name, by_rank in telling(parting).items())
    rest = one_line("; ".join(filter(None, (ways, values))))
    statement = f"{place(parting.where)}  {one_line(parting.source).rstrip(':')}"
    return f"{statement}: {rest}" if rest else statement


def guards_line(parting: Parting) -> str:
    """`one of train.py:9  if loss.isnan(); train.py:14  if due()`; empty where none is known."""
    guards = "; ".join(f"{place(g.where)}  {one_line(g.source).rstrip(':')}" for g in parting.guards)
    return f"one of {guards}" if len(parting.guards) > 1 else guards and f"perhaps {guards}"


def printed_line(verdict: Verdict) -> str:
    """`rank 0: "validation loss rose, ending early"; rank 1: "saving"`."""
    return "; ".join(f'{spoken(line.ranks)}: "{shortened(line.text)}"' for line in verdict.printed)


def telling(parting: Parting) -> dict[str, Mapping[int, str]]:
    """The values worth a line: those that differ; without any, those that not all ranks have."""
    ranks = {rank for way in parting.branches for rank in way.ranks}
    partly = [name for name, by_rank in parting.values.items() if ranks and by_rank.keys() != ranks]
    return {name: parting.values[name] for name in parting.differ or partly}


def history_line(report: Report) -> str:
    """`from #57 on: broadcast on rank 0 (train.py:63), all_gather on ranks 1 and 2 (train.py:41)`.

    Nothing where they differ only in the calls in which the ranks wait.
    """
    parting = report.verdict.parting
    waits = {
        (wait.group, wait.seq)
        for view in report.snapshot.ranks
        for wait in (view.process.waits if view.process else ())
        if isinstance(wait, InCollective)
    }
    met = parting.history[0] if parting is not None and parting.history else None
    if met is None or (met.group, met.seq) in waits:
        return ""
    calls = ", ".join(f"{call.op} on {spoken(call.ranks)} ({place(call.where)})" for call in met.calls)
    return f"from #{met.seq} of {group_name(met.group)} on: {calls}"


def job_line(report: Report) -> str:
    """`torchrun, world size 2, cpu, gloo, exit code 1, in test_a.py::test_b`."""
    job = report.snapshot.job
    parts = [job.launcher] if job.launcher else []
    numbers = [view.rank for view in report.snapshot.ranks if view.rank is not None]
    if job.world_size is not None:
        parts.append(f"world size {job.world_size}")
    elif numbers and not report.snapshot.timed:
        count = sum(view.state != "unseen" for view in report.snapshot.ranks)
        ranks = plural(range(max(numbers) + 1), "rank", "ranks")
        parts.append(f"at least {max(numbers) + 1} {ranks}, {count} of them seen")
    if job.nodes_seen != 1:
        parts.append(f"{job.nodes_seen} nodes seen")
    if job.attempt:
        parts.append(f"attempt {job.attempt}")
    parts += filter(None, (job.hardware, *job.backends))
    if job.exit_code is not None:
        parts.append(f"exit code {job.exit_code}")
    if job.signal is not None:
        parts.append(f"signal {job.signal}")
    if job.test is not None:
        parts.append(f"in {job.test}")
    return one_line(", ".join(parts))


def culprits_line(report: Report) -> str:
    """`rank 1`; of several nodes, `rank 2, 3 on node 1 (host n1)`.

    Nothing where the summary begins with them, or where they are all ranks.
    """
    culprits = frozenset(report.verdict.culprits)
    ranks = {view.rank for view in report.snapshot.ranks}
    in_summary = report.verdict.summary.casefold().startswith(f"{spoken(report.verdict.culprits)} ")
    if not culprits or ranks <= culprits or (in_summary and not _nodes(report)):
        return ""
    on = {name: ranks & culprits for name, ranks in _nodes(report).items()}
    parts = [f"rank {spans(ranks)} on {name}" for name, ranks in on.items() if ranks]
    return one_line("; ".join(listed(parts, MOST_NODES))) or f"rank {spans(culprits)}"


def nodes_line(report: Report) -> str:
    """`node 0 (host n0): rank 0, 1; node 1 (host n1): rank 2, 3`; nothing of a job on one node."""
    parts = [f"{name}: rank {spans(sorted(ranks))}" for name, ranks in _nodes(report).items()]
    return one_line("; ".join(listed(parts, MOST_NODES)))


def _nodes(report: Report) -> dict[str, set[int]]:
    """Each node that was seen, in words, and the ranks on it; nothing of a job on one node."""
    nodes: dict[tuple[int, str], tuple[RankView, set[int]]] = {}
    for view in by_number(report.snapshot.ranks):
        if view.rank is not None and view.process is not None:
            nodes.setdefault((view.node, view.host), (view, set()))[1].add(view.rank)
    return {node_name(view): ranks for view, ranks in nodes.values()} if len(nodes) > 1 else {}


def listed(parts: Sequence[str], most: int = MOST_ENTRIES) -> list[str]:
    """The parts; of too many the first ones, and how many more there are."""
    more = len(parts) - most
    return [*parts[:most], f"and {more} more"] if more > 0 else [*parts]


def seconds_line(report: Report) -> str:
    """`stall at 9.0 s, verdict at 11.2 s`; what never happened is left out."""
    times = {
        "stall": report.stall,
        "verdict": report.verdict_at,
    }
    return ", ".join(f"{name} at {at:.1f} s" for name, at in times.items() if at is not None)


def lists(report: Report) -> list[tuple[str, list[str]]]:
    """The lists at the end, as title and entries; empty ones are left out."""
    verdict = report.verdict
    sections = [
        ("Evidence", [entry for entry in verdict.evidence if _adds(entry, verdict.summary)]),
        ("Follows from it (masked errors)", verdict.masked),
        ("Could not be seen", report.snapshot.not_seen),
        ("References", report.references),
    ]
    return [
        (title, listed([one_line(entry) for entry in entries])) for title, entries in sections if entries
    ]


def to_text(report: Report) -> str:
    """What a terminal shows after a run: 100 columns, no colours; two or three lines for `ok`.

    Why it happens, how to confirm the fix and the references are in `explain`, in the page and in JSON.
    """
    from .markdown import plain  # here: beside a job that runs, nobody needs a parser of Markdown

    verdict = report.verdict
    lines = [headline(report), *_wrap(one_line(verdict.summary))]
    if verdict.outcome == "ok":
        return "\n".join([*lines, *_of_good_run(report)])
    rows = table(report)
    elsewhere = (*_ELSEWHERE, *(("Line",) if _has_row(verdict.where, rows) else ()))
    stated = [
        line
        for name, text in (*facts(report), ("Masked errors", masked_line(verdict)))
        if text and name not in elsewhere
        for line in _wrap(text, first=f"{name + ':':<17}", rest=" " * 17)
    ]
    for part in (stated, _table(rows) if rows else []):
        lines += ["", *part] if part else []
    if report.fix:
        fix = fits(report) or report.fix
        lines += ["", "What to do", *plain(fix, WIDTH)]
        if "stuck-ranks explain" not in " ".join(fix.split()):  # which tells of this case in particular
            more = "Why, other fixes and how to confirm" if report.fitting else "Why, and how to confirm"
            lines += [f"  {more}: stuck-ranks explain {verdict.cause}"]
    return "\n".join([*lines, *_lists(report, shown="\n".join(lines))])


def _of_good_run(report: Report) -> list[str]:
    """The job, what was noteworthy, and what could not be seen."""
    unseen = "; ".join(map(one_line, report.snapshot.not_seen))
    evidence = map(one_line, report.verdict.evidence)
    slow = _wrap(f"Slow: {slow_line(report.verdict)}") if slow_line(report.verdict) else []
    helps = _wrap(f"What helps: {help_line(report.verdict)}") if help_line(report.verdict) else []
    return [job_line(report), *slow, *helps, *evidence, *([f"Not seen: {unseen}"] if unseen else [])]


def _lists(report: Report, shown: str) -> list[str]:
    """The lists that a terminal shows, without what is known already."""
    lines: list[str] = []
    for title, entries in lists(report):
        new = [entry for entry in entries if title != "Evidence" or _adds(entry, shown)]
        if new and title in _SHOWN:
            lines += ["", title, *(line for e in new for line in _wrap(e, first="- ", rest="  "))]
    return lines


_ELSEWHERE = ("Command", "Cause")
"""Facts that a terminal does not show: the command has been typed there, and the summary says more."""

_SHOWN = ("Evidence", "Could not be seen")
"""Lists that a terminal shows."""


def masked_line(verdict: Verdict) -> str:
    """`RuntimeError (rank 0), ChildFailedError (launcher)`: what follows from the first event."""
    types = dict.fromkeys(map(_type_and_whose, verdict.masked))
    return ", ".join(listed([*types], MOST_MASKED))


def _type_and_whose(masked: str) -> str:
    kind = re.match(r"[\w.]+", masked)
    whose = re.search(r" \((?:rank \d+|launcher)\)$", masked)
    return (kind[0] if kind else shortened(masked)) + (whose[0] if whose else "")


def brief(report: Report) -> str:
    """At most eight lines, to paste: outcome, who, call and line, what decided, the fix."""
    shown = {
        name: text
        for name, text in facts(report)
        if name in ("Line", "Decided by", "Printed only by", "Slow", "In the way", "Job")
    }
    fixes = [f"Fix: {one_line(fix.advice)}" for fix in report.fitting[:1]]
    return "\n".join(
        [
            headline(report),
            *([one_line(report.verdict.summary)] if report.verdict.summary else []),
            *(f"{name}: {text}" for name, text in shown.items()),
            *fixes,
        ]
    )


def _has_row(where: Frame | None, rows: Sequence[Row]) -> bool:
    """True for a line that the table shows."""
    return any(row.at == place_in(where) for row in rows)


def _adds(text: str, shown: str) -> bool:
    """True for a sentence with a word or a number that has not been said."""
    return not _words(_UNMOVED.sub("", text)) <= _words(shown) | _LINKS


def _words(text: str) -> set[str]:
    return {*re.findall(r"[\w.#-]*\w", text.casefold())}


def _wrap(text: str, first: str = "", rest: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        break_long_words=False,  # a path that is broken can no longer be copied
    )


def _table(rows: Sequence[Row]) -> list[str]:
    cells = [HEAD, *[(row.label, row.state, "; ".join(row.doing), row.line) for row in rows]]
    label = min(max(len(cell[0]) for cell in cells), 16)
    state = max(len(cell[1]) for cell in cells)
    space = WIDTH - label - state - 3 * len(_GAP)
    doing = min(max(len(cell[2]) for cell in cells), space // 2)
    widths = (label, state, doing, space - doing)
    lines = _line(HEAD, widths)
    for row, cell in zip(rows, cells[1:], strict=True):
        lines += _line((*cell[:3], _cut(row, widths[3])), widths)
        for child in row.children:
            lines += _wrap(child, first="    each: " if len(row.ranks) > 1 else "    ", rest=" " * 8)
    return lines


def _cut(row: Row, width: int) -> str:
    """The line of a row with as much of its source as there is room for."""
    at, _, source = row.line.partition("  ")
    if len(row.line) <= width or not source:
        return row.line
    room = width - len(at) - len(_GAP)
    if room >= SHORTEST:
        return f"{at}  {source[: room - 4].rstrip()} ..."
    return f"{at}  {source}" if len(source) <= width else f"{at}  {source[: width - 4].rstrip()} ..."


def _line(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    columns = [
        textwrap.wrap(cell, width, break_on_hyphens=False, break_long_words=False) or [""]
        for cell, width in zip(cells, widths, strict=True)
    ]
    height = max(len(column) for column in columns)
    return [
        _GAP.join(
            (column[index] if index < len(column) else "").ljust(width)
            for column, width in zip(columns, widths, strict=True)
        ).rstrip()
        for index in range(height)
    ]
