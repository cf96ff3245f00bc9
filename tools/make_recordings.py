"""Makes tests/recordings: runs the jobs of tests/jobs, and keeps the end of what was seen of each.

    python tools/make_recordings.py                 every job
    python tools/make_recordings.py killed stopped  these jobs
    python tools/make_recordings.py --from DIR      none: recordings made by `make_score.py --record DIR`

A verdict on what is wrong needs the last second of a recording; of a job with nothing wrong all of it
is kept, since a false alarm may come at any time. Where this machine keeps its Python is left out.
"""

from __future__ import annotations

import argparse
import gzip
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from score import jobs

from helpers.report.recording import replay

ROOT = Path(__file__).resolve().parents[1]
JOBS = ROOT / "tests" / "jobs"
FOLDER = ROOT / "tests" / "recordings"

KEPT = 1.0
"""Seconds before the last look from which every look is kept; a proof takes half a second."""

PLACES = (
    (re.compile(r'/[^"\s\\]*?/(site-packages|dist-packages)/'), r"/env/lib/\1/"),
    (re.compile(r'/[^"\s\\]*?/bin/(python[\d.]*|torchrun|accelerate)\b'), r"/env/bin/\1"),
    (re.compile(r'/[^"\s\\]*?/(lib/python3\.\d+/)'), r"/env/\1"),
    (re.compile(rf"{re.escape(str(ROOT))}/"), "/repository/"),
    (re.compile(r"/[^\s\"\\]*?/trial-\w+/"), "/trial/"),
)


def trimmed(recording: Path, seconds: float) -> bytes:
    """The last `seconds` of a recording, without this machine's own paths.

    Raises:
        RecordingError: the file is not a recording.
    """
    last = max(snapshot.time for snapshot in replay(recording))
    kept = [snapshot.time >= last - seconds for snapshot in replay(recording)]
    with gzip.open(recording, "rt", encoding="utf-8") as file:
        head, *looks = file.read().splitlines()
    text = "\n".join([head, *(look for look, keep in zip(looks, kept, strict=True) if keep), ""])
    for place, name in PLACES:
        text = place.sub(name, text)
    return gzip.compress(text.encode(), mtime=0)


def keep(source: Path) -> None:
    """Trim every recording of a folder into tests/recordings."""
    declared = jobs.read(JOBS)
    for recording in sorted(source.glob("*.jsonl.gz")):
        control = declared[recording.name.removesuffix(".jsonl.gz")].control
        (FOLDER / recording.name).write_bytes(trimmed(recording, math.inf if control else KEPT))
        print(f"{recording.name}: {(FOLDER / recording.name).stat().st_size} bytes")


def main() -> int:
    """Run the jobs that are asked for, or take their recordings from a folder, and keep the ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("jobs", nargs="*")
    parser.add_argument("--from", dest="source", type=Path, metavar="DIR")
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    if options.source is not None:
        keep(options.source)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        words = ["--jobs", ",".join(options.jobs or jobs.read(JOBS)), "--record", folder]
        done = subprocess.run(
            [sys.executable, ROOT / "tools" / "make_score.py", JOBS, *words],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        keep(Path(folder))
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
