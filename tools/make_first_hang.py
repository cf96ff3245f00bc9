"""Makes notebooks/method/first_hang.jsonl.gz: how a run of train.py beside it, with 64 ranks, was looked at.

It takes about 10 GB of memory and, on two cores, a minute and a half. A run that does not end as the
start page says is an error, and keeps what was there.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from make_recordings import scrubbed

from helpers.labs.lab import beside_python
from helpers.observe.recording import Tape
from helpers.panel.learn.first_hang import RECORDING
from helpers.panel.run.export import Finished, recording
from helpers.report.source_lines import Sources
from helpers.session import Session

METHOD = Path(__file__).resolve().parents[1] / "notebooks" / "method"
PROGRAM = "train.py"
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


def main() -> int:
    """Record a run, and keep it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        try:
            kept = recorded(Path(name))
        except RuntimeError as problem:
            print(problem, file=sys.stderr)
            return 1
    (METHOD / RECORDING).write_bytes(kept)
    print(f"{RECORDING}: {len(kept)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
