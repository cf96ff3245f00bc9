"""Carries a learner's progress out of .venv, where `make lab` used to keep it, to where it stays when
.venv is made anew or removed. Standard library only.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

VENV = Path(__file__).resolve().parent.parent / ".venv"


class CarryError(Exception):
    """Progress cannot be carried over; the text says why in one sentence."""


def state(env: Mapping[str, str], system: str) -> Path:
    """Return the folder of progress, as `helpers.labs.progress.folder` does with platformdirs.

    Raises:
        RuntimeError: there is no home directory.
    """
    if own := env.get("STUCK_RANKS_STATE"):
        return Path(own)
    if system == "Darwin":
        return Path.home() / "Library" / "Application Support" / "stuck-ranks"
    base = Path(env.get("XDG_STATE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "state") / "stuck-ranks"


def carry(venv: Path, env: Mapping[str, str] = os.environ) -> None:
    """Move the files of progress out of an environment, unless there are newer ones already.

    Those of another user of the same checkout stay.

    Raises:
        CarryError: they cannot be moved; what has not been moved is where it was.
    """
    old = venv / "jupyter" / "progress"
    if not old.is_dir() or old.stat().st_uid != os.getuid():
        return
    try:
        new = state(env, platform.system())
        if new.resolve() == old.resolve():
            return
        new.parent.mkdir(parents=True, exist_ok=True)
        new.mkdir(mode=0o700, exist_ok=True)
        for file in old.glob("*.json"):
            target = new / file.name
            if not target.exists() or target.stat().st_mtime < file.stat().st_mtime:
                staged = new / f".{file.name}.carried"
                shutil.copy2(file, staged)
                staged.replace(target)
        shutil.rmtree(old)
    except (OSError, RuntimeError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise CarryError(
            f"Your progress stays in {old}, as it cannot be kept where it is safe: {reason} "
            "(STUCK_RANKS_STATE names another folder)."
        ) from problem


if __name__ == "__main__":
    try:
        carry(VENV)
    except CarryError as error:
        sys.exit(str(error))
