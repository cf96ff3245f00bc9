"""Makes the hangs of notebooks/practice: programs of tests/jobs, and how a run of each was looked at.

    python tools/make_practice.py           every hang
    python tools/make_practice.py 03 17     these hangs

What would give an answer away is left out: names of files, docstrings, and the marks of the tests. A run
that does not end as tests/jobs/jobs.toml says is an error, and keeps what was there.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
from make_recordings import scrubbed
from score import jobs
from score.jobs import Job

from helpers.labs.practice import Declared, Hang
from helpers.observe.recording import Tape
from helpers.panel.run.export import Finished, recording
from helpers.report.source_lines import Sources

ROOT = Path(__file__).resolve().parents[1]
CHOSEN = ROOT / "tools" / "practice.toml"
PRACTICE = ROOT / "notebooks" / "practice"

MARK = re.compile(r" *# <- .*$", re.M)
NOTE = re.compile(r"^ *(from marks import .*|about_to_block\(\).*)\n", re.M)


def program(source: str) -> str:
    """A program of tests/jobs without what would give the answer away, and without the tests' notes."""
    tree = ast.parse(source)
    first = tree.body[0]
    lines = source.splitlines(keepends=True)
    if ast.get_docstring(tree) is not None:
        assert first.end_lineno is not None
        lines = lines[first.end_lineno :]
    text = NOTE.sub("", MARK.sub("", "".join(lines))).lstrip()
    command = [sys.executable, "-m", "ruff", "format", "--quiet", "--stdin-filename", "train.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def chosen() -> Iterator[tuple[str, str, Job]]:
    """Number, level and job of every hang."""
    known = jobs.read(ROOT / "tests" / "jobs")
    levels: dict[str, list[str]] = tomllib.loads(CHOSEN.read_text())
    names = [(level, name) for level, several in levels.items() for name in several]
    for number, (level, name) in enumerate(names, start=1):
        yield f"{number:02}", level, known[name]


def declared(level: str, job: Job) -> Declared:
    """What hangs.toml says of a job."""
    options = dict(zip(job.options, job.options[1:], strict=False))
    patience = float(options["--patience"]) if "--stop-on-suspicion" in job.options else None
    command = job.command.replace(job.program.name, "train.py")
    return msgspec.convert({"command": command, "level": level, "patience": patience}, Declared)


def recorded(hang: Declared, text: str, job: Job) -> bytes:
    """The recording of a run; raises RuntimeError when it does not end as it should."""
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        source, folder = Path(name) / "program", Path(name) / "run"
        source.mkdir()
        folder.mkdir()
        (source / "train.py").write_text(text)
        session = Hang("", source, hang).session(folder)
        tape = Tape()
        session.record(tape)
        report = session.start().wait()
        verdict = report.verdict
        if (verdict.outcome, verdict.cause, verdict.culprits) != (job.outcome, job.cause, job.culprits):
            raise RuntimeError(f"{job.name}: {verdict.outcome} {verdict.cause} {verdict.culprits}")
        finished = Finished(
            name="",
            report=report,
            snapshots=(report.snapshot,),
            logs=session.logs,
            sources=Sources(folder),
            recording=tape.recording,
        )
        file = folder / "run.jsonl.gz"
        file.write_bytes(recording(finished))
        return scrubbed(file)


def main() -> int:
    """Make the hangs that are asked for, and write hangs.toml."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("numbers", nargs="*")
    numbers = parser.parse_args().numbers
    os.environ["OMP_NUM_THREADS"] = "1"
    table, failed = "", False
    for number, level, job in chosen():
        hang = declared(level, job)
        patience = "" if hang.patience is None else f"patience = {hang.patience}\n"
        table += f'[{number}]\ncommand = {json.dumps(hang.command)}\nlevel = "{level}"\n{patience}\n'
        if numbers and number not in numbers:
            continue
        text = program(job.program.read_text(encoding="utf-8"))
        try:
            kept = recorded(hang, text, job)
        except RuntimeError as problem:
            failed = True
            print(f"{number}: {problem}", file=sys.stderr)
            continue
        folder = PRACTICE / "hangs" / number
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "train.py").write_text(text)
        (folder / "run.jsonl.gz").write_bytes(kept)
        print(f"{number}: {job.name}, {len(kept)} bytes", flush=True)
    (PRACTICE / "hangs.toml").write_text("# Made by tools/make_practice.py.\n\n" + table.rstrip() + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
