"""Where things are in this checkout."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
JOBS = ROOT / "tests" / "jobs"
RECORDINGS = ROOT / "tests" / "recordings"
ARTIFACTS = ROOT / "tests" / "artifacts"
"""What a failed browser test leaves to look at; git ignores it."""


def copy_of(folder: Path) -> Path:
    """A copy of what git tracks here, as it is now, in a folder; returned."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder
