"""A recording that plays in a page: its picture is drawn once, and uncovered as the seconds go by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from helpers.labs.prediction import odd_one_out
from helpers.model.facts import RankView, Snapshot
from helpers.model.wording import child_name, spoken
from helpers.observe.recording import load
from helpers.panel.learn.first_hang import begin_of
from helpers.panel.run.replay import label
from helpers.panel.show import view
from helpers.panel.show.tabs import own_stack
from helpers.report.source_lines import Sources
from helpers.report.wall import wall
from helpers.session import report_of

NARROW = 358
"""Pixels of the second picture, for a phone: letters are never made smaller."""


@cache
def templates() -> Environment:
    """The templates of pages, and of their parts."""
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def playback(file: Path, *, width: int, imports: bool = True) -> str:
    """Make a player of a recording, which asks for the odd one out and then shows the verdict.

    Args:
        file: the recording.
        width: of the picture in pixels, where there is room.
        imports: False begins when all ranks have left their imports behind.
    """
    recording = load(file)
    snapshots = tuple(recording.snapshots())
    first, last = snapshots[0].time if imports else begin_of(snapshots), snapshots[-1].time
    begin, end = round(first, 2), round(last, 2)  # a browser rounds what a slider gets in its own way
    report = report_of(snapshots, recording.watched.patience)
    asked, since = odd_one_out(report), report.verdict.since
    ranks = sorted(rank.rank for rank in snapshots[-1].ranks if rank.rank is not None)
    told = {
        "begin": begin,
        "end": end,
        "right": [rank for rank in ranks if spoken([rank]) in asked.right],
        "instead": {rank: asked.instead.get(spoken([rank]), "") for rank in ranks},
        **_insides(snapshots, Sources(None, recording.sources)),
    }
    return (
        templates()
        .get_template("playback.html")
        .render(
            label=label(recording),
            ranks=ranks,
            begin=begin,
            end=end,
            pictures=[
                (name, Markup(wall(snapshots, begin=begin, until=end, width=wide)))
                for name, wide in (("roomy", width), ("narrow", NARROW))
            ],
            told=Markup(json.dumps(told, ensure_ascii=False).replace("<", "\\u003c")),
            late=None if since is None else (report.verdict_at or end) - since,
            verdict=Markup(view.final_verdict(report) + view.advice(report)),
        )
    )


def _insides(snapshots: Sequence[Snapshot], sources: Sources) -> dict[str, object]:
    """What each rank did when: texts, each once, and rank -> pairs of a second and a text's number."""
    numbers: dict[str, int] = {}
    following = count()
    ranks: dict[int, list[tuple[float, int]]] = {}
    for snapshot in snapshots:
        for rank in snapshot.ranks:
            if rank.rank is None:
                continue
            said = _inside(rank, sources)
            if said not in numbers:
                numbers[said] = next(following)
            times = ranks.setdefault(rank.rank, [])
            if not times or times[-1][1] != numbers[said]:
                times.append((round(snapshot.time, 2), numbers[said]))
    return {"texts": list(numbers), "ranks": ranks}


def _inside(rank: RankView, sources: Sources) -> str:
    """What a rank and its children do. Equal for ranks that do the same: its number is left out."""
    if rank.process is None:
        return f"<p><strong>rank</strong> {rank.state}</p>"
    children = [
        own_stack(child_name(child), child.process, sources)
        for child in rank.children
        if child.worker_id is not None
    ]
    return "".join([own_stack("rank", rank.process, sources), *children])
