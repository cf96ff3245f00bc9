"""What has to be so before a lab's program starts: memory, disk and ports that are free."""

from __future__ import annotations

import errno
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..launch.control_group import MB
from ..launch.processes import port_owner
from .machine import free_memory


def refusal(
    memory: int,
    disk: int,
    folders: Sequence[Path],
    command: Sequence[str],
    environment: Mapping[str, str],
) -> str:
    """Say why a run would fail for want of something.

    Args:
        memory: megabytes that it takes.
        disk: megabytes that it may take in any of `folders`.
        folders: where it writes.
        command: of the run.
        environment: of the run.

    Returns:
        One sentence for a person, or "".
    """
    if (free := free_memory() // MB) < memory:
        return f"it needs {memory} MB of free memory, and {free} MB are free: end what uses it"
    for folder in folders:
        if (free := shutil.disk_usage(folder).free // MB) < disk:
            return f"it needs {disk} MB of disk in {folder}, and {free} MB are free: make room there"
    port = _port(command, environment)
    return _taken(port) if port else ""


def _port(command: Sequence[str], environment: Mapping[str, str]) -> int | None:
    """The port that rank 0 will listen on: one that MASTER_PORT fixes. Launchers choose their own."""
    said = environment.get("MASTER_PORT", "")
    return int(said) if command[0] == "python" and said.isdigit() else None


def _taken(port: int) -> str:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("", port))
        except OverflowError:
            return f"MASTER_PORT={port} is no port: unset it"
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                return f"its port {port} cannot be used ({error.strerror}): unset MASTER_PORT"
            found = port_owner(port, ())
            owner = f"process {found[0]} ({found[1]})" if found else "a process that cannot be seen"
            return f"its port {port} is in use by {owner}: end that process, or unset MASTER_PORT"
    return ""
