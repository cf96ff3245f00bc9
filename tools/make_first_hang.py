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

from make_recordings import scrubbed

from helpers.labs.lab import beside_python
from helpers.observe.recording import Tape, load
from helpers.panel.learn.first_hang import RECORDING, begin_of
from helpers.panel.run.export import Finished, recording
from helpers.report.source_lines import Sources
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
    session, tape = Session(command, cwd=place, env=dict(os.environ)), Tape()
    session.record(tape)
    report = session.start().wait()
    verdict = report.verdict
    if (verdict.outcome, verdict.cause, verdict.culprits) != ("hang", "collective-mismatch", (ODD,)):
        raise RuntimeError(f"{verdict.outcome} {verdict.cause} {verdict.culprits}")
    finished = Finished(
        name="",
        report=report,
        snapshots=(report.snapshot,),
        logs=session.logs,
        sources=Sources(place),
        recording=tape.recording,
    )
    file = place / RECORDING
    file.write_bytes(recording(finished))
    return scrubbed(file)


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
