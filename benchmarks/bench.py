"""Cost and speed of the instrument, as one page: python benchmarks/bench.py [FILE], or make bench."""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("", "tools", "tests/support")]  # histories are the tests'

from histories import in_collective, snapshot, steady, working  # noqa: E402
from nodes import nodes  # noqa: E402
from reading import reading  # noqa: E402
from score.score import made  # noqa: E402

from helpers.diagnose.diagnose import diagnose  # noqa: E402
from helpers.model.facts import RankView  # noqa: E402
from helpers.report.timeline import timeline  # noqa: E402
from helpers.session import Session  # noqa: E402

RANKS = (2, 64, 512, 2048, 16384)
ROUNDS = 5


def beacon() -> Iterator[str]:
    """The beacon's share of a rank's time, and the instrument's own use of a core."""
    with tempfile.TemporaryDirectory() as name:
        program = str(ROOT / "benchmarks" / "beacon_cost.py")
        command = ["torchrun", "--standalone", "--nproc-per-node=2", program, name]
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        cpu, wall = time.process_time(), time.monotonic()
        session = Session(command, env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"})
        report = session.start().wait()
        cpu, wall = time.process_time() - cpu, time.monotonic() - wall
        assert report.verdict.outcome == "ok", report.verdict.summary
        found = [json.loads(file.read_text()) for file in sorted(Path(name).glob("*.json"))]
    yield (
        f"Two ranks train a small model with gloo, {len(found[0]['cpu'])} times a block of "
        f"{found[0]['steps']} steps with the beacon and the same without it:"
    )
    yield ""
    yield "| time with the beacon / without | median | lower and upper quartile |"
    yield "|---|---|---|"
    for kind, name in (("cpu", "processor time of the rank"), ("wall", "time by the clock")):
        ratios = [watched / alone for one in found for watched, alone in one[kind]]
        low, middle, high = statistics.quantiles(ratios, n=4)
        yield f"| {name} | {middle:.3f} | {low:.3f} to {high:.3f} |"
    yield ""
    own = sum(sum(one["beacon"]) for one in found)
    clock, used = (sum(pair[0] for one in found for pair in one[kind]) for kind in ("wall", "cpu"))
    yield (
        f"The beacon's own thread used {100 * own / clock:.2f} % of the time by the clock, and "
        f"{100 * own / used:.2f} % of the rank's processor time. Where other programs run on it, "
        "this says more than the table does."
    )
    yield ""
    yield f"The instrument itself used {100 * cpu / wall:.1f} % of one core meanwhile."


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
        "taken, the history of the job included. A job is looked at every 220 ms."
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


def main() -> None:
    """Measure, print the page, and write it where the first argument says."""
    lines = ["# Cost and speed", "", f"Measured with {made()}.", "", "## The beacon", "", *beacon()]
    lines += ["", "## Reading what a job has left", "", *reading()]
    lines += ["", "## Reading the recordings of many nodes", "", *nodes()]
    lines += ["", "## A verdict and a picture", "", *verdicts()]
    page = "\n".join(lines) + "\n"
    print(page, end="")
    for file in sys.argv[1:2]:
        Path(file).write_text(page)


if __name__ == "__main__":
    main()
