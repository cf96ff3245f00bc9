"""`attach`: say why a running job hangs, and leave it as it is."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from .arguments import UsageError, add_brief, add_html, add_json, add_patience, add_record, pid, positive
from .interrupts import noted

if TYPE_CHECKING:
    from ..launch.attach import Attached


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("attach", help="say why a running job hangs; leave it as it is")
    verb.add_argument(
        "pid",
        type=pid,
        nargs="?",
        metavar="PID",
        help="its launcher, or any of its ranks; without it, the one job that you run here",
    )
    add_json(verb)
    add_html(verb)
    add_patience(verb, 10.0)
    verb.add_argument(
        "--for",
        dest="least",
        type=positive,
        default=0.0,
        metavar="S",
        help="watch it so long at least: 20 show for which rank the others wait",
    )
    add_record(verb)
    add_brief(verb)
    return verb


def run(options: argparse.Namespace) -> int:
    """Watch the job for some seconds; return the exit code."""
    from ..launch.attach import AttachError
    from ..session import Session
    from .watch import Forms, watch

    with noted() as signals:
        try:
            job = options.pid or _only_job()
            session = Session.attach(job, patience=options.patience, least=options.least)
        except AttachError as problem:
            raise UsageError(str(problem)) from None
        return watch(session, signals, Forms(options.json, options.html, options.brief), options.record)


def _only_job() -> int:
    """The process id of the one job that the user runs here, which is named on standard error.

    Raises:
        UsageError: there is none, or there are several, which are listed.
    """
    from ..launch.attach import find_jobs

    jobs = find_jobs()
    if not jobs:
        raise UsageError(
            "you run no job here: no launcher, no rank and no program with torch; "
            "give the PID of a process to look at it all the same"
        )
    if len(jobs) > 1:
        listed = "".join(f"\n  {_line(job)}" for job in jobs)
        raise UsageError(f"you run {len(jobs)} jobs here; give the PID of the one to look at:{listed}")
    print(f"stuck-ranks: looks at {_line(jobs[0])}", file=sys.stderr)
    return jobs[0].pid


def _line(job: Attached) -> str:
    """`4242  (for 12 min)  torchrun --nproc-per-node 2 train.py`."""
    from ..model.redaction import redacted_words
    from ..model.wording import one_line, shortened

    minutes = (time.time() - job.started) / 60
    age = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    return f"{job.pid}  (for {age})  {shortened(one_line(' '.join(redacted_words(job.command))))}"
