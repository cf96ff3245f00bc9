"""The labs of the guide: finds them, and runs their programs under the instrument."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import sys
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..launch import run_folder
from ..launch.memory_limit import Limit
from . import calls, machine, toml_file
from .conditions import watched
from .declaration import BEST, MINE, Expected, Knob, LabFile, Program, Turn, Value
from .guide_copy import CHECKOUT, copy_around

if TYPE_CHECKING:
    from ..session import Session

NOTEBOOKS = "STUCK_RANKS_NOTEBOOKS"
"""Variable that names the folder of the labs; see `labs_folder`."""


class LabError(Exception):
    """A lab cannot be used as asked; the text says why in one sentence."""


class RunFolder:
    """A folder for what one run of a lab leaves: results, caches. Only this user can enter it.

    A context manager; also removed when it is no longer used or the process ends. If the process
    is killed, the next run of anything removes it (`helpers.launch.leftovers.reap_leftovers`).

    Attributes:
        path: the folder.

    Raises:
        LabError: it cannot be made.
    """

    def __init__(self) -> None:
        try:
            self.path = run_folder.home() / f"lab-{secrets.token_hex(4)}"
            self.path.mkdir(mode=0o700)
            record = {"run_id": self.path.name, "command": [], "processes": []}
            run_folder.write_record(self.path, record | {"owner": run_folder.identity(os.getpid())})
        except OSError as error:
            raise LabError(f"there is no room for the results of a run: {error}") from error
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def remove(self) -> None:
        """Remove the folder and all in it; idempotent."""
        self._remove()

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()


class Lab:
    """One lab, as it is on this machine.

    Args:
        folder: its folder, which holds its programs and gives it its name.
        file: everything that its `lab.toml` says.

    Attributes:
        programs: by name, the learner's copies (`MINE` and others) last.
        knobs: those of the file; `BEST` has become a value, and one that cannot run here says why.

    Raises:
        LabError: one of its programs is not there.
    """

    def __init__(self, folder: Path, file: LabFile) -> None:
        self.file, self.folder, self.name = file, folder, folder.name
        self.title, self.minutes, self.needs = file.title, file.minutes, file.needs
        for name, program in file.programs.items():
            if not (folder / program.file).is_file():
                where = f"{self.name}/lab.toml: programs.{name}.file"
                raise LabError(f"{where}: there is no {program.file}")
        copies = {
            name: replace(file.programs[turn.copy_of], file=turn.file, text="your own copy")
            for name, turn in file.turns.items()
        }
        self.programs = {**file.programs, **copies}
        self.knobs = {name: self._on_this_machine(knob) for name, knob in file.knobs.items()}
        self.hints, self.quiz, self.predict = file.hints, file.quiz, file.predict
        self.claims, self.references = file.claims, file.references

    def __repr__(self) -> str:
        return f"Lab({self.name!r})"

    def applying(self, program: str, knobs: Mapping[str, str]) -> dict[str, str]:
        """Those of some knobs that apply to a program. Raises LabError."""
        return {name: knobs[name] for name in self._applying(program) if name in knobs}

    def settings(self, program: str, knobs: Mapping[str, str]) -> dict[str, str]:
        """A value for every knob that applies to a program: the given ones, else the defaults.

        Raises:
            LabError: there is no such program, knob or value, the knob does not apply to the program,
                or the values do not go together; the text names what there is.
        """
        applying = self._applying(program)
        for name, value in knobs.items():
            if name not in self.knobs:
                raise LabError(f'{self.name} has no setting "{name}", only {_list(self.knobs)}')
            if value not in self.knobs[name].values:
                values = _list(self.knobs[name].values)
                raise LabError(f'{self.name}: "{value}" is no value of {name}, only {values}')
            if name not in applying:
                which = f"which has {_list(applying)}"
                raise LabError(f'{self.name}: setting "{name}" does not apply to {program}, {which}')
        settings = {name: knobs.get(name, self.knobs[name].default) for name in applying}
        for refused in self.file.refused:
            if refused.covers(settings):
                shown = ", ".join(f"{name} {settings[name]}" for name in refused.knobs)
                raise LabError(f"{self.name}: {shown} do not go together: {refused.why}")
        return settings

    def command(self, program: str, knobs: Mapping[str, str]) -> list[str]:
        """The command that runs a program, as a person would type it in the lab's folder.

        Raises:
            LabError: as for `settings`.
        """
        chosen = self._chosen(program, knobs)
        launchers = [value.launcher for value in chosen if value.launcher]
        words = list(launchers[0]) if launchers else ["python"]
        words.append(self.programs[program].file)
        return words + [word for value in chosen for word in value.arguments]

    def in_terminal(self, program: str, knobs: Mapping[str, str]) -> tuple[str, ...]:
        """The lines with which a person runs a program in a terminal, in the lab's folder.

        Raises:
            LabError: as for `settings`.
        """
        added = dict(self.file.environment)
        for value in self._chosen(program, knobs):
            added |= value.environment
        exports = (f"export {name}={text}" for name, text in added.items())
        lines = (line.replace("{folder}", "$(mktemp -d)") for line in exports)
        return (*lines, shlex.join(self.command(program, knobs)))

    def ranks(self, program: str, knobs: Mapping[str, str]) -> int:
        """The world size of a run. Raises LabError."""
        chosen = self._chosen(program, knobs)
        return next((value.ranks for value in chosen if value.ranks), self.file.ranks)

    def environment(self, program: str, folder: Path, knobs: Mapping[str, str]) -> dict[str, str]:
        """The variables that a run gets on top of those of this process. Raises LabError."""
        added = dict(self.file.environment)
        for value in self._chosen(program, knobs):
            added |= value.environment
        added[self.file.results.environment] = str(folder)
        if (task := self._task(program)) and (functions := watched(task)):
            added |= calls.environment(functions, folder)
        return {name: text.replace("{folder}", str(folder)) for name, text in added.items()}

    def memory_limit(self, program: str, knobs: Mapping[str, str]) -> Limit | None:
        """How much memory a run may take; None without a limit. Raises LabError."""
        chosen = self._chosen(program, knobs)
        megabytes = next((value.memory_limit_mb for value in chosen if value.memory_limit_mb), None)
        at_limit = next((value.at_limit for value in chosen if value.at_limit), None)
        return Limit(megabytes, stall=at_limit == "stall") if megabytes and at_limit else None

    def lacking(self, program: str, knobs: Mapping[str, str] | None = None) -> str:
        """What this machine lacks for a program with some knobs: what needs what, or "".

        Args:
            program: its name.
            knobs: values that differ from the defaults; None asks for the program alone.

        Raises:
            LabError: as for `settings`.
        """
        ranks = self.file.ranks if knobs is None else self.ranks(program, knobs)
        takers = [(program, self._program(program).needs)]
        if knobs is not None:
            settings = self.settings(program, knobs)
            takers += [(f"{k} {v}", self.knobs[k].values[v].needs) for k, v in settings.items()]
        for who, needs in takers:
            for need in needs:
                if what := machine.lacking(need, ranks):
                    return f"{who} {what}"
        return ""

    def recording(self, program: str, knobs: Mapping[str, str]) -> Path:
        """Where a recording of a run is, if there is one: made on a machine that can run it.

        Raises:
            LabError: as for `settings`.
        """
        words = [program, *(f"{name}={value}" for name, value in self.settings(program, knobs).items())]
        return self.folder / "recordings" / f"{'_'.join(words)}.jsonl.gz"

    def _recorded(self, program: str, knobs: Mapping[str, str]) -> str:
        file = self.recording(program, knobs)
        if not file.exists():
            return "It has not been recorded on such a machine yet."
        return f'A recording of it is there: open_recording("{file.relative_to(self.folder)}").'

    def session(self, program: str, *, folder: Path | None = None, **knobs: str) -> Session:
        """A session of one of the programs, not started yet.

        Args:
            program: its name; `mine` is the learner's own copy, made here if it is not there.
            folder: where the ranks leave their results; one that lasts as long as the session
                when None.
            knobs: values that differ from the defaults.

        Raises:
            LabError: as for `settings`, or the machine lacks what the run takes.
        """
        from ..session import Session

        words = self.command(program, knobs)
        if reason := self.lacking(program, knobs):
            recorded = self._recorded(program, knobs)
            raise LabError(f"{self.name} cannot run this here: {reason}. {recorded}")
        keep = None if folder is not None else RunFolder()
        where = folder if keep is None else keep.path
        assert where is not None
        env = dict(os.environ) | self.environment(program, where, knobs)
        writes = (where, self.folder)
        if reason := machine.refusal(self.file.memory_mb, self.file.disk_mb, writes, words, env):
            raise LabError(f"{self.name} is not started: {reason}")
        if program in self.file.turns:
            self.my_copy(program)
        session = Session(
            [beside_python(words[0]), *words[1:]],
            cwd=self.folder,
            env=env,
            max_seconds=self.file.max_seconds,
            memory_limit=self.memory_limit(program, knobs),
        )
        if keep is not None:
            weakref.finalize(session, keep.remove)
        return session

    def expected(self, program: str, knobs: Mapping[str, str]) -> Expected:
        """The report that a program should get. Raises LabError, also for the learner's copy."""
        settings = self.settings(program, knobs)
        for expected in self.file.expected:
            if expected.covers(program, settings):
                return expected
        raise LabError(f"{self.name} expects no report of {program}")

    def results(self, folder: Path) -> list[dict[str, Any]]:
        """What the ranks have left in a folder, in the order of the files' names.

        A file that is not a JSON object counts as an empty one: a rank was ended while it wrote.
        """
        pattern = self.file.results.file.replace("{rank}", "*")
        return [_object(file) for file in sorted(folder.glob(pattern))]

    def with_file(self, path: str) -> Lab:
        """The same lab with one more program: the file at `path`, which is also its name.

        Raises:
            LabError: there is no such file.
        """
        if not Path(path).is_file():
            raise LabError(f"{self.name} has no program {path!r}, and there is no such file")
        lab, file = Lab(self.folder, self.file), str(Path(path).absolute())
        lab.programs[path] = replace(self.programs[MINE], file=file, text="a program of your own")
        return lab

    def copy(self, turn: str = MINE) -> Path:
        """Where the learner's copy for a turn is, or is to be."""
        return self.folder / self.file.turns[turn].file

    def original(self, turn: str = MINE) -> Path:
        """The program that the learner's copy for a turn starts from."""
        return self.folder / self.programs[self.file.turns[turn].copy_of].file

    def my_copy(self, turn: str = MINE) -> Path:
        """The learner's copy for a turn, made if it is missing."""
        copy = self.copy(turn)
        if not copy.exists():
            shutil.copyfile(self.original(turn), copy)
        return copy

    def start_over(self, turn: str = MINE) -> Path:
        """Make the learner's copy again; the old one is kept under the next free number.

        Returns:
            The backup: `your_turn.1.py`, `your_turn.2.py`, ...
        """
        backup = set_aside(self.copy(turn))
        self.my_copy(turn)
        return backup

    def turn(self, program: str) -> Turn:
        """The task that a program is to be judged by: its own, the one that it solves, or the first."""
        return self._task(program) or self.file.turns[MINE]

    def _task(self, program: str) -> Turn | None:
        """The task of a learner's copy, of a solution, and of a file of the learner's own; else None."""
        solved = (turn for turn in self.file.turns.values() if turn.solution == program)
        first = None if program in self.file.programs else self.file.turns[MINE]
        return self.file.turns.get(program) or next(solved, first)

    def _program(self, name: str) -> Program:
        if name not in self.programs:
            raise LabError(f'{self.name} has no program "{name}", only {_list(self.programs)}')
        return self.programs[name]

    def _applying(self, program: str) -> tuple[str, ...]:
        """Names of the knobs that apply to a program. Raises LabError."""
        knobs = self._program(program).knobs
        return tuple(self.knobs) if knobs is None else knobs

    def _chosen(self, program: str, knobs: Mapping[str, str]) -> list[Value]:
        settings = self.settings(program, knobs)
        return [self.knobs[name].values[value] for name, value in settings.items()]

    def _on_this_machine(self, knob: Knob) -> Knob:
        """A knob as it is on this machine."""
        values, runs = {}, [next(iter(knob.values))]
        for name, value in knob.values.items():
            text, ranks = value.text or name, value.ranks or self.file.ranks
            why = next((why for need in value.needs if (why := machine.lacking(need, ranks))), "")
            values[name] = replace(value, text=f"{text} (not here: it {why})" if why else text)
            runs += [] if why else [name]
        return replace(knob, values=values, default=runs[-1] if knob.default == BEST else knob.default)


def set_aside(copy: Path) -> Path:
    """Rename a learner's file or folder with the next free number, and return where it is now."""
    number = 1
    while (backup := copy.with_suffix(f".{number}{copy.suffix}")).exists():
        number += 1
    os.rename(copy, backup)
    return backup


def labs_folder() -> Path:
    """The folder that holds the labs.

    That is what the variable says, else the copy of the guide in which the current folder is, as that
    of an open notebook, else that of this checkout.

    Raises:
        LabError: it is not there.
    """
    path = os.environ.get(NOTEBOOKS)
    folder = Path(path) if path else copy_around(_current()) or CHECKOUT / "notebooks"
    if not folder.is_dir():
        raise LabError(
            f"there are no labs at {folder}; set {NOTEBOOKS} to the notebooks folder, or run this in a "
            "copy of the guide (`stuck-ranks guide` makes one)"
        )
    return folder


def _current() -> Path:
    """The current folder, or the root where that has been removed."""
    try:
        return Path.cwd()
    except OSError:
        return Path(os.sep)


def read_lab(folder: Path) -> Lab:
    """The lab in a folder. Raises LabError when its `lab.toml` is wrong."""
    try:
        return Lab(folder, toml_file.read(folder / "lab.toml", LabFile))
    except toml_file.TomlError as problem:
        raise LabError(str(problem)) from None


def find_lab(name: str) -> Lab:
    """The lab of a name (`05_spawn_ports`) or of a number (`05`, `5`).

    Raises:
        LabError: there is none, or its `lab.toml` is wrong.
    """
    names = _names()
    wanted = name.zfill(2) if name.isdigit() else name
    for lab_name in names:
        if wanted in (lab_name, lab_name.split("_")[0]):
            return read_lab(labs_folder() / lab_name)
    raise LabError(f'there is no lab "{name}", only {_list(names)}')


def all_labs() -> list[Lab]:
    """Every lab, in the order of the guide. Raises LabError when one of them is wrong."""
    return [find_lab(name) for name in _names()]


def _names() -> list[str]:
    return sorted(file.parent.name for file in labs_folder().glob("*/lab.toml"))


def _list(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def beside_python(word: str) -> str:
    """The program of this environment, whatever PATH says: `python`, `torchrun`, ..."""
    if word == "python":
        return sys.executable
    return shutil.which(word, path=os.path.dirname(sys.executable)) or word


def _object(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
