"""Look into the job's TCPStore without being counted as a worker.

The look is a process of its own (this file, run with HOST and PORT): torch takes seconds to import,
and a client that waits must not hold up the observer. The job's own Python runs it, which may be as old
as 3.8, since that has torch. A `TCPStore` client made with `wait_for_workers=False` leaves the store's
count of workers as it is (torch 2.11 to 2.15).
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

TIMEOUT = 4.0
"""Seconds that a connection to the store may take: Linux takes 3 to find that no machine has an address
(`mcast_solicit` of arp(7), three times a second)."""


def look(host: str, port: int) -> dict[str, Any]:
    """{reachable, problem, keys} of a store; connecting and listing may take `TIMEOUT` seconds each.

    The keys are None where this Python has no torch, or one that cannot list them.
    """
    try:
        socket.create_connection((host.strip("[]"), port), timeout=TIMEOUT).close()
    except OSError as error:
        return {"reachable": False, "problem": _problem(error), "keys": []}
    try:
        from torch.distributed import TCPStore

        wait = timedelta(seconds=TIMEOUT)
        store = TCPStore(host, port, is_master=False, timeout=wait, wait_for_workers=False)
        keys = [str(key) for key in store.list_keys()]
    except (ImportError, AttributeError):
        return {"reachable": True, "problem": "", "keys": None}
    except RuntimeError:
        return {"reachable": False, "problem": "does not answer as a store", "keys": []}
    return {"reachable": True, "problem": "", "keys": keys}


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
