"""A healthy job goes its own way: every test of that, over and over, half of the times on busy cores."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from score.trial import ROOT
from steady import busy_loops

from .part import Part

TITLE = "The job's own way"
FILES = {
    "test_own_way": "signals, output, prompts, what is left running, `finally`",
    "test_corners": "descriptors, namespaces, folders, interpreters",
    "test_changes": "what a program can see of its surroundings",
    "test_secrets": "secrets in reports and recordings",
}
"""The files of `tests/real` -> what they are about."""


def measure(rounds: int) -> Part:
    """Run the tests so many times; what fails, or does not run at all, is a fault.

    Each compares a program under the instrument with the same program without it.
    """
    passed: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    faults: list[str] = []
    for number in range(rounds):
        with busy_loops((os.cpu_count() or 1) * (number % 2)):
            for file, test, outcome in _run():
                passed[file] += outcome == "passed"
                skipped[file] += outcome == "skipped"
                if outcome == "failed":
                    faults.append(f"{test}, in round {number + 1}")
    faults += [f"{file}.py: no test ran" for file in FILES if not passed[file]]
    lines = ["| what | as without it | not as without it | not tried |", "|---|---|---|---|"]
    for file, about in FILES.items():
        failed = sum(fault.startswith(f"{file}::") for fault in faults)
        lines.append(f"| {about} (`{file}.py`) | {passed[file]} | {failed} | {skipped[file]} |")
    about = f"{rounds} rounds, every other one while both cores are kept busy."
    rest = "Not tried is what needs an interpreter or a right that this machine does not have."
    return Part(TITLE, (about, "", *lines, "", rest), tuple(faults))


def _run() -> Iterator[tuple[str, str, str]]:
    """File, test and outcome of each test."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.xml")
        files = [str(ROOT / "tests" / "real" / f"{file}.py") for file in FILES]
        options = ["-q", "-m", "", "-p", "no:cacheprovider", f"--junitxml={results}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *files],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=False,
        )
        for case in ElementTree.parse(results).iter("testcase"):
            file = case.get("classname", "").rpartition(".")[2]
            bad = case.find("failure") is not None or case.find("error") is not None
            outcome = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
            yield file, f"{file}::{case.get('name')}", outcome
