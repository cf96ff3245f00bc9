"""The title, the status and the verdict of a run as HTML. Pure; every outside text is escaped."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.facts import Report, Snapshot, Verdict
from ...model.wording import place_in
from ...report.markdown import paragraph, section
from ...report.markup import code, folded, items, text
from ...report.timeline import timeline
from .style import OUTCOMES

WIDTH = 900
"""Pixels of the picture; it shrinks where there is less room."""


def header(title: str, hardware: str) -> str:
    """The panel's first line: its title and what the job runs on."""
    return (
        f'<span class="sr-title">{text(title)}</span><span class="sr-hardware">{text(hardware)}</span>'
    )


def status_line(said: str) -> str:
    """One sentence on the run."""
    return text(said)


def recorded(said: str) -> str:
    """The label that tells a recording from a live run."""
    return f'<div class="sr-recorded"><strong>Recorded.</strong> {text(said)}</div>'


def lanes(
    snapshots: Sequence[Snapshot],
    verdict: Verdict | None = None,
    *,
    verdict_at: float | None = None,
    until: float | None = None,
    reveal: bool = True,
) -> str:
    """What every rank did from when to when, as a picture; arguments as for `timeline`."""
    if not any(view.process for snapshot in snapshots for view in snapshot.ranks):
        return ""
    picture = timeline(
        snapshots, verdict, width=WIDTH, verdict_at=verdict_at, until=until, reveal=reveal
    )
    return f'<div class="sr-lanes">{picture}</div>'


def live_verdict(verdict: Verdict) -> str:
    """What is known while the run goes on: the verdict, or a suspicion and who waits for whom."""
    if verdict.outcome in ("error", "hang"):
        return _announce(*_verdict(verdict))
    return _announce(f"<p>{text(verdict.suspicion)}</p>") if verdict.suspicion else ""


def final_verdict(report: Report) -> str:
    """The verdict of a run that is over."""
    return _announce(*_verdict(report.verdict))


def advice(report: Report) -> str:
    """What to do about a verdict, and, folded, why it is so; nothing for a run without a fault."""
    parts = []
    if report.fix:
        parts.append(f"<p><strong>What to do</strong></p>{section(report.fix)}")
    parts.append(folded("Why", section(report.explanation)))
    parts.append(folded("What follows from it", items(map(text, report.verdict.masked))))
    parts.append(folded("What could not be seen", items(map(text, report.snapshot.not_seen))))
    found = "".join(parts)
    return f'<div class="sr-advice">{found}</div>' if found else ""


def rendezvous(said: str) -> str:
    """Who has joined, above the ports; nothing while that is not known."""
    return f'<p class="sr-rendezvous"><strong>Rendezvous.</strong> {text(said)}</p>' if said else ""


def held_back() -> str:
    """What stands in place of a verdict that is not shown yet."""
    return _announce("<p>The verdict is there, and held back.</p>")


def _verdict(verdict: Verdict) -> tuple[str, str]:
    glyph, tone = OUTCOMES[verdict.outcome]
    cause = "" if verdict.cause == "none" else f": {code(verdict.cause)}"
    unproved = "" if verdict.proved else " (not proved)"
    where = f"<p>First at {code(place_in(verdict.where))}</p>" if verdict.where else ""
    outcome = f'<strong><span aria-hidden="true">{glyph}</span> {verdict.outcome}</strong>'
    return (
        f'<p class="sr-outcome">{outcome}{cause}{unproved}</p><p>{text(verdict.summary)}</p>{where}',
        tone,
    )


def _announce(body: str, tone: str = "plain") -> str:
    return f'<div class="sr-verdict sr-{tone}">{body}</div>'


def hints(texts: Sequence[str]) -> str:
    """Hints that unfold one by one: the next one shows when the one before it is open."""
    html = ""
    for number, said in reversed(list(enumerate(texts, start=1))):
        html = f"<details><summary>Hint {number}</summary>{paragraph(said)}{html}</details>"
    return html
