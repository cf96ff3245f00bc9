"""The Pythons of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def python(version: str) -> str:
    """A Python of a version like `3.8`, on PATH or pyenv's; without one, the test is skipped."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    places = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for place in filter(None, places):
        done = subprocess.run([place, "--version"], capture_output=True, text=True, check=False)
        if f"{done.stdout}{done.stderr}".startswith(f"Python {version}."):
            return str(place)
    pytest.skip(f"there is no Python {version}")
