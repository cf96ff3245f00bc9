"""A folder in which command lines are started, and which nothing of theirs outlives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from command_line import Box, running


@pytest.fixture
def box(tmp_path: Path, processes_left: Callable[[], list[psutil.Process]]) -> Iterator[Box]:
    made = Box(tmp_path)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    assert running(processes_left()) == []
