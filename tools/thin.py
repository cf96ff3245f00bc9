"""Leaves the sources of installed libraries out of recordings that are judged alike without them.

    python tools/thin.py FILE ...

What is watched asks for the source of each file in which a rank is. Those of libraries take most of the
room of some recordings, and decide few.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from pathlib import Path

from helpers.model.facts import Report
from helpers.observe.recording import load
from helpers.session import report_of

_LIBRARIES = ("/site-packages/", "/lib/python")


def thinned(recording: bytes) -> bytes:
    """A recording without the sources of libraries, or the same one where they count."""
    lines = [json.loads(line) for line in gzip.decompress(recording).splitlines()]
    for look in lines:
        if answers := look.get("answers"):
            look["answers"] = [
                [question, answer] for question, answer in answers if not _is_source(question)
            ]
    plain = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    smaller = gzip.compress(plain.encode(), mtime=0)
    same = len(smaller) < len(recording) and _judged(smaller) == _judged(recording)
    return smaller if same else recording


def _is_source(question: list[object]) -> bool:
    """True where the source of a library was asked for."""
    kind, *rest = question
    return kind == "Source" and any(part in str(rest[0]) for part in _LIBRARIES)


def _judged(recording: bytes) -> tuple[object, ...]:
    """What a replay comes to."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "run.jsonl.gz")
        file.write_bytes(recording)
        loaded = load(file)
    report: Report = report_of(tuple(loaded.snapshots()), loaded.watched.patience)
    return report.verdict, report.snapshot, report.stall


def main() -> None:
    """Thin files in their places."""
    for name in sys.argv[1:]:
        file = Path(name)
        before = file.read_bytes()
        file.write_bytes(thinned(before))
        print(f"{name}: {len(before)} -> {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
