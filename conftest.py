"""Keeps every lab on the CPU, leaves your own progress as it is and all lessons but two to the nightly
run, and has nbval reach its kernels by Unix sockets: a port that Jupyter found free may be another
test's when the kernel binds it.
"""

import os
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager
from jupyter_core.paths import jupyter_runtime_dir

os.environ["STUCK_RANKS_HARDWARE"] = "cpu"

STATE = TemporaryDirectory(prefix="stuck-ranks-progress-")
os.environ["STUCK_RANKS_STATE"] = STATE.name


def _kernel_manager(**settings: Any) -> KernelManager:
    """What nbval calls to have a kernel of its own."""
    from jupyter_env import transport  # pytest knows the folder only after it has read this file

    runtime = Path(jupyter_runtime_dir())
    file = runtime / f"kernel-{uuid.uuid4()}.json"
    return KernelManager(transport=transport(runtime), connection_file=str(file), **settings)


nbval.kernel.KernelManager = _kernel_manager

LESSONS = ("01_launch_placement", "05_spawn_ports")
"""The shortest two: one that ends with an error, and one that hangs."""


@pytest.hookimpl(tryfirst=True)  # marks count when pytest selects by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of the other lessons as nightly."""
    for item in items:
        lesson = item.path.stem
        if item.path.suffix == ".ipynb" and lesson[:2].isdigit() and lesson not in LESSONS:
            item.add_marker(pytest.mark.nightly)
