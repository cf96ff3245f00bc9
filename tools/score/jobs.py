"""A folder of programs, and what the instrument has to say of each: jobs.toml and marked lines.

A job's keys in jobs.toml:

- command: as a user types it, with `{port}` for a free port and `{taken_port}` for one that a stranger
  listens on; it names its program, a `.py` file of the folder.
- options: of `diagnose`. beside: a command that runs beside the job, started before it.
- outcome, cause, culprits, proved, exit: as in the command line's contract. No culprits: not asked,
  where chance decides which rank is first.
- blockers: the stranger is named. prompt: the verdict comes within 3 s of the stall.
- states: what each rank is at the verdict, where that is always the same.
- suite: `test`, `nightly` or `score`: the shortest run that it is part of; each runs those before it.

Lines stand in the programs: `# <- culprit` is the line of the first cause (none: there is no such line,
unless `where` is `any`), `# <- rank 0` is where rank 0 stands (none: not asked). Several marks of one
line are separated by a comma.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from helpers.model.facts import EXIT_CODES, Cause, Outcome

FILE = "jobs.toml"

_PROGRAM = re.compile(r"[\w./-]+\.py\b")
_MARKED = re.compile(r"# <- (.+?)\s*$")
_MARK = re.compile(r"culprit|rank \d+")

Line = tuple[str, int]
"""File, relative to the job's folder, and line number."""


class CollectionError(Exception):
    """A folder is no collection of jobs; the text says why in one sentence."""


@dataclass(frozen=True)
class Job:
    """One program and what has to be said of it; see the module for the keys."""

    name: str
    folder: Path
    command: str
    outcome: str
    cause: str
    suite: str = "score"
    options: tuple[str, ...] = ()
    beside: str = ""
    culprits: tuple[int, ...] | None = None
    proved: bool = True
    exit: int | None = None
    blockers: bool = False
    prompt: bool = False
    states: tuple[str, ...] | None = None
    where: str = "marked"

    @property
    def control(self) -> bool:
        """True for a job with nothing wrong, in which a hang or an error is a false alarm."""
        return self.outcome in ("ok", "running") and self.cause == "none"

    @property
    def exit_code(self) -> int:
        """The exit code of the instrument: that of the outcome, unless the job declares another."""
        return EXIT_CODES[self.outcome] if self.exit is None else self.exit

    @property
    def program(self) -> Path:
        """The program that the command names."""
        found = _PROGRAM.search(self.command)
        return self.folder / (found[0] if found else "")

    def lines(self) -> dict[str, Line]:
        """The marked lines by mark: `culprit`, `rank 0`, ...

        Raises:
            CollectionError: a mark is none of these, or marks two lines.
        """
        name = str(self.program.relative_to(self.folder))
        found: dict[str, Line] = {}
        for number, line in enumerate(self.program.read_text().splitlines(), start=1):
            match = _MARKED.search(line)
            for mark in match[1].split(", ") if match else ():
                if not _MARK.fullmatch(mark):
                    raise CollectionError(f"{name}:{number}: no such mark: `# <- {mark}`")
                if mark in found:
                    raise CollectionError(f"{name}: `# <- {mark}` marks two lines")
                found[mark] = (name, number)
        return found


def read(folder: Path) -> dict[str, Job]:
    """Every job that a folder declares, by name.

    Raises:
        CollectionError: there is no jobs.toml, it cannot be read, or a job in it is not complete.
    """
    file = folder / FILE
    try:
        declared = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CollectionError(f"{folder} has no {FILE}, which declares its jobs") from None
    except (OSError, ValueError) as problem:
        raise CollectionError(f"{file} cannot be read: {problem}") from None
    if not declared:
        raise CollectionError(f"{file} declares no job")
    return {name: _job(name, folder, values) for name, values in declared.items()}


def select(jobs: dict[str, Job], names: str | None) -> dict[str, Job]:
    """The jobs that a list with commas names; without a list, all.

    Raises:
        CollectionError: a name is unknown.
    """
    wanted = [name for name in (names or "").split(",") if name]
    unknown = [name for name in wanted if name not in jobs]
    if unknown:
        raise CollectionError(f"no job is called {unknown[0]}; see {FILE}")
    return {name: job for name, job in jobs.items() if not wanted or name in wanted}


_KEYS = {field.name: field for field in fields(Job) if field.name not in ("name", "folder")}
_ONE_OF = {
    "outcome": get_args(Outcome),
    "cause": get_args(Cause),
    "where": ("marked", "any"),
    "suite": ("test", "nightly", "score"),
}


def _job(name: str, folder: Path, values: Any) -> Job:
    if not isinstance(values, dict):
        raise CollectionError(f"{FILE}: {name} is no table of keys")
    for key, field in _KEYS.items():
        if key not in values and field.default is MISSING:
            raise CollectionError(f"{FILE}: {name} has no `{key}`")
    for key, value in values.items():
        if key not in _KEYS:
            raise CollectionError(f"{FILE}: {name} has the unknown key `{key}`")
        if not _fits(str(_KEYS[key].type), value):
            raise CollectionError(f"{FILE}: {name} has a `{key}` of the wrong type: {value!r}")
        if key in _ONE_OF and value not in _ONE_OF[key]:
            raise CollectionError(f"{FILE}: {name} has the unknown {key} {value!r}")
    kept: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}
    job = Job(name, folder, **kept)
    try:
        shlex.split(job.command), shlex.split(job.beside)
    except ValueError as problem:
        raise CollectionError(f"{FILE}: a command of {name} cannot be read: {problem}") from None
    if job.program == folder:
        raise CollectionError(f"{FILE}: the command of {name} names no program (.py)")
    if not job.program.is_file():
        raise CollectionError(f"{FILE}: {name} needs {job.program.name}, which is not there")
    return job


def _fits(kind: str, value: Any) -> bool:
    if kind.startswith("tuple"):
        item = int if "int" in kind else str
        return isinstance(value, list) and all(type(part) is item for part in value)
    return type(value) is {"str": str, "bool": bool, "int | None": int}[kind]
