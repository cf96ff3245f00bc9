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


def listed_files(under: str = ".") -> list[str]:
    """The files that git tracks and that are there; in a source distribution, all that are there."""
    if not (ROOT / ".git").exists():
        inside = sorted(path for path in (ROOT / under).rglob("*") if path.is_file())
        return [str(path.relative_to(ROOT)) for path in inside if path.suffix != ".pyc"]
    words = ["git", "ls-files", "-z", under]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in filter(None, listed.decode().split("\0")) if (ROOT / name).is_file()]


def copy_of(folder: Path) -> Path:
    """A copy of the checkout's files, as they are now, in a folder; returned."""
    for name in listed_files():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    return folder
