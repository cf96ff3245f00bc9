"""Where things are in this checkout."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
JOBS = ROOT / "tests" / "jobs"
RECORDINGS = ROOT / "tests" / "recordings"
ARTIFACTS = ROOT / "tests" / "artifacts"
"""What a failed browser test leaves to look at; git ignores it."""
