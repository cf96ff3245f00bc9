"""Run some jobs with other versions of torch, and write what the instrument shows of each.

    python tools/make_versions.py PYTHON [PYTHON ...]

Each PYTHON is the interpreter of an environment that has torch and its `torchrun`, and nothing of this
project. The instrument runs in the Python that runs this file, which can be named as well. Each job runs
once in each environment; what came of it goes to benchmarks/torch.md, where columns of other versions
stay. Exit codes: 0 the page is written, 64 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from msgspec import structs
from score import jobs as collection
from score import trial as trials
from score.jobs import Job
from score.score import commit, made, said
from score.trial import Trial

JOBS = trials.ROOT / "tests" / "jobs"
PAGE = trials.ROOT / "benchmarks" / "torch.md"

SHOWN = {
    "barrier_for_one": "two ranks in different collectives",
    "decides_by_itself": "what decided the branch, with its values",
    "one_call_too_many": "a call too many, long before the hang",
    "opposite_groups": "two groups in opposite order",
    "groups_of_their_own": "`new_group` with other members on each rank",
    "handles_left_behind": "a collective left out among handles that nobody waits for",
    "both_receive": "a receive without a send",
    "left_early": "a rank that has left",
    "asleep": "a rank that sleeps, as a suspicion",
    "key_never_set": "a key of the store that nobody sets",
    "far_store": "a store that nobody can reach",
    "left_lock_file": "a lock file that nobody removes",
    "worker_killed": "a DataLoader worker that was killed",
    "worker_stopped": "a DataLoader worker that does not go on",
    "ddp_sizes": "a model of another size on each rank",
    "healthy_torchrun": "nothing wrong: DDP with DataLoader workers",
    "well_beats": "nothing wrong: a rank that is late",
}
"""The jobs of tests/jobs that are run, and what each has the instrument show."""

LIMIT = ("--max-seconds", "60")
"""Ends a job in which a hang is only suspected where it should have been proved."""

RIGHT, NOT_TRIED = "all right", "not tried"

HEAD = """\
# With other versions of torch

The instrument needs Python 3.11; the job may live in an environment of its own, with an older Python and
an older torch. Each job of `tests/jobs` below was run once in each environment. A cell says `{right}`
where the report has all that is declared of the job (outcome, cause, culprits, lines, the statement at
which the ranks parted, the fixes that fit, seconds to the verdict, nothing left behind), else what it
has instead. Versions without a column: {not_tried}. NCCL does not run here: all jobs use Gloo on CPUs.

Made by `tools/make_versions.py`, which leaves the columns of other versions as they are. {newest}

"""

INSTALLED = ("lightning", "jupyterlab", "ipywidgets")
RAN = """
## Versions that have run

Of torch, those above; of the others, the one of `requirements.lock`, with which `make test` and
`make nightly` run. `make upgrade-check` compares these with what is released.
"""


class VersionsError(Exception):
    """An interpreter cannot be used; the text says why in one sentence."""


@dataclass(frozen=True)
class Environment:
    """Where jobs run.

    Attributes:
        python: path of its interpreter.
        torch, version: the versions of its torch and of its Python.
    """

    python: str
    torch: str
    version: str


@dataclass(frozen=True)
class Column:
    """What the page has of one environment.

    Attributes:
        title: the versions of its torch and its Python.
        cells: by the jobs' names.
        closing: what stands below the table.
    """

    title: str
    cells: Mapping[str, str]
    closing: str


def main(words: Sequence[str] | None = None) -> int:
    """Run all, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    try:
        named = parser.parse_args(words).pythons
        environments = [environment(python) for python in named]
    except VersionsError as problem:
        print(problem, file=sys.stderr)
        return 64
    declared, shown = collection.read(JOBS), {kept.title: kept for kept in columns(PAGE.read_text())}
    for tried in environments:
        found: dict[str, Trial] = {}
        for name in SHOWN:
            found[name] = done = trials.run(limited(declared[name]), python=tried.python)
            print(f"torch {tried.torch}, {name}: {cell(done)} ({done.took:.0f} s)", flush=True)
        new = column(tried, found)
        shown[new.title] = new
        newest = f"The newest, of {new.title}, at commit {commit()}; the instrument ran with {made()}."
        PAGE.write_text(page(shown.values(), newest))
    return 0


def environment(python: str) -> Environment:
    """The environment of an interpreter.

    Raises:
        VersionsError: it cannot be run, or has no torch.
    """
    path = os.path.abspath(python)  # a virtual environment's is a link, and not followed
    ask = "import platform, torch; print(torch.__version__, platform.python_version())"
    try:
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=True)
    except OSError as problem:
        raise VersionsError(f"{python} cannot be run: {problem.strerror}.") from None
    except subprocess.CalledProcessError as problem:
        why = (problem.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise VersionsError(f"{python} has no torch that can be imported: {why}") from None
    return Environment(path, *done.stdout.split())


def limited(job: Job) -> Job:
    """The job with a limit, unless it has one or has nothing wrong."""
    has_one = job.control or LIMIT[0] in job.options
    return job if has_one else structs.replace(job, options=(*job.options, *LIMIT))


def cell(done: Trial | None) -> str:
    """What came of a job: all right, or what is not as declared."""
    if done is None:
        return NOT_TRIED
    if not done.wrong():
        return RIGHT
    if not done.report:
        return f"no report, exit code {done.exit_code}"
    rest = "; ".join(said(check) for check in done.wrong())
    error = next((one["error"] for one in done.report["ranks"] if one["error"]), None)
    differs = done.report["outcome"] == "error" != done.job.outcome
    return f"{rest}; the job itself ends with `{error.splitlines()[0]}`" if differs and error else rest


def column(environment: Environment, trials: Mapping[str, Trial]) -> Column:
    """What came of the jobs in one environment.

    Args:
        trials: by the jobs' names.
    """
    wrong = [{check.kind for check in trial.wrong()} for trial in trials.values()]
    right, late = wrong.count(set()), wrong.count({"time"})
    closing = [f"With torch {environment.torch} all was right in {right} of {len(trials)} runs."]
    if late:
        closing[0] += f" {late} more were right but late; how busy the machine was is said above."
    if missing := {
        sentence for trial in trials.values() for sentence in trial.report.get("not_seen", ())
    }:
        closing += ["What their reports say that they could not see:", ""]
        closing += [f"- {sentence}" for sentence in sorted(missing)]
    title = f"torch {environment.torch}, Python {environment.version}"
    cells = {name: cell(trials.get(name)).replace("|", "\\|") for name in SHOWN}
    return Column(title, cells, "\n".join(closing))


def columns(page: str) -> list[Column]:
    """The columns of a page that was made before."""
    rows = [re.split(r" (?<!\\)\| ", line[2:-2]) for line in page.splitlines() if line.startswith("| ")]
    titles = next((row[2:] for row in rows if row[:2] == ["shown", "job"]), [])
    closings = re.split(r"\n\n(?=With torch |## )", page.strip())[1:]
    return [
        Column(title, {row[1].strip("`"): row[number] for row in rows if len(row) > number}, closing)
        for number, (title, closing) in enumerate(zip(titles, closings, strict=False), start=2)
    ]


def page(shown: Iterable[Column], newest: str) -> str:
    """The results as a page.

    Args:
        newest: how the newest column was made.
    """
    ordered = sorted(shown, key=lambda column: [int(n) for n in re.findall(r"\d+", column.title)])
    lines = [
        HEAD.format(right=RIGHT, not_tried=NOT_TRIED, newest=newest)
        + f"| shown | job | {' | '.join(column.title for column in ordered)} |",
        "|---" * (2 + len(ordered)) + "|",
    ]
    for name, what in SHOWN.items():
        cells = [column.cells.get(name, NOT_TRIED) for column in ordered]
        lines.append(f"| {what} | `{name}` | {' | '.join(cells)} |")
    for column in ordered:
        lines += ["", column.closing]
    lines += [RAN, "| package | versions |", "|---|---|"]
    versions = [re.split(r"[ +,]", column.title)[1] for column in ordered]
    lines.append(f"| torch | {', '.join(versions)} |")
    lines += [f"| {name} | {metadata.version(name)} |" for name in INSTALLED]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
