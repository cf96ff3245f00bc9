"""What a learner waits for: the first picture after a click, and each run of a lab."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from helpers.labs.lab import find_lab
from helpers.model.facts import Snapshot
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
    yield (
        "| run | first look | all ranks there | all have met | to the stall | to the verdict | in all "
        "| of it imports | longest part |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for number in labs:
        for program in ("broken", "fixed"):
            yield _run(number, program)
    yield ""
    yield (
        "Seconds. The first look is the first that the panel could draw; then the ranks are started "
        "(Lightning's first rank, once it has imported everything, starts the others); until all have "
        "met, they import and join the process group; to the stall or the end, they train; from a stall "
        "to its verdict, the instrument makes sure; the rest ends the job. Imports: all the time in "
        "which some launcher, rank or worker was importing."
    )
    yield ""
    yield _imports()
    if browser:
        yield ""
        yield from _clicks()


def _run(number: str, program: str) -> str:
    """One row: when each part of a run has ended, and the longest part."""
    began = time.monotonic()
    marks: dict[str, float] = {}
    importing, newest = 0.0, began

    def note(event: object) -> None:
        nonlocal importing, newest
        if not isinstance(event, Sample):
            return
        now, ranks = time.monotonic(), event.snapshot.ranks
        if _is_importing(event.snapshot):
            importing += now - newest
        newest = now
        marks.setdefault("the first look", now - began)
        if len(ranks) < wanted:
            return  # the first rank has not started the others
        if all(view.process is not None for view in ranks):
            marks.setdefault("starting the ranks", now - began)
        if all(view.joined for view in ranks):
            marks.setdefault("imports and meeting", now - began)

    lab = find_lab(number)
    wanted = lab.ranks(program, {})
    session = lab.session(program)
    session.subscribe(note)
    report = session.start().wait()
    over = time.monotonic() - began
    if report.stall is not None:
        marks["work"] = report.stall
        marks["making sure"] = report.verdict_at
    else:
        marks["work"] = report.verdict_at
    marks["ending the job"] = over
    parts, last = {}, 0.0
    for name, at in marks.items():
        parts[name], last = max(0.0, at - last), max(at, last)
    longest = max(parts, key=lambda name: parts[name])
    shown = [marks.get(name) for name in ("the first look", "starting the ranks", "imports and meeting")]
    cells = map(_seconds, (*shown, report.stall, report.verdict_at, over, importing))
    return f"| {number} {program} | {' | '.join(cells)} | {longest}, {_seconds(parts[longest])} |"


def _is_importing(snapshot: Snapshot) -> bool:
    ranks = [view for view in snapshot.ranks if view.process is not None]
    children = [child.process for view in ranks for child in view.children]
    processes = (*ranks, *children, *snapshot.launchers)
    return any(one.state in ("starting", "importing") for one in processes)


def _imports() -> str:
    """What the import of Lightning takes, and the packages that take most of it."""
    done = subprocess.run(
        (sys.executable, "-X", "importtime", "-c", "import lightning"),
        capture_output=True,
        text=True,
        check=True,
    )
    rows = (line.split("|") for line in done.stderr.splitlines() if line.count("|") == 2)
    took = {
        name.strip(): int(cumulative) / 1e6
        for _, cumulative, name in rows
        if cumulative.strip().isdigit()
    }
    parts = [
        f"{_seconds(took[name])} {what}"
        for name, what in {
            "torch": "torch",
            "torch._dynamo": "torch's compiler",
            "torchmetrics.functional.text.bert": (
                "transformers, which torchmetrics imports where it is installed, as lab 03 needs it"
            ),
        }.items()
        if name in took
    ]
    return (
        f"Importing Lightning takes {_seconds(took['lightning'])}, in each rank and in each spawned "
        f"worker; of that, {'; '.join(parts)}. Lightning's developers know of it: "
        "https://github.com/Lightning-AI/pytorch-lightning/issues/12786."
    )


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
            panel.get_by_text(
                "The run of fixed has finished; no process is left behind"
            ).first.wait_for()
    yield (
        f"In Chromium, from a click on *Run fixed* of lab 05, the median of {CLICKS}: "
        f"{_seconds(statistics.median(answered))} until *Stop* can be pressed, "
        f"{_seconds(statistics.median(ranks))} until the first rank is shown."
    )


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"
