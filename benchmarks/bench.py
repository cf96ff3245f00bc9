"""Cost and speed of the instrument, part by part on one page: `make bench`."""

from __future__ import annotations

import argparse
import gc
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("", "tools", "tests/support")]  # histories are the tests'

from calls import calls  # noqa: E402
from cost import cost  # noqa: E402
from first_paint import first_paint  # noqa: E402
from histories import in_collective, snapshot, steady, working  # noqa: E402
from nodes import nodes  # noqa: E402
from reading import reading  # noqa: E402
from redaction import redaction  # noqa: E402
from rivals import rivals  # noqa: E402
from score.score import commit, made  # noqa: E402
from sections import put  # noqa: E402
from throughput import throughput  # noqa: E402
from waits import waits  # noqa: E402

from helpers.diagnose.diagnose import diagnose  # noqa: E402
from helpers.model.facts import RankView  # noqa: E402
from helpers.report.timeline import timeline  # noqa: E402

PAGE = ROOT / "benchmarks" / "bench.md"

RANKS = (2, 64, 512, 2048, 16384)
ROUNDS = 5


def verdicts() -> Iterator[str]:
    """Time of one verdict and of one picture, and the memory, by the number of ranks."""
    yield "| ranks | all work | all wait for one | operations differ | picture (SVG) | memory |"
    yield "|---|---|---|---|---|---|"
    for count in RANKS:
        cells = []
        for ranks in _jobs(range(count)):
            history = steady(snapshot(*ranks))
            cells.append(_milliseconds(lambda: diagnose(history)))  # noqa: B023 (called at once)
        verdict = diagnose(history)
        cells.append(_milliseconds(lambda: timeline(history, verdict)))  # noqa: B023 (called at once)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        yield f"| {count} | {' | '.join(cells)} | {used / 1e6:.0f} MB |"
    yield ""
    yield (
        f"Milliseconds of processor time, the least of {ROUNDS}, with Python's garbage collector off, "
        "as in `read`, which judges jobs of that size. The memory is the most that the process has ever "
        "taken, the history of the job included. A job is looked at every 0.22 to 0.6 s."
    )


def _jobs(ranks: Sequence[int]) -> Iterator[list[RankView]]:
    """Ranks that all work, that wait for one, and that are in different operations."""
    members, ops = tuple(ranks), ["all_reduce"] * 23
    yield [working(rank) for rank in members]
    yield [working(0), *(in_collective(rank, *ops, members=members) for rank in members[1:])]
    yield [in_collective(rank, *ops, "barrier" if rank else "broadcast") for rank in members]


def _milliseconds(work: Callable[[], object]) -> str:
    spent = []
    gc.disable()  # as `read` does
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    gc.enable()
    return f"{1000 * min(spent):.1f}"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    "What it costs a job": cost,
    "What the note of a call costs": calls,
    "Time to an answer, beside torch's own tools": rivals,
    "Reading what a job has left": reading,
    "Reading the recordings of many nodes": nodes,
    "How fast a job may print": throughput,
    "Looking for secrets": redaction,
    "What a learner waits for": waits,
    "The first page of the site": first_paint,
    "A verdict and a picture": verdicts,
}


def main() -> None:
    """Measure each part, print it, and put it on the page."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument(
        "--only", choices=[part.__name__ for part in PARTS.values()], help="this part alone"
    )
    only = asked.parse_args().only
    for title, part in PARTS.items():
        if only in (None, part.__name__):
            where = f"Measured with {made()}, at commit {commit()}."
            section = "\n".join([f"## {title}", "", where, "", *part()]) + "\n"
            print(section, flush=True)
            put(PAGE, "Cost and speed", section)


if __name__ == "__main__":
    main()
