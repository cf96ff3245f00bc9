r"""Runs labs and jobs on NVIDIA GPUs, and keeps what the instrument says of them: `make gpu`.

    python tools/gpu.py [--only shared|nccl|dumps|labs|gloo] [--rows NAME,...] [--jobs N] [--go-on]
                        [--keep DIR] [--minutes N]
    python tools/gpu.py --place DIR/gpu.tar.gz

tools/gpu_runs/plan.py says what the parts are. A difference from what is expected is a finding, not a
failure. With NCCL a call returns before its work is done: a rank hangs later, in the line that waits for
the GPU, and keeps a core busy there. One GPU is enough for most of it.

After each run DIR has the reports and recordings so far, and `gpu.tar.gz` with all of them; the page is
beside it, DIR.md. `--go-on` makes only what is not in it yet, so that the whole can be made in several
commands; on a fresh machine `gpu.tar.gz` in DIR is enough for that. A lab's recording that came out as
expected also goes to the lab, which replays it where there is no GPU; `--place` does the same, and puts
page and reports into this checkout, from the archive of a machine that is gone. Without a GPU the page
lists what would run, unless it has results already.

A machine without a network that has CPython 3.12, torch, Lightning, psutil and rich lacks a few wheels.
Download them elsewhere, take them there with this checkout, and install them into a folder:

    python -m pip download --dest wheels --only-binary=:all: --python-version 3.12 \
--platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
msgspec jinja2 markdown-it-py platformdirs packaging py-spy
    python -m pip install --no-index --no-deps --target site wheels/*.whl && \
PYTHONPATH=$PWD/site PATH=$PWD/site/bin:$PATH python tools/gpu.py --keep gpu

Exit codes: 0 everything ran, whatever came of it; 1 there is no GPU and nothing ran, or the instrument
failed, or it raised an alarm about a run that ended well; 130 interrupted.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, as_completed, wait
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a machine with a GPU may have the checkout only, not the package

from gpu_runs import archive  # noqa: E402
from gpu_runs import page as pages  # noqa: E402
from gpu_runs import rows as rows_of  # noqa: E402
from gpu_runs.plan import PARTS, picked, plan, refusal  # noqa: E402
from gpu_runs.rows import Row, Task  # noqa: E402
from gpu_runs.runs import into_lab, perform  # noqa: E402
from score import jobs as collection  # noqa: E402
from score import trial as trials  # noqa: E402
from score.score import commit, made  # noqa: E402

from helpers.labs import all_cases  # noqa: E402
from helpers.labs.check import torch_facts  # noqa: E402
from helpers.labs.lab import all_labs  # noqa: E402
from helpers.labs.machine import probe_torch  # noqa: E402

CORES = 4
"""Processor cores of a run: two or three ranks that may spin, and the threads of NCCL."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--only", choices=PARTS, help="run one part")
    made.add_argument(
        "--rows", metavar="NAME,...", default="", help="run these rows; PART/NAME is that of one part"
    )
    made.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        default=max(1, (os.cpu_count() or 1) // CORES),
        help="make N runs at a time (%(default)s here)",
    )
    made.add_argument("--go-on", action="store_true", help="keep what DIR has, and run the rest")
    made.add_argument(
        "--keep", type=Path, metavar="DIR", default=ROOT / "benchmarks" / "gpu", help="(%(default)s)"
    )
    made.add_argument(
        "--minutes", type=float, metavar="N", default=8.0, help="start no run after N minutes (8)"
    )
    made.add_argument(
        "--place", type=Path, metavar="ARCHIVE", help="only put what is in ARCHIVE into this checkout"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what this machine can run; return the exit code."""
    options = parser().parse_args(arguments)
    if options.place is not None:
        return _place(options.place)
    found = probe_torch()
    nothing = refusal(found)
    gpus = [] if nothing else found["gpus"]
    assert isinstance(gpus, list)
    tasks = plan(
        all_cases.cases(all_labs()),
        collection.read(trials.ROOT / "tests" / "jobs"),
        len(gpus) or 1,
        lambda case: case.lab.lacking(case.program, case.knobs),
        "no machine with a GPU was at hand" if nothing else "",
    )
    file = options.keep.with_suffix(".md")
    if nothing:
        print(f"Nothing is run: {nothing}.", file=sys.stderr)
        if not file.exists() or pages.NOTHING in file.read_text():
            file.write_text(pages.page("", [], [(task, task.why_not) for task in tasks]))
        return 1
    return _run(options, tasks, gpus, f"{made()}; commit {commit()}; {_facts(found)}", file)


def _facts(found: dict[str, object]) -> str:
    return ", ".join(f"{fact.name} {fact.value}" for fact in torch_facts(found))


def _place(file: Path) -> int:
    try:
        archive.unpack(file, ROOT / "benchmarks")
    except archive.ArchiveError as problem:
        print(problem, file=sys.stderr)
        return 1
    cases = {case.shown: case for case in all_cases.cases(all_labs())}
    for row in rows_of.kept(ROOT / "benchmarks" / "gpu" / archive.ROWS):
        if row.part == "labs" and row.name in cases:
            into_lab(cases[row.name], row, ROOT / "benchmarks" / "gpu")
    return 0


def _run(
    options: argparse.Namespace, tasks: Sequence[Task], gpus: Sequence[str], where: str, file: Path
) -> int:
    options.keep.mkdir(parents=True, exist_ok=True)
    kept = options.keep / archive.ROWS
    if not options.go_on:
        archive.clear(options.keep)
    elif not kept.exists() and (options.keep / archive.NAME).exists():
        archive.unpack(options.keep / archive.NAME, options.keep.parent)
    rows = rows_of.kept(kept)
    made = {(row.part, row.name) for row in rows}
    chosen = picked(tasks, options.only, options.rows)
    end = time.monotonic() + 60 * options.minutes

    def write() -> None:
        late = "there was no time" if time.monotonic() > end else "it was not asked for"
        never = [(t, t.why_not or late) for t in tasks if (t.part, t.name) not in made]
        archive.write(file, options.keep, pages.page(where, rows, never))

    left = [task for task in chosen if (task.part, task.name) not in made and not task.why_not]
    in_time = itertools.takewhile(lambda _: time.monotonic() < end, left)
    try:
        for row in _performed(in_time, options, gpus):
            rows.append(row)
            made.add((row.part, row.name))
            rows_of.keep(row, kept)
            print(pages.line(row), flush=True)
            write()
    except KeyboardInterrupt:
        return 130
    write()
    return rows_of.exit_code(rows)


def _performed(tasks: Iterable[Task], options: argparse.Namespace, gpus: Sequence[str]) -> Iterator[Row]:
    """What comes of each task; the next one begins as soon as there is room for it."""
    running: set[Future[Row]] = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        for task in tasks:
            running.add(pool.submit(perform, task, options.keep, gpus))
            if len(running) == options.jobs:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (run.result() for run in done)
        yield from (run.result() for run in as_completed(running))


if __name__ == "__main__":
    sys.exit(main())
