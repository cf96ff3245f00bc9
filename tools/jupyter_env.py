"""The environment in which Jupyter runs here: nothing of the user's home is read or written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

# Variables that would bring in another Python's packages or another Jupyter's settings.
DROPPED = ("PYTHONPATH", "PYTHONHOME", "JUPYTER_PATH", "JUPYTER_CONFIG_PATH")


def jupyter_env(venv: Path, folder: Path, base: Mapping[str, str]) -> dict[str, str]:
    """Return base with the virtual environment in front and all of Jupyter's folders in folder."""
    env = {name: value for name, value in base.items() if name not in DROPPED}
    env.update(
        VIRTUAL_ENV=str(venv),
        PATH=f"{venv / 'bin'}:{base.get('PATH', '/usr/bin:/bin')}",
        JUPYTER_CONFIG_DIR=str(folder / "config"),
        JUPYTER_DATA_DIR=str(folder / "data"),
        JUPYTER_RUNTIME_DIR=str(folder / "runtime"),
        JUPYTERLAB_SETTINGS_DIR=str(folder / "settings"),
        JUPYTERLAB_WORKSPACES_DIR=str(folder / "workspaces"),
        IPYTHONDIR=str(folder / "ipython"),
    )
    env.setdefault("STUCK_RANKS_STATE", str(folder / "progress"))
    return env


def configure(venv: Path) -> None:
    """Have JupyterLab, in this environment only, ask nothing about news and open Markdown rendered."""
    disabled = {"@jupyterlab/apputils-extension:announcements": True}
    _write(venv / "etc/jupyter/labconfig/page_config.json", {"disabledExtensions": disabled})
    viewers = {"defaultViewers": {"markdown": "Markdown Preview"}}
    settings = {"@jupyterlab/docmanager-extension:plugin": viewers}
    _write(venv / "share/jupyter/lab/settings/overrides.json", settings)


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content) + "\n")
