"""A folder of programs, and what the instrument has to say of each: jobs.toml and marked lines.

Marked lines are in the programs. `# <- culprit` is the line of the first cause; without it there is no
such line, unless `where` is `any`. `# <- parted` is the statement at which the ranks parted; without it
none may be named. `# <- rank 0` is the line at which rank 0 is; without it that is not checked. Several
marks of one line are separated by a comma.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from helpers.labs import toml_file
from helpers.model.facts import EXIT_CODES, Cause, Outcome

FILE = "jobs.toml"

_PROGRAM = re.compile(r"[\w./-]+\.py\b")
_MARKED = re.compile(r"# <- (.+?)\s*$")
_MARK = re.compile(r"culprit|parted|rank \d+")

Line = tuple[str, int]
"""File, relative to the job's folder, and line number."""


class CollectionError(Exception):
    """A folder is not a collection of jobs; the text says why in one sentence."""


class WithNCCL(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What comes of a program with NCCL and CUDA tensors, where that is not what comes with gloo.

    By the sources of torch and NCCL (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp): a call returns
    once it is enqueued, so its rank is at another line than the marked one; `barrier` is an all_reduce
    of one float, and meets one; sizes are not exchanged, so small tensors of different sizes pass. What
    is left out is as with gloo.

    Attributes:
        culprits: `by chance` where chance decides.
    """

    outcome: Outcome | None = None
    cause: Cause | None = None
    culprits: tuple[int, ...] | Literal["by chance"] | None = None


class Declared(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What jobs.toml says of one program.

    Attributes:
        command: as a user types it, with `{port}` for a free port and `{taken_port}` for one that a
            foreign process listens on; it names its program, a `.py` file of the folder.
        outcome, cause, proved, exit: as in the command line's contract; the exit code is that of the
            outcome when None.
        within: the folder, below that of the jobs, in which the command runs and whose files are the
            program; empty for a program of one file.
        suite: the shortest run that it is part of; each includes those before it.
        options: of `diagnose`.
        beside: a command that runs beside the job, started before it.
        culprits: None where chance decides which rank is first: they are not asked then.
        applies: the fixes of the cause's page that fit; None where that is not asked.
        blockers: the foreign process is named.
        prompt: the verdict comes within 3 s of the stall.
        states: what each rank is at the verdict, where that is always the same.
        where: see the module; `elsewhere` for ranks that are at no marked line.
        nccl: what differs with NCCL; None where nothing does.
    """

    command: str
    outcome: Outcome
    cause: Cause
    within: str = ""
    suite: Literal["test", "nightly", "score"] = "score"
    options: tuple[str, ...] = ()
    beside: str = ""
    culprits: tuple[int, ...] | None = None
    applies: tuple[int, ...] | None = None
    proved: bool = True
    exit: int | None = None
    blockers: bool = False
    prompt: bool = False
    states: tuple[str, ...] | None = None
    where: Literal["marked", "any", "elsewhere"] = "marked"
    nccl: WithNCCL | None = None

    def __post_init__(self) -> None:
        for command in (self.command, self.beside):
            try:
                shlex.split(command)
            except ValueError as problem:
                raise ValueError(f"the command {command!r} cannot be read: {problem}") from None
        if not _PROGRAM.search(self.command):
            raise ValueError("the command names no program (.py)")


class Job(Declared, frozen=True, kw_only=True):
    """One program and what has to be said of it."""

    name: str
    folder: Path

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
        assert found is not None
        return self.folder / self.within / found[0]

    @property
    def files(self) -> tuple[Path, ...]:
        """All files of the program, the one that the command names first."""
        if not self.within:
            return (self.program,)
        all_files = (path for path in (self.folder / self.within).rglob("*") if path.is_file())
        kept = (path for path in all_files if "__pycache__" not in path.parts)
        return tuple(sorted(kept, key=lambda path: (path != self.program, path)))

    def with_nccl(self) -> Job:
        """The same job as it is expected to go with NCCL."""
        told = self.nccl
        if told is None:
            return self
        culprits = self.culprits if told.culprits is None else told.culprits
        return structs.replace(
            self,
            outcome=told.outcome or self.outcome,
            cause=told.cause or self.cause,
            culprits=None if culprits == "by chance" else culprits,
            where="elsewhere",
        )

    def lines(self) -> dict[str, Line]:
        """The marked lines by mark: `culprit`, `rank 0`, ...

        There are none in a program of another folder, nor where the ranks are elsewhere.

        Raises:
            CollectionError: a mark is none of these, or marks two lines.
        """
        found: dict[str, Line] = {}
        if not self.program.is_file() or self.where == "elsewhere":
            return found
        for file in self.files:
            name = str(file.relative_to(self.folder / self.within))
            for number, line in enumerate(file.read_text().splitlines(), start=1):
                match = _MARKED.search(line)
                for mark in match[1].split(", ") if match else ():
                    if not _MARK.fullmatch(mark):
                        raise CollectionError(f"{name}:{number}: no such mark: `# <- {mark}`")
                    if mark in found:
                        raise CollectionError(f"{name}: `# <- {mark}` marks two lines")
                    found[mark] = (name, number)
        return found


Collection = Annotated[dict[str, Declared], Meta(min_length=1)]


def read(folder: Path) -> dict[str, Job]:
    """Every job that a folder declares, by name.

    Raises:
        CollectionError: jobs.toml cannot be read, a job in it is wrong, or its program is not there.
    """
    try:
        declared = toml_file.read(folder / FILE, Collection)
    except toml_file.TomlError as problem:
        raise CollectionError(str(problem)) from None
    jobs = {name: Job(name=name, folder=folder, **structs.asdict(one)) for name, one in declared.items()}
    for job in jobs.values():
        if not job.program.is_file():
            raise CollectionError(f"{FILE}: {job.name} needs {job.program.name}, which is not there")
    return jobs


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
