"""Lessons and their outputs, which are kept apart: a learner is to see none before the first run."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
OUTPUTS = ROOT / "tests" / "notebooks"
"""A copy of every notebook with the outputs of its cells, which nbval compares."""

MADE_BY_RUNS = shutil.ignore_patterns(
    ".runs", ".built", ".ipynb_checkpoints", "__pycache__", "your_turn*"
)


def outputs_of(lesson: Path) -> Path:
    """Where the copy of a notebook with its outputs is."""
    return OUTPUTS / lesson.name


def with_outputs(folder: Path) -> Path:
    """Make a copy of the guide in which every notebook has its outputs.

    Returns:
        The folder `notebooks` inside `folder`.
    """
    guide = folder / "notebooks"
    shutil.copytree(NOTEBOOKS, guide, ignore=MADE_BY_RUNS)
    for lesson in guide.rglob("*.ipynb"):
        shutil.copyfile(outputs_of(lesson), lesson)
    return guide
