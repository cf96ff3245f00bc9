"""Hangs to practise on: programs whose fault no name gives away, each with a recording of a run."""

from __future__ import annotations

import os
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from msgspec import Struct

from ..launch.processes import free_port
from ..observe.recording import Recording, RecordingError, load
from ..session import Session
from . import toml_file
from .lab import LabError, beside_python, labs_folder

Level = Literal["easy", "medium", "hard"]

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


@dataclass(frozen=True)
class Hang:
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
    def command(self) -> str:
        """What starts it, to be read."""
        return self.declared.command.replace("{port}", "29500")

    @property
    def program(self) -> Path:
        """The file with its program."""
        return self.folder / "train.py"

    def recording(self) -> Recording:
        """How a run of it was looked at. Raises LabError when it cannot be read."""
        try:
            return load(self.folder / "run.jsonl.gz")
        except RecordingError as problem:
            raise LabError(str(problem)) from problem

    def session(self, folder: Path) -> Session:
        """A run of it in a folder of its own, not started yet."""
        shutil.copyfile(self.program, folder / self.program.name)
        first, *rest = shlex.split(self.declared.command.format(port=free_port()))
        return Session(
            [beside_python(first), *rest],
            cwd=folder,
            env=dict(os.environ),
            patience=self.declared.patience or 30.0,
            max_seconds=MAX_SECONDS,
            stop_on_suspicion=self.declared.patience is not None,
        )


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
    return [Hang(name, folder / "hangs" / name, one) for name, one in sorted(declared.items())]
