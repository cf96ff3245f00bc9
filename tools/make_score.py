"""Run a folder of jobs, and say how often the instrument was right: `make score`.

    python tools/make_score.py tests/jobs --controls 100 --markdown benchmarks/score.md

Any folder will do: score/jobs.py says how a `jobs.toml` declares programs and what the instrument has
to say of them. Exit codes: 0 all is as promised, 1 it is not, 64 wrong usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from score import jobs, outside, score


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("folder", type=Path, metavar="DIR", help="a folder with a jobs.toml")
    made.add_argument("--jobs", metavar="A,B", help="only these jobs")
    made.add_argument(
        "--controls", type=int, default=0, metavar="N", help="repeat controls up to N runs"
    )
    made.add_argument(
        "--outside", action="store_true", help="have `attach` and `read` judge the jobs that hang, too"
    )
    made.add_argument("--record", type=Path, metavar="DIR", help="write a recording of each job there")
    made.add_argument("--markdown", type=Path, metavar="FILE", help="write the result as a page, too")
    return made


def main(words: Sequence[str] | None = None) -> int:
    """Run, print and write; return the exit code."""
    options = parser().parse_args(words)
    try:
        wanted = jobs.select(jobs.read(options.folder.resolve()), options.jobs)
        for job in wanted.values():
            job.lines()
    except jobs.CollectionError as problem:
        print(problem, file=sys.stderr)
        return 64
    if options.record is not None:
        options.record.mkdir(parents=True, exist_ok=True)
    found = score.measure(wanted, controls=options.controls, record=options.record)
    page = score.to_markdown(found)
    met = all(found.bar().values())
    if options.outside and len(found.trials) == found.planned:
        for way in (outside.ATTACH, *outside.READS):
            looked = outside.measure(way, wanted)
            page += outside.to_markdown(looked)
            met = met and all(looked.bar().values())
    print(page, end="", flush=True)
    if options.markdown:
        options.markdown.write_text(page)
    if len(found.trials) < found.planned:
        return 130
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
