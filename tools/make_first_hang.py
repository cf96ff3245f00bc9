"""Makes notebooks/method/first_hang.jsonl.gz: how a run of train.py with 64 ranks was looked at.

    python tools/make_first_hang.py             the recording, and its picture
    python tools/make_first_hang.py --picture   the picture, from the recording that is there

A run takes about 10 GB of memory and, on two cores, a minute and a half. A run that does not end as the
start page says is an error, and keeps what was there.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from recorded_run import run_recorded

from helpers.labs.lab import beside_python
from helpers.observe.recording import load
from helpers.panel.learn.first_hang import RECORDING, begin_of
from helpers.report.wall import wall
from helpers.session import Session

METHOD = Path(__file__).resolve().parents[1] / "notebooks" / "method"
PROGRAM = "train.py"
PICTURE = "first_hang.svg"
RANKS, ODD = 64, 41


def recorded(place: Path) -> bytes:
    """The recording of a run in a folder; raises RuntimeError when it does not end as it should."""
    shutil.copyfile(METHOD / PROGRAM, place / PROGRAM)
    command = [beside_python("torchrun"), "--standalone", f"--nproc-per-node={RANKS}", PROGRAM]
    session = Session(command, cwd=place, env=dict(os.environ))
    return run_recorded(session, place / RECORDING, ("hang", "collective-mismatch", (ODD,)))


def picture() -> str:
    """The lanes of the recording at its end, as the start page draws them."""
    snapshots = tuple(load(METHOD / RECORDING).snapshots())
    return wall(snapshots, begin=begin_of(snapshots), until=snapshots[-1].time)


def main() -> int:
    """Record a run and keep it, unless the picture alone is asked for; draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--picture", action="store_true")
    if not parser.parse_args().picture:
        os.environ["OMP_NUM_THREADS"] = "1"
        with tempfile.TemporaryDirectory(prefix="trial-") as name:
            try:
                kept = recorded(Path(name))
            except RuntimeError as problem:
                print(problem, file=sys.stderr)
                return 1
        (METHOD / RECORDING).write_bytes(kept)
    (METHOD / PICTURE).write_text(picture(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
