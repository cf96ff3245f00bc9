"""Look into the job's TCPStore without being counted as a worker.

The look is a process of its own (this file, run with HOST and PORT): torch takes seconds to import,
and a client that waits must not hold up the observer. A `TCPStore` client made with
`wait_for_workers=False` leaves the store's count of workers as it is (torch 2.11 to 2.15).
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

TIMEOUT = 4.0
"""Seconds that a connection to the store may take: Linux takes 3 to find that no machine has an address
(`mcast_solicit` of arp(7), three times a second)."""

UNREACHABLE: dict[str, Any] = {"reachable": False, "problem": "does not answer as a store", "keys": []}


class Probe:
    """One look at a store, going on in the background.

    Args:
        address: `host:port` of the store.
        program: what looks, and prints what it finds as JSON.
    """

    def __init__(self, address: str, program: str = __file__) -> None:
        host, _, port = address.rpartition(":")
        # Not a pipe: it holds 64 KB, and nobody reads while the look goes on.
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
        self._process = subprocess.Popen(
            [sys.executable, "-P", program, host, port],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.DEVNULL,
        )

    def result(self) -> dict[str, Any] | None:
        """What `look` gives when it is there, None while the look goes on; unreachable if it failed."""
        if self._process.poll() is None:
            return None
        self._output.seek(0)
        try:
            return dict(json.loads(self._output.read()))
        except ValueError:
            return dict(UNREACHABLE)

    def close(self) -> None:
        """End the look."""
        self._process.kill()
        self._process.wait()
        self._output.close()


def look(host: str, port: int) -> dict[str, Any]:
    """{reachable, problem, keys} of a store; connecting and listing may take `TIMEOUT` seconds each."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=TIMEOUT).close()
    except OSError as error:
        return {**UNREACHABLE, "problem": _problem(error)}
    from datetime import timedelta

    import torch.distributed as dist

    store = dist.TCPStore(
        host, port, is_master=False, timeout=timedelta(seconds=TIMEOUT), wait_for_workers=False
    )
    return {"reachable": True, "problem": "", "keys": [str(key) for key in store.list_keys()]}


def _problem(error: OSError) -> str:
    """Why nobody can be reached at an address, as what that does."""
    if isinstance(error, ConnectionRefusedError):
        return "refuses the connection: nobody listens there"
    if isinstance(error, TimeoutError):
        return "does not answer, as if a firewall dropped what comes"
    if isinstance(error, socket.gaierror):
        return "has a name that cannot be resolved"
    return f"cannot be reached: {(error.strerror or 'unknown error').lower()}"


def main(arguments: Sequence[str]) -> int:
    """Print what the store at HOST PORT holds, as JSON."""
    print(json.dumps(look(arguments[0], int(arguments[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
