"""Makes tests/recordings: runs the jobs of tests/jobs, and keeps how each was looked at.

    python tools/make_recordings.py                 every job
    python tools/make_recordings.py killed stopped  these jobs
    python tools/make_recordings.py --from DIR      none: recordings made by `make_score.py --record DIR`

Where this machine keeps its Python, and what it is called, is left out.
"""

from __future__ import annotations

import argparse
import gzip
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from score import jobs

ROOT = Path(__file__).resolve().parents[1]
JOBS = ROOT / "tests" / "jobs"
FOLDER = ROOT / "tests" / "recordings"

PLACES = (
    (re.compile(r'/[^"\s\\]*?/(site-packages|dist-packages)/'), r"/env/lib/\1/"),
    (re.compile(r'/[^"\s\\]*?/bin/(python[\d.]*|torchrun|accelerate)\b'), r"/env/bin/\1"),
    (re.compile(r"/[^\"'\s\\]*?/((?:lib|include)/python3[\d.]*)"), r"/env/\1"),
    (re.compile(rf"{re.escape(str(ROOT))}\b"), "/repository"),
    (re.compile(r"/[^\s\"\\]*?/trial-\w+\b"), "/trial"),
    (re.compile(rf'"host":"{re.escape(socket.gethostname())}"'), '"host":"node"'),
)


def scrubbed(recording: Path) -> bytes:
    """A recording without this machine's own paths."""
    text = gzip.decompress(recording.read_bytes()).decode()
    for place, name in PLACES:
        text = place.sub(name, text)
    return gzip.compress(text.encode(), mtime=0)


def keep(source: Path) -> None:
    """Keep every recording of a folder in tests/recordings."""
    for recording in sorted(source.glob("*.jsonl.gz")):
        (FOLDER / recording.name).write_bytes(scrubbed(recording))
        print(f"{recording.name}: {(FOLDER / recording.name).stat().st_size} bytes")


def main() -> int:
    """Run the jobs that are asked for, or take their recordings from a folder, and keep them."""
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
