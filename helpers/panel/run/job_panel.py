"""The panel for the learner's own command."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ipywidgets import Text

from ...session import Session
from ..widgets.controls import button, row
from .result import RunResult
from .run_panel import RunPanel
from .runner import Run

StartCommand = Callable[[Sequence[str], Path], Session]


class JobPanel(RunPanel):
    """Runs a command line as it is, without a shell.

    Args:
        command: what is in the field at first.
        make: makes the session of a command in a folder.
        cwd: the folder at first; that of the notebook when empty.
        clock: as for every panel.
    """

    def __init__(
        self,
        command: str = "",
        make: StartCommand | None = None,
        clock: Callable[[], float] = time.monotonic,
        cwd: str = "",
    ) -> None:
        super().__init__("Your job", clock=clock)
        self._make = make or _session
        self._command = Text(
            value=command,
            description="Command",
            placeholder="torchrun --nproc-per-node 2 train.py",
            layout={"width": "100%"},
        )
        self._folder = Text(value=cwd or str(Path.cwd()), description="Folder", layout={"width": "100%"})
        run = button("Run", "play", "Run the command in that folder and watch it", self._run_typed)
        stop = button("Stop", "stop", "End everything the command has started", self.stop)
        self.lay_out(
            self._header, self._command, self._folder, row([run, stop]), self._screen, self._export
        )

    async def run(self, command: str | None = None) -> RunResult:
        """Run a command line and return its result.

        Args:
            command: the command line; what is in the field unless given.

        Raises:
            LaunchError: the command cannot be started.
            ValueError: there is no command, a quote is not closed, or there is no such folder.
        """
        if command is not None:
            self._command.value = command
        run = self._start()
        return RunResult(self._command.value, await self._finished(run))

    def _start(self) -> Run:
        words = shlex.split(self._command.value)
        if not words:
            raise ValueError("There is no command yet: type one into the field.")
        folder = Path(self._folder.value).expanduser()
        if not folder.is_dir():
            raise ValueError(f"There is no folder {self._folder.value}.")
        return self._begin(shlex.join(words), lambda: self._make(words, folder))

    def _run_typed(self) -> None:
        try:
            self._start()
        except ValueError as error:
            self._say(str(error))

    def __repr__(self) -> str:
        return "Your job: Run, Stop; fields for the command and its folder"


def open_job(command: str = "", cwd: str = "") -> JobPanel:
    """A panel for a command of your own.

    Args:
        command: what is in the field at first, as typed into a terminal.
        cwd: the folder to run it in; that of the notebook when empty.
    """
    return JobPanel(command, cwd=cwd)


def _session(command: Sequence[str], folder: Path) -> Session:
    """A session that finds the programs of the kernel's own environment."""
    beside = os.path.dirname(sys.executable)
    path = os.pathsep.join((beside, os.environ.get("PATH", os.defpath)))
    return Session(command, cwd=folder, env=dict(os.environ) | {"PATH": path})
