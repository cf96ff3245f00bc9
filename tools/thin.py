"""Leaves the sources of installed libraries, and what is finer than a millisecond, out of recordings.

    python tools/thin.py FILE ...

What is watched asks for the source of each file in which a rank is. Those of libraries take most of the
room of some recordings, and decide few. Each step is taken only where the report and the picture stay as
they are.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from helpers.model.facts import Report
from helpers.observe.recording import load
from helpers.report.page import to_html
from helpers.report.stable import stable_text
from helpers.report.text import to_text
from helpers.session import report_of

_PICTURE = re.compile(r"timeline-[0-9a-f]+")
"""The name of a picture, which comes from all that is in it."""

_NUMBER = re.compile(r"\d+(?:\.\d+)?")

ROUNDING = 0.15
"""By how much a time, or a place in a picture, may differ: both have one decimal."""

_LIBRARIES = ("/site-packages/", "/lib/python")


def thinned(recording: bytes) -> bytes:
    """A recording without the sources of libraries, in milliseconds, as far as it is judged alike."""
    for shorter in (_without_sources, _in_milliseconds):
        lines = [shorter(json.loads(line)) for line in gzip.decompress(recording).splitlines()]
        plain = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        smaller = gzip.compress(plain.encode(), mtime=0)
        if len(smaller) < len(recording) and _are_alike(_judged(smaller), _judged(recording)):
            recording = smaller
    return recording


def _without_sources(look: dict[str, Any]) -> dict[str, Any]:
    """A look without the sources of libraries."""
    answers = [
        [question, answer] for question, answer in look.get("answers") or () if not _is_source(question)
    ]
    return {**look, "answers": answers} if look.get("answers") else look


def _in_milliseconds(value: Any) -> Any:
    """A look whose fractions have three digits: finer ones take room, and tell nothing."""
    if isinstance(value, dict):
        return {name: _in_milliseconds(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_in_milliseconds(part) for part in value]
    return round(value, 3) if isinstance(value, float) else value


def _is_source(question: list[object]) -> bool:
    """True where the source of a library was asked for."""
    kind, *rest = question
    return kind == "Source" and any(part in str(rest[0]) for part in _LIBRARIES)


def _judged(recording: bytes) -> tuple[str, ...]:
    """What a replay comes to."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "run.jsonl.gz")
        file.write_bytes(recording)
        loaded = load(file)
    snapshots = tuple(loaded.snapshots())
    report: Report = report_of(snapshots, loaded.watched.patience)
    page = _PICTURE.sub("", to_html(report, snapshots))
    return to_text(report), stable_text(report), page


def _are_alike(judged: tuple[str, ...], thinned_judged: tuple[str, ...]) -> bool:
    """True for texts and pages that differ in numbers alone, by no more than rounding."""
    text, other_text = "".join(judged), "".join(thinned_judged)
    numbers, other_numbers = (map(float, _NUMBER.findall(part)) for part in (text, other_text))
    same = _NUMBER.split(text) == _NUMBER.split(other_text)
    return same and all(abs(a - b) <= ROUNDING for a, b in zip(numbers, other_numbers, strict=True))


def main() -> None:
    """Thin files in their places."""
    for name in sys.argv[1:]:
        file = Path(name)
        before = file.read_bytes()
        file.write_bytes(thinned(before))
        print(f"{name}: {len(before)} -> {file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
