"""A report for a terminal and for a ticket."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from ..model.clauses import grouped
from ..model.facts import RankView, Report
from ..model.parting import Parting
from ..model.waits import InCollective
from ..model.wording import (
    by_number,
    group_name,
    node_name,
    one_line,
    place,
    place_in,
    spans,
    spoken,
    verdict_line,
)
from .parts import Row, table, what_to_do

WIDTH = 100
_GAP = "  "
MOST_NODES = 8
"""Nodes that a line names."""
MOST_ENTRIES = 32
"""Entries of a list."""

HEAD = ("rank", "state", "waits in, or ended with", "at")


def headline(report: Report) -> str:
    """`HANG (proved): collective-mismatch`."""
    outcome = report.verdict.outcome
    said = verdict_line(report.verdict, interrupted=report.interrupted)
    return outcome.upper() + said.removeprefix(outcome)


def facts(report: Report) -> list[tuple[str, str]]:
    """The short facts under the summary, as name and text; what is not known is left out."""
    verdict = report.verdict
    blockers = "; ".join(
        f"pid {blocker.pid} {blocker.what}: {blocker.command}" for blocker in verdict.blockers
    )
    named = [
        ("Cause", "" if _is_said(verdict.detail, report) else one_line(verdict.detail)),
        ("First at", place_in(verdict.where)),
        ("Parted at", parted_line(verdict.parting)),
        ("Calls differ", history_line(report)),
        ("Look first at", culprits_line(report)),
        ("In the way", one_line(blockers)),
        ("Job", job_line(report)),
        ("Nodes", nodes_line(report)),
        ("Command", one_line(" ".join(report.snapshot.job.command))),
        ("Seconds", seconds_line(report)),
    ]
    return [(name, text) for name, text in named if text]


def parted_line(parting: Parting | None) -> str:
    """`train.py:9, if rank == 0: rank 0 in its body, rank 1 after it; rank is 0 on rank 0, ...`."""
    if parting is None or parting.where is None:
        return guards_line(parting) if parting is not None else ""
    ways = ", ".join(f"{spoken(way.ranks)} {way.label}" for way in parting.branches)
    values = "; ".join(f"{name} is {_values(told)}" for name, told in telling(parting).items())
    rest = one_line(f"{ways}; {values}" if values else ways)
    said = f"{place(parting.where)}, {one_line(parting.source).rstrip(':')}"
    return f"{said}: {rest}" if rest else said


def guards_line(parting: Parting) -> str:
    """`one of train.py:9, if loss.isnan(); train.py:14, if due()`; empty where none is known."""
    told = "; ".join(f"{place(one.where)}, {one_line(one.source).rstrip(':')}" for one in parting.guards)
    return f"one of {told}" if len(parting.guards) > 1 else told and f"perhaps {told}"


def _values(told: Mapping[int, str]) -> str:
    return ", ".join(f"{value} on {spoken(ranks)}" for value, ranks in grouped(told).items())


def telling(parting: Parting) -> dict[str, Mapping[int, str]]:
    """The values worth a line: those that differ; without any, those that not all ranks have."""
    ranks = {rank for way in parting.branches for rank in way.ranks}
    partly = [name for name, told in parting.values.items() if told.keys() != ranks]
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
    """`torchrun, world size 2, cpu, gloo, exit code 1`."""
    job = report.snapshot.job
    parts = [job.launcher] if job.launcher else []
    if job.world_size is not None:
        parts.append(f"world size {job.world_size}")
    if job.nodes_seen != 1:
        parts.append(f"{job.nodes_seen} nodes seen")
    if job.attempt:
        parts.append(f"attempt {job.attempt}")
    parts += filter(None, (job.hardware, *job.backends))
    if job.exit_code is not None:
        parts.append(f"exit code {job.exit_code}")
    if job.signal is not None:
        parts.append(f"signal {job.signal}")
    return one_line(", ".join(parts))


def culprits_line(report: Report) -> str:
    """`rank 1`; of several nodes, `rank 2, 3 on node 1 (host n1)`."""
    culprits = frozenset(report.verdict.culprits)
    if not culprits:
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
    found: dict[tuple[int, str], tuple[RankView, set[int]]] = {}
    for view in by_number(report.snapshot.ranks):
        if view.rank is not None and view.process is not None:
            found.setdefault((view.node, view.host), (view, set()))[1].add(view.rank)
    return {node_name(view): ranks for view, ranks in found.values()} if len(found) > 1 else {}


def listed(parts: Sequence[str], most: int = MOST_ENTRIES) -> list[str]:
    """The parts; of too many the first ones, and how many more there are."""
    more = len(parts) - most
    return [*parts[:most], f"and {more} more"] if more > 0 else [*parts]


def seconds_line(report: Report) -> str:
    """`first rank 3.1, stall 9.0, verdict 11.2`; what never happened is left out."""
    times = {
        "first rank": report.first_rank,
        "stall": report.stall,
        "verdict": report.verdict_at,
    }
    return ", ".join(f"{name} {at:.1f}" for name, at in times.items() if at is not None)


def lists(report: Report) -> list[tuple[str, list[str]]]:
    """The lists at the end, as title and entries; empty ones are left out."""
    verdict = report.verdict
    named = [
        ("Evidence", [entry for entry in verdict.evidence if not _is_said(entry, report)]),
        ("Follows from it (masked errors)", verdict.masked),
        ("Could not be seen", report.snapshot.not_seen),
        ("References", report.references),
    ]
    return [
        (title, listed([one_line(entry) for entry in entries])) for title, entries in named if entries
    ]


def to_text(report: Report) -> str:
    """What a terminal shows after a run: 100 columns, no colours; two or three lines for `ok`."""
    from .markdown import plain  # here: beside a job that runs, nobody needs a parser of Markdown

    lines = [headline(report), *_wrap(one_line(report.verdict.summary))]
    if report.verdict.outcome == "ok":
        unseen = "; ".join(one_line(entry) for entry in report.snapshot.not_seen)
        seen = [one_line(entry) for entry in report.verdict.evidence]
        return "\n".join([*lines, job_line(report), *seen, *([f"Not seen: {unseen}"] if unseen else [])])
    lines.append("")
    for name, text in facts(report):
        lines += _wrap(text, first=f"{name + ':':<15}", rest=" " * 15)
    rows = table(report)
    if rows:
        lines += ["", *_table(rows)]
    for title, section in (("What to do", what_to_do(report)), ("Why", report.explanation)):
        if section:
            lines += ["", title, *plain(section, WIDTH)]
    for title, entries in lists(report):
        lines += ["", title]
        for entry in entries:
            lines += _wrap(entry, first="- ", rest="  ")
    return "\n".join(lines)


def to_markdown(report: Report) -> str:
    """The same for a ticket; text from the job cannot break the markup."""
    parts = [f"## {_plain(headline(report))}"]
    if report.verdict.summary:
        parts.append(_plain(one_line(report.verdict.summary)))
    parts.append("\n".join(f"- {name}: {_code(text)}" for name, text in facts(report)))
    if report.verdict.outcome != "ok":
        rows = table(report)
        if rows:
            parts.append("\n".join(_markdown_table(rows)))
        for title, section in (("What to do", what_to_do(report)), ("Why", report.explanation)):
            if section:
                parts.append(f"### {title}\n\n{section}")
    for title, entries in lists(report):
        show = str if title == "References" else _plain
        parts.append(f"### {title}\n\n" + "\n".join(f"- {show(entry)}" for entry in entries))
    return "\n\n".join(parts) + "\n"


def _is_said(text: str, report: Report) -> bool:
    """True for what the summary has said already, with or without whose it is: an error may be long."""
    said, line = (one_line(one).casefold() for one in (report.verdict.summary, text))
    return line in said or (line.partition(": ")[2] or line) in said


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
    cells = [HEAD, *[(row.label, row.state, "; ".join(row.doing), row.at) for row in rows]]
    label = min(max(len(cell[0]) for cell in cells), 16)
    state = max(len(cell[1]) for cell in cells)
    space = WIDTH - label - state - 3 * len(_GAP)
    at = min(max(len(cell[3]) for cell in cells), space * 2 // 5)
    widths = (label, state, min(max(len(cell[2]) for cell in cells), space - at), at)
    lines = _line(HEAD, widths)
    for row, cell in zip(rows, cells[1:], strict=True):
        lines += _line(cell, widths)
        for child in row.children:
            lines += _wrap(child, first="    each: " if len(row.ranks) > 1 else "    ", rest=" " * 8)
    return lines


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


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    for row in rows:
        told = [*map(_cell, row.doing), *map(_plain, row.children)]
        cells = (_plain(row.label), row.state, "<br>".join(told), _cell(row.at))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(text: str) -> str:
    """Text as code, but as plain text with a vertical bar, which would end the cell in code."""
    return _plain(text) if "|" in text else _code(text)


def _code(text: str) -> str:
    """Text as code; the fence is longer than any run of backticks inside."""
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """Text as text: no markup and no tags, also in a cell of a table."""
    shown = re.sub(r"([\\`*\[\]~])", r"\\\1", text)
    shown = re.sub(r"(?<![0-9A-Za-z])_+|_+(?![0-9A-Za-z])", lambda run: "\\_" * len(run[0]), shown)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"^(?:(?=[#+-])|(\d+)(?=[.)]))", r"\1\\", shown.replace("|", "&#124;"))
