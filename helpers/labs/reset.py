"""A seat as it was before the first learner: no progress, and no copy of a program under its name."""

from __future__ import annotations

from collections.abc import Iterable

from . import progress
from .lab import Lab, set_aside


def main(labs: Iterable[Lab]) -> int:
    """Forget the progress in some labs, set the learner's copies aside, and print what was done.

    Returns:
        0.

    Raises:
        ProgressError: a file of the progress cannot be removed.
    """
    for lab in labs:
        progress.clear(lab.name)
        copies = [copy for turn in lab.file.turns if (copy := lab.copy(turn)).exists()]
        backups = [f"{copy.name} is now {set_aside(copy).name}" for copy in copies]
        print("; ".join([f"{lab.name}: progress forgotten", *backups]))
    return 0
