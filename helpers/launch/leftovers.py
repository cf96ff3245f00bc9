"""What runs before have left behind, found and removed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from . import run_folder
from .control_group import remove
from .processes import carriers, end_all, families, same_process


def reap_leftovers(spared: Iterable[int] = ()) -> int:
    """End what is left of this user's runs whose owner has gone, and remove their directories.

    A process is part of a run by the run's id in its environment, by the pid and the start that the
    run has recorded, or by descent. A run that this process is part of is not a leftover.

    Args:
        spared: pids of other processes whose run is to go on.

    Returns:
        How many runs were cleaned up.

    Raises:
        OSError: the folder of the runs cannot be used.
    """
    living = {os.getpid(), *spared}
    return sum(_reap(folder, record, living) for folder, record in _orphaned_runs())


def _orphaned_runs() -> Iterator[tuple[Path, dict[str, Any]]]:
    """Directory and record of every run whose owner has gone without removing it."""
    for file in run_folder.records():
        try:
            record = json.loads(file.read_text())
            if record["place"] != run_folder.place():
                continue
            if record["boot"] != run_folder.boot():
                record["processes"] = []  # their pids are those of others now
            elif same_process(*record["owner"]):
                continue
            yield file.parent, record
        except (OSError, ValueError, KeyError, TypeError):  # just removed, or of another version
            continue


def _reap(folder: Path, record: Mapping[str, Any], spared: set[int]) -> bool:
    recorded = [process for identity in record["processes"] if (process := same_process(*identity))]

    def find() -> list[psutil.Process]:
        return [*recorded, *carriers(folder.name)]

    if any(process.pid in spared for process in families(find())):
        return False
    end_all(find)
    if record.get("group"):
        remove(Path(record["group"]))
    shutil.rmtree(folder, ignore_errors=True)
    return True
