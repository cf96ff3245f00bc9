"""Tables and differences of a lab as text and HTML; the panel only displays them."""

from __future__ import annotations

import difflib
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from html import escape

import msgspec

from ..model.facts import Report
from ..model.frames import Frame
from ..model.wording import spans, spoken
from ..report.markdown import inline
from ..report.slow import does, shares
from ..report.stable import chosen_by_chance
from .declaration import BY_CHANCE, Document
from .lab import Lab
from .questions import Claim
from .stage import Stage

_COLUMN = 44
"""Characters after which a cell of a text table goes on in the next line."""

_DIFF = {
    "+": ("var(--jp-success-color1, #1b7f3b)", "added"),
    "-": ("var(--jp-error-color1, #b3261e)", "removed"),
    "@": ("var(--jp-info-color1, #0b57d0)", "place"),
}


class Table(msgspec.Struct, frozen=True):
    """A table that shows itself as text and as HTML.

    Attributes:
        heads: titles of the columns.
        rows: cells, each row as long as `heads`.
        note: a line above the table, or nothing.
        emphasis: whether cells may have *emphasised* words; not where a cell holds a text of the job.
    """

    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""
    emphasis: bool = False

    def __repr__(self) -> str:
        table = [
            [textwrap.wrap(cell, _COLUMN) or [""] for cell in row] for row in (self.heads, *self.rows)
        ]
        widths = [max(len(line) for row in table for line in row[at]) for at in range(len(self.heads))]
        lines = textwrap.wrap(self.note, 3 * _COLUMN)
        for number, row in enumerate(table):
            for parts in itertools.zip_longest(*row, fillvalue=""):
                cells = (part.ljust(width) for part, width in zip(parts, widths, strict=True))
                lines.append("  ".join(cells).rstrip())
            if number == 0:
                lines.append("  ".join("-" * width for width in widths))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        heads = "".join(f'<th scope="col" style="text-align:left">{inline(h)}</th>' for h in self.heads)
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:left">{inline(cell, strong=self.emphasis)}</td>' for cell in row
            )
            + "</tr>"
            for row in self.rows
        )
        note = f"<p>{inline(self.note)}</p>" if self.note else ""
        return f"{note}<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"


class Difference(msgspec.Struct, frozen=True):
    """What changes from one program to another, as a unified diff.

    Attributes:
        lines: of the diff, without line ends; none when the programs are equal.
    """

    lines: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(self.lines) or "no difference"

    def _repr_html_(self) -> str:
        return f"<pre>{'<br>'.join(map(_diff_line, self.lines)) or 'no difference'}</pre>"


def difference(lab: Lab, old: str = "broken", new: str = "fixed") -> Difference:
    """The change from one program of a lab to another.

    Raises:
        LabError: the lab has no such program.
    """
    lab.command(old, {})
    lab.command(new, {})
    for turn in lab.file.turns.keys() & {old, new}:
        lab.my_copy(turn)
    before, after = lab.programs[old].file, lab.programs[new].file
    lines = difflib.unified_diff(
        (lab.folder / before).read_text(encoding="utf-8").splitlines(),
        (lab.folder / after).read_text(encoding="utf-8").splitlines(),
        before,
        after,
        lineterm="",
    )
    return Difference(tuple(lines))


def claims_table(document: Document, claims: Sequence[Claim]) -> Table:
    """Each claim of the source document, what became of it, and what shows that."""
    rows = tuple((claim.claim, claim.verdict, claim.shown_by) for claim in claims)
    note = (
        f"From an article in {document.language}, “{document.translated}”, {document.published}. "
        f"Our translation; the original title: {document.title}."
    )
    return Table(("What the document says", "What we found", "Shown by"), rows, note, emphasis=True)


def measured(runs: Sequence[tuple[str, Sequence[Mapping[str, object]]]], key: str) -> Table:
    """What the ranks of some runs have left under one key: a row a run, a column a rank."""
    ranks = max((len(results) for _, results in runs), default=0)
    rows = tuple(
        (name, *(str(result.get(key, "")) for result in results), *[""] * (ranks - len(results)))
        for name, results in runs
    )
    return Table((key, *(f"rank {number}" for number in range(ranks))), rows)


def waited_for(runs: Sequence[tuple[str, Report]]) -> Table:
    """For whom the others waited in some runs, where, and what took the time: a row a run."""
    rows = tuple((name, *_waited_for(report)) for name, report in runs)
    return Table(("", "waited for", "at", "what takes the time", "the others wait at"), rows)


def _waited_for(report: Report) -> tuple[str, str, str, str]:
    stragglers = shares(report.verdict)
    if not stragglers:
        return "nobody", "", "", ""
    first, *rest = stragglers
    lines = {_line(share.waits_at) for share in rest}
    return spoken(first.ranks), _line(first.where), does(first), ", ".join(sorted(lines))


Compared = tuple[str, Report, Stage]
"""The name of a run, its report, and how much of it may be shown."""


def comparison(first: Compared, second: Compared) -> Table:
    """Two runs side by side: what the causes decide, not pids, ports or seconds."""
    runs = [(_facts(report), stage) for _, report, stage in (first, second)]
    rows = tuple(
        (what, *(facts[what] if stage >= _STAGE_OF.get(what, stage) else HELD for facts, stage in runs))
        for what in runs[0][0]
    )
    return Table(("", first[0], second[0]), rows)


HELD = "held back"
"""In place of what a run may not show yet."""

_STAGE_OF = {
    "cause": Stage.CULPRITS,
    "culprits": Stage.CULPRITS,
    "where": Stage.STATEMENT,
    "errors of the culprits": Stage.CULPRITS,
}


def _facts(report: Report) -> dict[str, str]:
    verdict, snapshot = report.verdict, report.snapshot
    clean = sum(view.process is not None and view.process.exit_code == 0 for view in snapshot.ranks)
    errors = sorted(
        {
            process.error.type
            for view in snapshot.ranks
            if view.rank in verdict.culprits
            for process in [view.process, *(child.process for child in view.children)]
            if process is not None and process.error is not None
        }
    )
    world, by_chance = snapshot.job.world_size, chosen_by_chance(report)
    return {
        "outcome": verdict.outcome,
        "cause": verdict.cause,
        "culprits": BY_CHANCE if by_chance else spans(verdict.culprits) or "none",
        "where": "not the same each time" if by_chance else _line(verdict.where) or "none",
        "errors of the culprits": ", ".join(errors) or "none",
        "ranks that end with exit code 0": f"{clean} of {'unknown' if world is None else world}",
    }


def _line(frame: Frame | None) -> str:
    return f"{frame.file}:{frame.line}" if frame else ""


def _diff_line(line: str) -> str:
    colour = _DIFF.get(line[:1])
    if colour is None:
        return escape(line)
    return f'<span style="color:{colour[0]}" title="{colour[1]}">{escape(line)}</span>'
