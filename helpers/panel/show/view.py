"""The title, the status and the verdict of a run as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ...model.facts import Report, Snapshot, Verdict
from ...model.wording import one_line
from ...report.parts import table
from ...report.stable import stable
from ...report.text import HEAD
from ...report.timeline import timeline
from .style import INLINE, OUTCOMES
from .templates import html

WIDTH = 760
"""Pixels of the picture; it shrinks where there is less room."""


def header(title: str, hardware: str) -> str:
    """The panel's first line: its title and what the job runs on."""
    return html("header", title, hardware)


def status_line(said: str) -> str:
    """One sentence on the run."""
    return Markup.escape(one_line(said))


def recorded(said: str) -> str:
    """The label that tells a recording from a live run."""
    return html("recorded", said)


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
    """What is known while the run goes on: the verdict, or a suspicion."""
    if verdict.outcome in ("error", "hang"):
        return _verdict(verdict)
    return html("announced", verdict.suspicion) if verdict.suspicion else ""


def final_verdict(report: Report) -> str:
    """The verdict of a run that is over."""
    return _verdict(report.verdict)


def advice(report: Report) -> str:
    """What to do about a verdict and, folded, why it is so; nothing for a run without a fault."""
    found = html("advice", report).strip()
    return Markup('<div class="sr-advice">{}</div>').format(found) if found else ""


def rendezvous(said: str) -> str:
    """Which ranks have joined, above the ports; nothing while that is not known."""
    return html("rendezvous", said) if said else Markup("")


def left(report: Report, caption: str) -> str:
    """The ranks of a job that is over, those in the same place together, with their stacks."""
    return html("left", caption, HEAD, table(report))


def result(report: Report) -> str:
    """What is the same in every run, with a row for ranks that have the same to tell."""
    glyph, tone = OUTCOMES[report.verdict.outcome]
    told = stable(report)
    return html("result", told, glyph, INLINE.get(tone, "inherit"), dict(told.facts)["outcome"])


def held_back() -> str:
    """What is shown while a verdict is held back."""
    return html("announced", "The verdict is ready. Answer first to see it.")


def _verdict(verdict: Verdict) -> str:
    return html("verdict", verdict, *OUTCOMES[verdict.outcome])


def hints(texts: Sequence[str]) -> str:
    """Hints that unfold one by one: the next one shows when the one before it is open."""
    following = Markup("")
    for number, said in reversed(list(enumerate(texts, start=1))):
        following = html("hint", number, said, following)
    return following
