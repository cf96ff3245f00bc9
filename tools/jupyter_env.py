"""The environment in which Jupyter runs here: it uses no files of its own in the user's home."""

from __future__ import annotations

import json
import shutil
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path

STYLE = Path(__file__).resolve().parent.parent / "helpers/panel/show/page.css"

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
    return env


def transport(runtime: Path) -> str:
    """Return how Jupyter is to reach its kernels: `ipc` by Unix sockets in a folder, or `tcp` where
    that folder takes none, as its path is too long or it is a mount that knows no sockets.

    Jupyter looks for free ports, and the kernel binds them a second later: by then another process may
    have one, as ranks bind many. Without its iopub port, ipykernel 7.4 hangs instead of ending.

    Args:
        runtime: the folder, which is made if need be.
    """
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    longest = runtime / f"kernel-{uuid.uuid4()}-ipc-5"
    with socket.socket(socket.AF_UNIX) as tried:
        try:
            tried.bind(str(longest))
        except OSError:
            return "tcp"
    longest.unlink()
    return "ipc"


def configure(venv: Path) -> None:
    """Have JupyterLab, in this environment only, ask nothing about news, open Markdown rendered, and
    break no line in an editor.
    """
    disabled = {"@jupyterlab/apputils-extension:announcements": True}
    _write(venv / "etc/jupyter/labconfig/page_config.json", {"disabledExtensions": disabled})
    viewers = {"defaultViewers": {"markdown": "Markdown Preview"}}
    settings = {
        "@jupyterlab/docmanager-extension:plugin": viewers,
        "@jupyterlab/fileeditor-extension:plugin": {"editorConfig": {"lineWrap": False}},
    }
    _write(venv / "share/jupyter/lab/settings/overrides.json", settings)


def dress(config: Path) -> None:
    """Have JupyterLab show a notebook from the start as it does beside a panel: no listing is broken.

    Args:
        config: its folder of settings, that of one user.
    """
    _write(config / "jupyter_server_config.json", {"LabApp": {"custom_css": True}})
    (config / "custom").mkdir(exist_ok=True)
    shutil.copyfile(STYLE, config / "custom" / "custom.css")


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content) + "\n")
