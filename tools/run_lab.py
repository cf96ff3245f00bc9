"""Starts JupyterLab on this checkout. Run by make: `.venv/bin/python tools/run_lab.py`.

Options go to JupyterLab as they are, for example --no-browser or --port=9000.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
import secrets
import socket
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from carry_progress import CarryError, carry
from jupyter_env import configure, dress, jupyter_env, transport
from platformdirs import user_state_path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
START = "notebooks/index.ipynb"


def private(venv: Path) -> Path:
    """Return the folder of Jupyter's own files: in the checkout, or in the user's home where that
    cannot be written, as with one that several users share.
    """
    inside = venv / "jupyter"
    if os.access(inside if inside.exists() else venv, os.W_OK):
        return inside
    return user_state_path("stuck-ranks", appauthor=False) / "jupyter"


def page(root: Path) -> str:
    """Return the page that JupyterLab opens, as a path without its leading slash."""
    return f"lab/tree/{START}" if (root / START).is_file() else "lab"


def lab_arguments(root: Path, env: Mapping[str, str], uid: int, system: str) -> list[str]:
    """Return JupyterLab's arguments for a checkout, an environment, a user id and a system."""
    arguments = [
        f"--ServerApp.root_dir={root}",
        "--ServerApp.ip=127.0.0.1",
        f"--LabApp.default_url=/{page(root)}",
        "--Application.log_level=ERROR",
    ]
    if uid == 0:
        arguments.append("--allow-root")
    screen = system == "Darwin" or any(
        env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME")
    )
    if not screen or env.get("SSH_CONNECTION"):
        arguments.append("--no-browser")
    return arguments


def welcome(
    server: Mapping[str, object], opened: str, env: Mapping[str, str], user: str, host: str
) -> str:
    """Return what is printed once the server listens.

    Args:
        server: the record that the server writes of itself.
        opened: the page it opens, as `page` returns it.
        env: the environment, which tells whether this is an SSH session.
        user: who the SSH session belongs to.
        host: the name of this machine.
    """
    port = server["port"]
    text = f"\nThe guide is at {server['url']}{opened}?token={server['token']}\n"
    connection = env.get("SSH_CONNECTION", "").split()
    if connection:
        option = f" -p {connection[3]}" if connection[3:] and connection[3] != "22" else ""
        text += (
            "This is a remote machine. On your own computer run\n"
            f"    ssh{option} -L {port}:127.0.0.1:{port} {user}@{host}\n"
            "and open that address there.\n"
        )
    return text + "Stop it with Ctrl-C."


def write_token(runtime: Path) -> Path:
    """Write a new token to a file that only this user reads, for the variable JUPYTER_TOKEN_FILE.

    With a token of its own JupyterLab prints a second address, of a file in a folder of its own.
    """
    runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = runtime / f"token-{os.getpid()}"
    file.unlink(missing_ok=True)
    file.touch(mode=0o600)
    file.write_text(secrets.token_hex(24))
    return file


def announce(record: Path, seconds: float = 60.0) -> None:
    """Print the welcome as soon as the server has written its record."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            server = json.loads(record.read_text())
        except (OSError, ValueError):
            time.sleep(0.1)
            continue
        try:
            user = getpass.getuser()
        except (KeyError, OSError):  # a container's user id without a name
            user = "USER"
        print(welcome(server, page(ROOT), os.environ, user, socket.gethostname()), flush=True)
        return


def main(options: list[str]) -> None:
    """Run JupyterLab in this process until it is stopped."""
    folder = private(VENV)
    try:
        carry(VENV)
    except CarryError as problem:
        print(problem, file=sys.stderr)
    for name in set(os.environ) - set(env := jupyter_env(VENV, folder, os.environ)):
        del os.environ[name]
    os.environ.update(env)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):  # else JupyterLab asks about news, and shows Markdown as source
        configure(VENV)
    dress(Path(env["JUPYTER_CONFIG_DIR"]))
    runtime = Path(env["JUPYTER_RUNTIME_DIR"])
    record = runtime / f"jpserver-{os.getpid()}.json"
    record.unlink(missing_ok=True)  # a process of the same number may have left one
    token = write_token(runtime)
    os.environ.setdefault("JUPYTER_TOKEN_FILE", str(token))
    threading.Thread(target=announce, args=(record,), daemon=True).start()

    # Imported late: the environment above must be there first.
    from jupyterlab.labapp import main as run_jupyterlab

    arguments = lab_arguments(ROOT, env, os.getuid(), platform.system())
    kernels = f"--KernelManager.transport={transport(runtime)}"
    sys.argv = ["jupyter-lab", *arguments, kernels, *options]
    try:
        run_jupyterlab()
    finally:
        token.unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
