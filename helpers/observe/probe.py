"""A look at something that answers over the network, by a program of its own, in the background."""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from .interpreter import Interpreter

FAILED: dict[str, Any] = {}
"""What a look has found whose program could not say it."""


class Probe:
    """One look, going on.

    Args:
        address: `host:port` of what is looked at.
        program: the file of the program that looks, and prints what it finds as JSON. Python is given
            its text: the job's owner may not be allowed to read where we are installed.
        interpreter: the Python that runs it; our own does where that cannot be started, as one in a
            container.
    """

    def __init__(self, address: str, program: str, interpreter: Interpreter) -> None:
        host, _, port = address.rpartition(":")
        # Not a pipe: it holds 64 KB, and nobody reads while the look goes on.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process: subprocess.Popen[bytes] | None = None
        for python in (interpreter, Interpreter()):
            user, group = python.owner or (None, None)
            with Path(program).open("rb") as text, suppress(OSError):
                self._process = subprocess.Popen(
                    [python.path, "-", host, port],
                    cwd="/",  # `-` puts the working directory on the path
                    env=python.environment,
                    stdin=text,
                    stdout=self._output,
                    stderr=subprocess.DEVNULL,
                    user=user,
                    group=group,
                    extra_groups=None if user is None else [],
                )
                break

    def result(self) -> dict[str, Any] | None:
        """What the program has printed, None while the look goes on; `FAILED` if it printed nothing."""
        if self._process is not None and self._process.poll() is None:
            return None
        self._output.seek(0)
        try:
            return dict(json.loads(self._output.read()))
        except ValueError:
            return FAILED

    def close(self) -> None:
        """End the look."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._output.close()
