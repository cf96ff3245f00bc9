"""Stuck Ranks finds out why a multi-process PyTorch job is stuck.

    import stuck_ranks

    report = stuck_ranks.diagnose("torchrun --nproc-per-node 2 train.py")
    print(report.verdict.outcome, report.verdict.culprits, report.verdict.summary)

    report = stuck_ranks.read(["logs/", "dumps/"])

What `__all__` names is meant for programs, and stays as it is. All else may change with any release.
In a notebook, `open_lab`, `open_job`, `open_recording`, `open_artifacts` and `open_practice` show the
panel; they need the packages of `stuck-ranks[labs]`. Each name is imported when it is first used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from .model.facts import Report
    from .panel import open_artifacts, open_job, open_lab, open_practice, open_recording

    __version__: str

__all__ = [
    "Report",
    "__version__",
    "diagnose",
    "open_artifacts",
    "open_job",
    "open_lab",
    "open_practice",
    "open_recording",
    "read",
]

_MODULES = {"Report": ".model.facts"} | {name: ".panel" for name in __all__ if name.startswith("open_")}
"""The modules that have the names which are imported when they are used."""

if __name__ == "helpers":
    from .checkout import rename

    rename(__file__)

# A function below has the name of this package. The import system would put the package in its place,
# were it imported later.
import_module(".diagnose", __name__)


def diagnose(
    command: str | Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    patience: float = 30.0,
    max_seconds: float | None = None,
) -> Report:
    """Run a launch command, watch its ranks, and say why it stops.

    As on the command line, the job is ended at a verdict, and nothing of it is left. What it prints is
    not shown.

    Args:
        command: any launch command, unchanged; a text is split as a shell splits it.
        cwd: its working directory; the current one when None.
        env: its environment; that of this process when None.
        patience: seconds after which a rank that uses no CPU and does not move is a suspicion.
        max_seconds: how long the job may run; None for as long as it takes.

    Returns:
        The report of a job that has ended, that hangs, or that still runs at `max_seconds`.

    Raises:
        stuck_ranks.launch.launch.LaunchError: the command cannot be started.
        KeyboardInterrupt: after Ctrl-C, when nothing of the job is left.
    """
    import shlex

    from .session import Session

    words = shlex.split(command) if isinstance(command, str) else command
    session = Session(words, cwd=cwd, env=env, patience=patience, max_seconds=max_seconds).start()
    try:
        return session.wait()
    except KeyboardInterrupt:
        session.stop()
        session.wait()
        raise


def read(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> Report:
    """The report of a job that is dead or elsewhere, from what it has left.

    Args:
        paths: dumps, logs and recordings, or folders of them; a single path is also taken.

    Raises:
        stuck_ranks.artifacts.files.MissingError: one of the paths is not there.
        stuck_ranks.artifacts.artifacts.NothingError: nothing can be read in any of the files.
        stuck_ranks.observe.recording.RecordingError: a recording cannot be replayed.
    """
    from os import PathLike, fspath

    from .artifacts import artifacts
    from .session import report_of_artifacts

    names = [paths] if isinstance(paths, str | PathLike) else paths
    return report_of_artifacts(artifacts.read([fspath(path) for path in names]))[0]


def __getattr__(name: str) -> Any:
    """The names of `__all__` that are imported when they are used, and the version."""
    if name == "__version__":
        from importlib.metadata import version

        return version("stuck-ranks")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(_MODULES[name], __name__), name)
    except ModuleNotFoundError as absent:
        needs = f"{name} needs {absent.name}: install stuck-ranks[labs]"
        raise ModuleNotFoundError(needs, name=absent.name) from absent


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
