"""The title, the status and the verdict of a run as HTML."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ...labs.stage import Stage, shown
from ...model.facts import Report, Snapshot, Verdict
from ...model.slow import Share
from ...model.wording import one_line, spoken
from ...report.parts import table
from ...report.slow import help_line, slow_line
from ...report.slow import shares as shares_of
from ...report.stable import stable
from ...report.text import HEAD
from ...report.timeline import timeline
from .ranks import rank_table
from .style import INLINE, OUTCOMES
from .tabs import ranking
from .templates import html, inline

WIDEST = 900
"""Pixels beyond which a picture does not grow."""


def header(title: str, hardware: str) -> str:
    """The panel's first line: its title and what the job runs on."""
    return html("header", title, hardware)


def status_line(text: str) -> str:
    """One sentence on the run, with `code` in backticks."""
    return inline(one_line(text))


def recorded(text: str) -> str:
    """The label that tells a recording from a live run."""
    return html("recorded", text)


def lanes(
    snapshots: Sequence[Snapshot],
    verdict: Verdict | None = None,
    *,
    verdict_at: float | None = None,
    until: float | None = None,
    reveal: bool = True,
    width: int = WIDEST,
    shares: Sequence[Share] = (),
) -> str:
    """What every rank did from when to when, as a picture; arguments as for `timeline`."""
    if not any(view.process for snapshot in snapshots for view in snapshot.ranks):
        return ""
    picture = timeline(
        snapshots,
        verdict,
        width=min(width, WIDEST),
        verdict_at=verdict_at,
        until=until,
        reveal=reveal,
        shares=shares,
    )
    return f'<div class="sr-lanes" tabindex="0">{picture}</div>'


def live_verdict(verdict: Verdict, stage: Stage = Stage.FIX) -> str:
    """What is known while the run goes on, as far as a stage shows it: the verdict, or a suspicion."""
    if stage < Stage.STATEMENT:
        return ""
    if verdict.outcome in ("error", "hang"):
        return _verdict(verdict)
    text = verdict.suspicion or _slow(verdict, stage)
    return html("announced", text) if text else ""


def final_verdict(report: Report, stage: Stage = Stage.FIX) -> str:
    """The verdict of a run that is over, as far as a stage shows it."""
    verdict = report.verdict
    if stage >= Stage.STATEMENT:
        slow = _slow(verdict, stage)
        return _verdict(verdict) + (html("announced", slow) if slow else "")
    cause = odd = ""
    if stage >= Stage.CULPRITS:
        stragglers = shares_of(verdict)
        cause, odd = verdict.cause, spoken(stragglers[0].ranks if stragglers else verdict.culprits)
    return html("partly", verdict, *OUTCOMES[verdict.outcome], cause, odd)


def who_is_waited_for(verdict: Verdict, stage: Stage) -> str:
    """How the time of each rank went, as far as a stage shows it; nothing where nobody is waited for."""
    if stage < Stage.STATEMENT:
        return ""
    return ranking(shares_of(verdict), help_line(verdict) if stage >= Stage.FIX else "")


def _slow(verdict: Verdict, stage: Stage) -> str:
    """For whom the others wait, in a job that goes on or has ended well."""
    text = slow_line(verdict) if verdict.outcome in ("running", "ok") else ""
    helps = help_line(verdict) if stage >= Stage.FIX else ""
    return text and f"Slow: {text}. {helps}".strip()


def advice(report: Report, stage: Stage = Stage.FIX) -> str:
    """What to do about a verdict and, folded, why it is so; nothing for a run without a fault."""
    if stage < Stage.STATEMENT:
        return ""
    content = html("advice", report, stage >= Stage.FIX).strip()
    return Markup('<div class="sr-advice">{}</div>').format(content) if content else ""


def rendezvous(text: str) -> str:
    """Which ranks have joined, above the ports; nothing while that is not known."""
    return html("rendezvous", text) if text else Markup("")


def final_ranks(report: Report, caption: str) -> str:
    """The ranks of a job that is over, those in the same place together, with their stacks."""
    return html("left", caption, HEAD, table(report))


def result(report: Report, stage: Stage = Stage.FIX) -> str:
    """What is the same in every run, with a row for ranks that have the same to tell.

    Before the culprits may be shown, the table of all ranks as they were at the end.
    """
    glyph, tone = OUTCOMES[report.verdict.outcome]
    text = shown(stable(report), stage)
    summary = html("result", text, glyph, INLINE.get(tone, "inherit"), dict(text.facts)["outcome"])
    if stage >= Stage.CULPRITS:
        return summary
    return summary + rank_table(report.snapshot, "Ranks, as they were at the end", reveal=False)


def _verdict(verdict: Verdict) -> str:
    return html("verdict", verdict, *OUTCOMES[verdict.outcome])


def hints(texts: Sequence[str]) -> str:
    """Hints that unfold one by one: the next one shows when the one before it is open."""
    following = Markup("")
    for number, text in reversed(list(enumerate(texts, start=1))):
        following = html("hint", number, text, following)
    return following
