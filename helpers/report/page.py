"""A report as one HTML file: no script, nothing loaded from elsewhere, light or dark by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from ..model.facts import ProcessView, Report, Snapshot
from ..model.redaction import Source
from ..model.wording import by_number, child_name, node_name, one_line, place_in, rank_name
from .alike import on_several_nodes
from .markdown import section
from .parted import parted_html
from .parts import fits, table
from .slow import shares
from .text import HEAD, facts, headline, lists
from .timeline import timeline

MOST_PROCESSES = 64
"""Processes that are listed, those of culprits first; the rest is counted."""

_PAGE = Environment(
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    # A text of the job stays on its line and loses its terminal codes; it is escaped after that.
    finalize=lambda value: one_line(value) if type(value) in (str, Source) else value,
).from_string(files(__package__).joinpath("page.html").read_text(encoding="utf-8"))


def to_html(report: Report, snapshots: Sequence[Snapshot] = ()) -> str:
    """One self-contained page. Everything that comes from the job is escaped.

    Args:
        report: what it says.
        snapshots: of the run, in the order of time, for its picture; without any there is none.
    """
    picture = ""
    if snapshots:
        picture = timeline(
            snapshots,
            report.verdict,
            width=960,
            verdict_at=report.verdict_at,
            shares=shares(report.verdict),
        )
    rows, processes = table(report), list(_processes(report))
    return _PAGE.render(
        report=report,
        headline=headline(report),
        picture=Markup(picture),
        parted=Markup(parted_html(report.verdict.parting)),
        facts=facts(report),
        columns=HEAD,
        rows=rows,
        nodes=any(row.on for row in rows),
        processes=processes[:MOST_PROCESSES],
        more=len(processes) - MOST_PROCESSES,
        texts=[
            ("What to do", Markup(section(fits(report)))),
            ("All fixes" if report.fitting else "What to do", Markup(section(report.fix))),
            ("How to confirm", Markup(section(report.confirm))),
            ("Why", Markup(section(report.explanation))),
        ],
        folded=("All fixes",),
        lists=lists(report),
        place_in=place_in,
    ).lstrip()


def _processes(report: Report) -> Iterator[tuple[str, ProcessView]]:
    """The ranks and their children, by name, those of culprits first."""
    views, culprits = by_number(report.snapshot.ranks), frozenset(report.verdict.culprits)
    several = on_several_nodes(views)
    for view in sorted(views, key=lambda view: view.rank not in culprits):
        name = f"{rank_name(view)} on {node_name(view)}" if several else rank_name(view)
        if view.process:
            yield name, view.process
        for child in view.children:
            yield f"{name}, {child_name(child)}", child.process
