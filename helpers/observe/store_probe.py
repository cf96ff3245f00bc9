"""Look into the job's TCPStore without being counted as a worker.

The look is a process of its own (this file, run with HOST and PORT): torch takes seconds to import,
and a client that waits must not hold up the observer. A `TCPStore` client made with
`wait_for_workers=False` leaves the store's count of workers as it is (torch 2.11 to 2.15).
"""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

TIMEOUT = 2.0
"""Seconds that a connection to the store may take."""

_RANK_KEY = re.compile(r"default_pg/\d+//\w+//\d+/(\d+)$")


@dataclass(frozen=True)
class StoreView:
    """What a store holds.

    Attributes:
        reachable: False when nobody listens at its address.
        keys: names of the keys that are set.
    """

    reachable: bool
    keys: tuple[str, ...] = ()

    @property
    def joined(self) -> tuple[int, ...]:
        """Ranks whose gloo address is in the store: they have come to the default process group."""
        found = {int(match[1]) for key in self.keys if (match := _RANK_KEY.search(key))}
        return tuple(sorted(found))


class Probe:
    """One look at a store, going on in the background.

    Args:
        address: `host:port` of the store.
    """

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__, host, port],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def result(self) -> StoreView | None:
        """The view when it is there, None while the look goes on; unreachable when it failed."""
        if self._process.poll() is None:
            return None
        output = self._process.stdout.read() if self._process.stdout else ""
        try:
            answer = json.loads(output)
            return StoreView(bool(answer["reachable"]), tuple(answer["keys"]))
        except (ValueError, KeyError):
            return StoreView(reachable=False)

    def close(self) -> None:
        """End the look."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


def look(host: str, port: int) -> StoreView:
    """Connect to a store and list its keys; takes `TIMEOUT` seconds at most for each step."""
    try:
        socket.create_connection((host, port), timeout=TIMEOUT).close()
    except OSError:
        return StoreView(reachable=False)
    from datetime import timedelta

    import torch.distributed as dist

    store = dist.TCPStore(
        host, port, is_master=False, timeout=timedelta(seconds=TIMEOUT), wait_for_workers=False
    )
    return StoreView(reachable=True, keys=tuple(str(key) for key in store.list_keys()))


def main(arguments: Sequence[str]) -> int:
    """Print what the store at HOST PORT holds, as JSON."""
    view = look(arguments[0], int(arguments[1]))
    print(json.dumps({"reachable": view.reachable, "keys": view.keys}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
