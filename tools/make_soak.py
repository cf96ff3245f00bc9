"""Measure what one run can keep by luck, for a long time, and write it as a page: `make soak`.

    python tools/make_soak.py --only kills --quick

Each part is a section of the page, which is written once the part is over.

Exit codes: 0 all is as promised, 1 it is not, 64 wrong usage.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Sequence

from score.score import commit, made
from score.trial import ROOT
from sections import put
from soak import controls, fuzz, hostile, kills, learners, own_way, rounds
from soak.part import Part

PAGE = ROOT / "benchmarks" / "soak.md"

LABS = ("01", "02", "03", "04", "05")

PARTS: dict[str, Callable[[bool], Part]] = {
    "kills": lambda quick: kills.measure(10 if quick else 200, random.randrange(10**6)),
    "rounds": lambda quick: rounds.measure(2, ["05"]) if quick else rounds.measure(20, LABS),
    "learners": lambda quick: learners.measure(2 if quick else 8, "05"),
    "own-way": lambda quick: own_way.measure(1 if quick else 4),
    "hostile": lambda quick: hostile.measure(quick=quick),
    "controls": lambda quick: controls.measure(4 if quick else 200, random.randrange(10**6)),
    "fuzz": lambda quick: fuzz.measure(300 if quick else fuzz.NUMBER, random.randrange(10**6)),
}


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print and write; return the exit code."""
    asked = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    asked.add_argument("--only", choices=PARTS, help="this part alone")
    asked.add_argument("--quick", action="store_true", help="a small version of each part, not written")
    options = asked.parse_args(words)
    faults = 0
    for name, measure in PARTS.items():
        if options.only in (None, name):
            part = measure(options.quick)
            faults += len(part.faults)
            written = section(part, f"Made with {made()}, at commit {commit()}.")
            print(written, flush=True)
            if not options.quick:
                put(PAGE, "What holds over a long time", written)
    return int(faults > 0)


def section(part: Part, where: str) -> str:
    """A part of the page: how it was made, what was found, what is not as promised."""
    lines = [f"## {part.title}", "", where, "", *part.lines]
    if part.faults:
        lines += ["", "Not as promised:", "", *(f"- {fault}" for fault in part.faults)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
