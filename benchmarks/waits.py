"""What a learner waits for: the first picture after a click, and each run of a lab."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.labs.lab import find_lab
from helpers.session import Sample

LABS = ("01", "02", "03", "04", "05")
CLICKS = 3

RANK_SHOWN = ".sr-rank"
"""A row of the panel's table of ranks."""


def waits(labs: Sequence[str] = LABS, *, browser: bool = True) -> Iterator[str]:
    """The parts of each broken and fixed run, and what follows a click in a browser.

    Args:
        labs: their numbers.
        browser: open lab 05 in Chromium and press its button.
    """
    yield "| run | first look | first rank | to the stall | to the verdict | in all | longest part |"
    yield "|---|---|---|---|---|---|---|"
    for number in labs:
        for program in ("broken", "fixed"):
            yield _run(number, program)
    yield ""
    yield (
        "Seconds. The first look is the first that the panel could draw; until the first rank, the "
        "launcher imports torch and starts processes; to the stall or the end, the ranks import, meet "
        "and train; from a stall to its verdict, the instrument makes sure; the rest ends the job."
    )
    if browser:
        yield ""
        yield from _clicks()


def _run(number: str, program: str) -> str:
    """One row: when each part of a run has ended, and the longest part."""
    began = time.monotonic()
    looked: list[float] = []

    def note(event: object) -> None:
        if isinstance(event, Sample) and not looked:
            looked.append(time.monotonic() - began)

    session = find_lab(number).session(program)
    session.subscribe(note)
    report = session.start().wait()
    over = time.monotonic() - began
    marks = {
        "start of the first rank": report.first_rank,
        "imports, meeting and work": report.stall if report.stall is not None else report.verdict_at,
        "making sure": report.verdict_at,
        "ending the job": over,
    }
    parts, last = {}, 0.0
    for name, at in marks.items():
        if at is not None:
            parts[name], last = at - last, at
    longest = max(parts, key=lambda name: parts[name])
    cells = [_seconds(looked[0] if looked else None), *map(_seconds, (report.first_rank, report.stall))]
    cells += [_seconds(report.verdict_at), _seconds(over)]
    return f"| {number} {program} | {' | '.join(cells)} | {longest}, {_seconds(parts[longest])} |"


def _clicks() -> Iterator[str]:
    """Seconds from the button of a fresh panel to what it shows."""
    from browser_bench import CHROMIUM, notebook_page, panel_on, run_cell, serve

    if CHROMIUM is None:
        yield "Without a browser: there is no Chromium on this machine."
        return
    lab = "05_spawn_ports"
    answered, ranks = [], []
    with (
        tempfile.TemporaryDirectory() as folder,
        serve(Path(folder), lab) as jupyter,
        notebook_page(jupyter, f"{lab}/{lab}.ipynb") as page,
    ):
        for _ in range(CLICKS):
            run_cell(page, "open_lab")
            panel = panel_on(page)
            button = panel.get_by_role("button", name="Run fixed")
            button.wait_for()
            assert panel.locator(RANK_SHOWN).count() == 0, "the panel is not fresh"
            stop = panel.get_by_role("button", name="Stop").and_(page.locator(":enabled"))
            clicked = time.monotonic()
            button.click()
            stop.wait_for()
            answered.append(time.monotonic() - clicked)
            panel.locator(RANK_SHOWN).first.wait_for()
            ranks.append(time.monotonic() - clicked)
            panel.get_by_text("Run fixed has ended, nothing left").first.wait_for()
    yield (
        f"In Chromium, from a click on *Run fixed* of lab 05, the median of {CLICKS}: "
        f"{_seconds(statistics.median(answered))} until *Stop* can be pressed, "
        f"{_seconds(statistics.median(ranks))} until the first rank is shown."
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
