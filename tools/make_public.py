"""Run official programs of torch, Lightning, accelerate and transformers under the instrument.

    PYTHON tools/make_public.py CHECKOUTS

Each has nothing wrong and runs as it is, once on a quiet machine and once next to a busy loop on every
core; to be right about it means neither to suspect nor to say that it hangs or fails. The programs are
in benchmarks/public.toml, what came of them goes to benchmarks/public.md. CHECKOUTS has a folder
OWNER/NAME for each repository, and a folder `data` with what the programs would have downloaded. PYTHON
has what they import. Exit codes: 0 no alarm, 1 an alarm or a run that failed, 64 wrong usage.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from score import trial
from score.jobs import Job
from score.trial import Trial
from steady import busy_loops

from helpers.labs import toml_file
from helpers.observe.recording import provenance

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = ROOT / "benchmarks" / "public.toml"
PAGE = ROOT / "benchmarks" / "public.md"

HEAD = """\
# Official programs, as they are

{count} programs of torch, Lightning, accelerate and transformers, none of them changed, each under
`diagnose --stop-on-suspicion`: on a quiet machine, and next to a busy loop on every core. All have
nothing wrong, so anything but `ok` would be a false alarm: {alarms} of {runs} runs. Data that they
would have downloaded was made up. Made by `tools/make_public.py` on {machine}, with Python {python},
torch {torch} and lightning {lightning}, on {date}.

| program | repository | commit | made up for it | quiet | s | busy | s |
|---|---|---|---|---|---|---|---|
"""


class Program(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An official program.

    Attributes:
        repository: OWNER/NAME.
        at: its commit.
        program: its file in the repository.
        command: run in a copy of the repository's folder, with `{port}` for a free port and `{data}`.
        needs: what of `data` it uses.
    """

    repository: str
    at: str
    program: str
    command: str
    needs: str = ""

    def job(self, name: str, checkouts: Path) -> Job:
        """The program as a job with nothing wrong."""
        return Job(
            name=name,
            folder=checkouts / self.repository,
            command=self.command.replace("{data}", str(checkouts / "data")),
            options=("--stop-on-suspicion",),
            outcome="ok",
            cause="none",
            culprits=(),
        )


def rounds(jobs: Mapping[str, Job]) -> Iterator[tuple[str, str, Trial]]:
    """Every program quiet, then every program busy: its name, which of both, and what came of it."""
    for machine, loops in (("quiet", 0), ("busy", os.cpu_count() or 1)):
        for name, job in jobs.items():
            with busy_loops(loops):
                done = trial.run(job)
            print(f"{machine} {name}: {said(done)} ({done.took:.0f} s)", file=sys.stderr, flush=True)
            if done.wrong():
                print(done.story(), file=sys.stderr, flush=True)
            yield name, machine, done


def said(done: Trial) -> str:
    """`ok`, or the outcome and its cause."""
    outcome, cause = done.report.get("outcome"), done.report.get("cause")
    return "ok" if not done.wrong() else f"**{outcome}, {cause}**"


def main() -> int:
    """Run all, write the page, and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkouts", type=Path, metavar="CHECKOUTS")
    parser.add_argument("--only", metavar="A,B", help="only these programs, and no page")
    options = parser.parse_args()
    programs = toml_file.read(PROGRAMS, dict[str, Program])
    only = set(options.only.split(",")) if options.only else programs.keys()
    if unknown := sorted(only - programs.keys()):
        print(f"{PROGRAMS.name} has no program {unknown[0]}", file=sys.stderr)
        return 64
    programs = {name: one for name, one in programs.items() if name in only}
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": str(options.checkouts.resolve() / "data" / "hf")}
    jobs = {name: one.job(name, options.checkouts.resolve()) for name, one in programs.items()}
    for name, one in programs.items():
        if not (jobs[name].folder / one.program).is_file():
            print(f"{name} needs {one.repository}/{one.program}, which is not there", file=sys.stderr)
            return 64
    found = {(name, machine): done for name, machine, done in rounds(jobs)}
    if not options.only:
        PAGE.write_text(page(programs, found))
    return int(any(done.wrong() for done in found.values()))


def page(programs: Mapping[str, Program], found: Mapping[tuple[str, str], Trial]) -> str:
    """The result as a page."""
    made = provenance()
    text = HEAD.format(
        count=len(programs),
        alarms=sum(done.false_alarm for done in found.values()) or "none",
        runs=len(found),
        **made | {"date": made["date"][: len("YYYY-MM-DD")]},
    )
    for name, one in programs.items():
        cells = [f"`{one.program}`", one.repository, one.at[:10], one.needs]
        for machine in ("quiet", "busy"):
            done = found[name, machine]
            cells += [said(done), f"{done.took:.0f}"]
        text += f"| {' | '.join(cells)} |\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
