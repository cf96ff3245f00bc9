"""A command line, started in a folder of its own as scripts do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from contract import violations
from repository import ROOT


@dataclass(frozen=True)
class Done:
    """A finished command line."""

    code: int
    out: str
    err: str
    file: Path

    @property
    def report(self) -> dict[str, Any]:
        assert self.file.exists(), f"no JSON; exit code {self.code}\n{self.err[-2000:]}"
        found: dict[str, Any] = json.loads(self.file.read_text())
        assert violations(found) == []
        return found

    @property
    def verdict(self) -> tuple[str, str, list[int]]:
        report = self.report
        return report["outcome"], report["cause"], report["culprits"]


class Box:
    """A folder with its own place for runs; starts command lines in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "job"
        self.folder.mkdir()
        self.temp = folder / "temp"
        self.temp.mkdir()
        self.file = folder / "report.json"
        self.env = {**os.environ, "TMPDIR": str(self.temp), "PYTHONPATH": str(ROOT)}
        self.started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> str:
        (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / name).write_text(text)
        return name

    def words(self, command: Sequence[str], options: Sequence[str]) -> list[str]:
        words = [sys.executable, "-m", "helpers", "diagnose", "--json", str(self.file)]
        return [*words, *options, "--", *command]

    def start(
        self, words: Sequence[str], *, env: dict[str, str] | None = None, stdin: Any = None
    ) -> subprocess.Popen[str]:
        """The command line in a session of its own, so that a signal reaches it alone."""
        process = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.env | (env or {}),
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], text: str | None = None) -> Done:
        out, err = process.communicate(text, timeout=120)
        return Done(process.returncode, out, err, self.file)

    def run(
        self,
        *command: str,
        options: Sequence[str] = (),
        env: dict[str, str] | None = None,
        text: str | None = None,
        words: Sequence[str] | None = None,
    ) -> Done:
        """`diagnose` on a command, or any `words`, to its end."""
        stdin = subprocess.PIPE if text is not None else None
        process = self.start(words or self.words(command, options), env=env, stdin=stdin)
        return self.finish(process, text)

    def runs(self) -> list[Path]:
        """The run directories that exist."""
        return list(self.temp.glob("stuck-ranks-*/*"))


def running(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """Those that still run: an orphan that has ended may wait a while for the system to take note."""
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def read_until(process: subprocess.Popen[str], word: str) -> str:
    """Lines of the command line's stderr up to the first with `word` in it.

    Byte by byte: what a buffer holds, `communicate` would not read later.
    """
    assert process.stderr is not None
    seen = [b""]
    while byte := os.read(process.stderr.fileno(), 1):
        seen[-1] += byte
        if byte == b"\n":
            if word.encode() in seen[-1]:
                return b"".join(seen).decode()
            seen.append(b"")
    raise AssertionError(f"`{word}` never came:\n{b''.join(seen).decode()}")


def python(*words: str) -> list[str]:
    return [sys.executable, *words]
