"""Runs a program plainly and under the instrument, and compares what can be seen of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LABEL = re.compile(r"^\[(?! *[\d.]+ s\])[^\]]+\] ")


@dataclass(frozen=True)
class Behaviour:
    """What of a job can be seen from outside, and what it noted about itself."""

    code: int
    lines: list[str]
    facts: Any


class Lab:
    """Runs one program plainly and under the instrument."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "job"
        self.folder.mkdir()
        self.facts = folder / "facts.json"
        self.report = folder / "report.json"
        self.env = {**os.environ, "FACTS": str(self.facts), "TMPDIR": str(folder)}
        self.env.pop("PYTHONPATH", None)

    def plain(self, *command: str) -> Behaviour:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
            check=False,
        )
        return Behaviour(done.returncode, sorted(done.stdout.splitlines()), self.noted())

    def watched(self, *command: str) -> Behaviour:
        """The same, with the job's own exit code and lines as the instrument reports them."""
        front = [str(Path(sys.executable).with_name("stuck-ranks")), "diagnose"]
        done = subprocess.run(
            [*front, "--json", str(self.report), "--", *command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert self.report.exists(), done.stderr
        job = json.loads(self.report.read_text())["job"]
        code = job["exit_code"] if job["signal"] is None else -job["signal"]
        lines = [LABEL.sub("", line) for line in done.stderr.splitlines() if LABEL.match(line)]
        return Behaviour(code, sorted(lines), self.noted())

    def noted(self) -> Any:
        """What the job wrote about itself, once."""
        if not self.facts.exists():
            return None
        found = json.loads(self.facts.read_text())
        self.facts.unlink()
        return found

    def write(self, text: str, name: str = "job.py") -> None:
        (self.folder / name).write_text(text)

    def both(self, text: str, *flags: str) -> Behaviour:
        """Run it both ways; the two must not differ. Returns what they do."""
        self.write(text)
        command = (sys.executable, *flags, "job.py")
        plain, watched = self.plain(*command), self.watched(*command)
        if isinstance(plain.facts, dict):
            changed = {k: (v, watched.facts[k]) for k, v in plain.facts.items() if v != watched.facts[k]}
            assert changed == {}
        assert watched == plain
        return plain


NOTE = """
import json, os
def note(facts):
    with open(os.environ["FACTS"], "w") as file:
        json.dump(facts, file, default=repr)
"""
