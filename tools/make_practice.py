"""Makes the hangs of notebooks/practice: programs of tests/jobs, and how a run of each was looked at.
Those of the level `slow` are of tests/slow.

    python tools/make_practice.py           every hang
    python tools/make_practice.py 03 17     these hangs
    python tools/make_practice.py --fixed   what a run of each repaired version does

What would give an answer away is left out: names of files, docstrings, and the marks of the tests. A run
that does not end as jobs.toml says is an error, and keeps what was there; the tests hold who is slow to
slow.toml. A repaired version, in `fixed` beside the program, is written by hand: only the files that
differ. Hangs with one can be repaired in the panel.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from make_slow import FILE, FOLDER
from make_slow import Declared as DeclaredSlow
from recorded_run import run_recorded
from score import jobs
from score.jobs import Job

from helpers.labs import toml_file
from helpers.labs.practice import PROGRAM, RECORDING, WORK, Declared, Hang
from helpers.labs.repair import judge_repair, work_of
from helpers.observe.logs import KEEP

ROOT = Path(__file__).resolve().parents[1]
CHOSEN = ROOT / "tools" / "practice.toml"
PRACTICE = ROOT / "notebooks" / "practice"

MARK = re.compile(r" *# (<- |noqa).*$", re.M)
NOTE = re.compile(
    r"^ *(from marks import .*|about_to_block\(\).*"
    r"|import ledger|ledger\.joined\(\)|backward = ledger\.Backward\(model\))\n",
    re.M,
)
NOTED = re.compile(r"^( *)with (?:ledger\.\w+\(.*\)|backward):\n((?:\1    .*\n)+)", re.M)
"""A block of which a program of tests/slow notes how long it takes."""


def stripped(source: str) -> str:
    """A program of one file without what would give the answer away: its docstring."""
    tree = ast.parse(source)
    first = tree.body[0]
    lines = source.splitlines(keepends=True)
    if ast.get_docstring(tree) is not None:
        assert first.end_lineno is not None
        lines = lines[first.end_lineno :]
    return "".join(lines).lstrip()


def program(source: str) -> str:
    """A Python file of tests/jobs without the tests' notes."""
    text = NOTE.sub("", MARK.sub("", source))
    text = NOTED.sub(lambda block: re.sub(r"^    ", "", block[2], flags=re.M), text)
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", "train.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def files_of(job: Job) -> dict[str, str]:
    """Every file of a hang, by its place in the folder: what a learner gets of a job.

    Only the docstring of a program of one file gives its answer away; jobs.toml tells it of the others.
    """
    if not job.within:
        return {PROGRAM: program(stripped(job.program.read_text(encoding="utf-8")))}
    found = {}
    for file in job.files:
        text = file.read_text(encoding="utf-8")
        name = str(file.relative_to(job.folder / job.within))
        found[name] = program(text) if file.suffix == ".py" else text
    return found


def chosen() -> Iterator[tuple[str, str, Job]]:
    """Number, level and job of every hang, in the order of their numbers."""
    hanging, slow = jobs.read(ROOT / "tests" / "jobs"), slow_jobs()
    levels: dict[str, dict[str, str]] = tomllib.loads(CHOSEN.read_text())
    hangs = [(number, level, name) for level, named in levels.items() for number, name in named.items()]
    for number, level, name in sorted(hangs):
        yield number, level, (slow if level == "slow" else hanging)[name]


def slow_jobs() -> dict[str, Job]:
    """The programs of tests/slow, all of which end well."""
    ends = {"outcome": "ok", "cause": "none", "culprits": (), "where": "elsewhere"}
    named = toml_file.read(FOLDER / FILE, dict[str, DeclaredSlow])
    return {
        name: Job(name=name, folder=FOLDER, command=one.command, **ends) for name, one in named.items()
    }


def declared(level: str, job: Job) -> Declared:
    """What hangs.toml says of a job."""
    options = dict(zip(job.options, job.options[1:], strict=False))
    patience = float(options["--patience"]) if "--stop-on-suspicion" in job.options else None
    command = job.command.replace(job.program.name, PROGRAM)
    return msgspec.convert({"command": command, "level": level, "patience": patience}, Declared)


def recorded(hang: Hang, job: Job, place: Path) -> bytes:
    """The recording of a run in a folder; raises RuntimeError when it does not end as it should."""
    try:
        return run_recorded(
            hang.session(place), place / RECORDING, (job.outcome, job.cause, job.culprits)
        )
    except RuntimeError as problem:
        raise RuntimeError(f"{job.name}: {problem}") from None


def worked(hang: Hang, place: Path) -> bytes:
    """What a run of the repaired version does; raises RuntimeError when it does not end well."""
    copy, run = place / "copy", place / "run"
    copy.mkdir()
    run.mkdir()
    hang.copy(copy, fixed=True)
    session = hang.session(run, copy)
    report = session.start().wait()
    printed = {label: session.logs.tail(label, KEEP) for label in session.logs.labels()}
    work = work_of(report, printed)
    judgement = judge_repair(work, work, report, printed)
    if not judgement.passed:
        raise RuntimeError(f"repaired {hang.name}: {judgement}")
    return msgspec.json.format(msgspec.json.encode(work), indent=1) + b"\n"


def make(number: str, job: Job, hang: Declared, *, fixed: bool) -> None:
    """Make the folder of a hang, or run its repaired version. Raises RuntimeError, see above."""
    folder = PRACTICE / "hangs" / number
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        place = Path(name)
        if fixed:
            (folder / WORK).write_bytes(worked(Hang(number, folder, hang), place))
            return
        source = place / "program"
        for file, text in files_of(job).items():
            (source / file).parent.mkdir(parents=True, exist_ok=True)
            (source / file).write_text(text, encoding="utf-8")
        (place / "run").mkdir()
        kept = recorded(Hang(number, source, hang), job, place / "run")
        shutil.copytree(source, folder, dirs_exist_ok=True)
        (folder / RECORDING).write_bytes(kept)


def main() -> int:
    """Make the hangs that are asked for, and write hangs.toml."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("numbers", nargs="*")
    parser.add_argument("--fixed", action="store_true")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    table, failed = "", False
    for number, level, job in chosen():
        hang = declared(level, job)
        patience = "" if hang.patience is None else f"patience = {hang.patience}\n"
        table += f'[{number}]\ncommand = {json.dumps(hang.command)}\nlevel = "{level}"\n{patience}\n'
        repairable = Hang(number, PRACTICE / "hangs" / number, hang).repairable
        if (options.numbers and number not in options.numbers) or (options.fixed and not repairable):
            continue
        try:
            make(number, job, hang, fixed=options.fixed)
        except RuntimeError as problem:
            failed = True
            print(f"{number}: {problem}", file=sys.stderr, flush=True)
            continue
        print(f"{number}: {job.name}", flush=True)
    (PRACTICE / "hangs.toml").write_text("# Made by tools/make_practice.py.\n\n" + table.rstrip() + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
