"""Draws lanes.svg of each lab: every rank over time, in a run of the program that the lab is about.

    python tools/pictures.py           every lab
    python tools/pictures.py 01 05     these labs

The pictures are for readers who run nothing, as on the web. Seconds differ from run to run, so no test
compares them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from helpers.labs.declaration import MINE
from helpers.labs.lab import Lab, all_labs, find_lab
from helpers.labs.machine import PIN
from helpers.model.facts import Snapshot
from helpers.report.slow import shares
from helpers.report.timeline import timeline
from helpers.session import Event, Sample

WIDTH = 560


def picture(lab: Lab) -> str:
    """The lanes of a run with the default settings."""
    snapshots: list[Snapshot] = []

    def keep(event: Event) -> None:
        if isinstance(event, Sample):
            snapshots.append(event.snapshot)

    session = lab.session(lab.file.turns[MINE].copy_of)
    session.subscribe(keep)
    report = session.start().wait()
    return timeline(
        snapshots,
        report.verdict,
        width=WIDTH,
        verdict_at=report.verdict_at,
        shares=shares(report.verdict),
    )


def main(names: Sequence[str]) -> int:
    """Draw the labs that are named, or all."""
    os.environ[PIN] = "cpu"
    for lab in map(find_lab, names) if names else all_labs():
        (lab.folder / "lanes.svg").write_text(picture(lab), encoding="utf-8")
        print(f"{lab.name}: lanes.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
