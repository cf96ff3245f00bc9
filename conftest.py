"""Keeps every lab on the CPU, and leaves all lessons but two to the nightly run."""

import os

import pytest

os.environ["STUCK_RANKS_HARDWARE"] = "cpu"

LESSONS = ("01_launch_placement", "05_spawn_ports")
"""The shortest two: one that ends with an error, and one that hangs."""


@pytest.hookimpl(tryfirst=True)  # marks count when pytest selects by them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cells of the other lessons as nightly."""
    for item in items:
        lesson = item.path.stem
        if item.path.suffix == ".ipynb" and lesson[:2].isdigit() and lesson not in LESSONS:
            item.add_marker(pytest.mark.nightly)
