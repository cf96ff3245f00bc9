"""Hangs to practise on: programs whose fault no name gives away, each with a recording of a run."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, get_args

import msgspec
from msgspec import Struct

from ..launch.processes import free_port
from ..observe.recording import Recording, RecordingError, load
from ..session import Session, report_of
from . import toml_file
from .lab import LabError, beside_python, labs_folder, set_aside
from .repair import Work, work_of

Level = Literal["easy", "medium", "hard", "large", "slow"]
"""How hard a hang is to find; `slow` has jobs that end well, but wait for one of their ranks."""

PROGRAM, RECORDING, WORK, FIXED = "train.py", "run.jsonl.gz", "work.json", "fixed"
"""In the folder of a hang: its program, and how a run of it was looked at; where it can be repaired,
what a run of the repaired version has done, and the files of that version that differ."""

_CACHES = shutil.ignore_patterns("__pycache__", ".*")

LEVELS: tuple[Level, ...] = get_args(Level)

MAX_SECONDS = 120
"""How long a live run may take."""


class Declared(Struct, frozen=True, forbid_unknown_fields=True):
    """What hangs.toml says of a hang.

    Attributes:
        command: as a person would type it, with `{port}` for a free port.
        patience: of a live run, where the hang cannot be proved; None where it can.
    """

    command: str
    level: Level
    patience: float | None = None


class Hang(msgspec.Struct, frozen=True):
    """A hang to practise on.

    Attributes:
        name: its number.
        folder: with its program and its recording.
    """

    name: str
    folder: Path
    declared: Declared

    @property
    def level(self) -> Level:
        """How hard it is."""
        return self.declared.level

    @property
    def title(self) -> str:
        """What it is called: `hang 01`, `slow job 66`."""
        return f"{'slow job' if self.level == 'slow' else 'hang'} {self.name}"

    @property
    def command(self) -> str:
        """What starts it, to be read."""
        return self.declared.command.replace("{port}", "29500")

    @property
    def program(self) -> Path:
        """The file that its command names."""
        return self.folder / PROGRAM

    @property
    def files(self) -> tuple[Path, ...]:
        """All files that a learner may read and edit, the program first."""
        paths = (path for path in self.folder.rglob("*") if path.is_file() and not self._is_apart(path))
        return tuple(sorted(paths, key=lambda path: (path != self.program, path)))

    @property
    def corrections(self) -> tuple[Path, ...]:
        """The files of a repaired version that differ, to be shown after success only."""
        paths = (path for path in (self.folder / FIXED).rglob("*") if path.is_file())
        return tuple(sorted(path for path in paths if path.suffix != ".pyc"))

    @property
    def repairable(self) -> bool:
        """True where a repaired version is there, so that a learner's can be held to its work."""
        return bool(self.corrections)

    @property
    def copy_folder(self) -> Path:
        """The folder where the learner's copy is, or is to be."""
        return self.folder.parents[1] / f"your_turn_{self.name}"

    def my_copy(self) -> Path:
        """The learner's copy, made if it is missing."""
        if not self.copy_folder.exists():
            self.copy_folder.mkdir()
            self.copy(self.copy_folder)
        return self.copy_folder

    def start_over(self) -> Path:
        """Make the learner's copy again, and return where the old one is kept."""
        backup = set_aside(self.copy_folder)
        self.my_copy()
        return backup

    def copy(self, folder: Path, *, fixed: bool = False) -> None:
        """Copy its files into a folder, over those that are there.

        Args:
            folder: which is there.
            fixed: True for the repaired version.
        """
        _copy(self.files, self.folder, folder)
        if fixed:
            _copy(self.corrections, self.folder / FIXED, folder)

    def _is_apart(self, path: Path) -> bool:
        parts = path.relative_to(self.folder).parts
        return parts[0] in (FIXED, RECORDING, WORK) or any(
            part == "__pycache__" or part.startswith(".") for part in parts
        )

    def recording(self) -> Recording:
        """How a run of it was looked at. Raises LabError when it cannot be read."""
        try:
            return load(self.folder / RECORDING)
        except RecordingError as problem:
            raise LabError(str(problem)) from problem

    def hung(self) -> Work:
        """What its recorded run had done when it hung. Raises LabError when it cannot be read."""
        recording = self.recording()
        report = report_of(tuple(recording.snapshots()), recording.watched.patience)
        return work_of(report, recording.logs)

    def work(self) -> Work:
        """What a run of the repaired version has done. Raises LabError when it cannot be read."""
        try:
            return msgspec.json.decode((self.folder / WORK).read_bytes(), type=Work)
        except (OSError, msgspec.MsgspecError) as problem:
            raise LabError(f"what hang {self.name} is to do cannot be read: {problem}") from problem

    def session(self, folder: Path, files_from: Path | None = None) -> Session:
        """A run of it in a folder of its own, not started yet.

        Args:
            folder: which is there; the files are copied into it.
            files_from: a folder with the learner's copy, None for the files as they are.
        """
        if files_from is None:
            self.copy(folder)
        else:
            shutil.copytree(files_from, folder, ignore=_CACHES, dirs_exist_ok=True)
        first, *rest = shlex.split(self.declared.command.format(port=free_port()))
        return Session(
            [beside_python(first), *rest],
            cwd=folder,
            env=dict(os.environ),
            patience=self.declared.patience or 30.0,
            max_seconds=MAX_SECONDS,
            stop_on_suspicion=self.declared.patience is not None,
        )


def _copy(files: Iterable[Path], source: Path, target: Path) -> None:
    for file in files:
        copied = target / file.relative_to(source)
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copied)


def all_hangs() -> list[Hang]:
    """Every hang of the guide, in the order of its number.

    Raises:
        LabError: hangs.toml cannot be used.
    """
    folder = labs_folder() / "practice"
    try:
        declared = toml_file.read(folder / "hangs.toml", dict[str, Declared])
    except toml_file.TomlError as problem:
        raise LabError(str(problem)) from None
    return [Hang(name, folder / "hangs" / name, entry) for name, entry in sorted(declared.items())]
