"""A job of two ranks, each with a worker, a port and a lock, which starts in a moment: no torch.

python light_job.py FOLDER    notes its ports and locks in that folder, and ends after two seconds
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

LIFE = 2.0
"""Seconds for which a worker works."""


def rank(folder: Path, number: str) -> int:
    """Take a port and a lock, and wait for a worker."""
    with socket.socket() as server, (folder / f"lock-{number}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server.bind(("127.0.0.1", 0))
        server.listen()
        (folder / f"port-{number}").write_text(str(server.getsockname()[1]))
        worker = multiprocessing.get_context("fork").Process(target=time.sleep, args=(LIFE,))
        worker.start()
        worker.join()
        return int(worker.exitcode != 0)


def launch(folder: Path) -> int:
    """Start two ranks and wait for both."""
    ranks = [
        subprocess.Popen(
            [sys.executable, __file__, str(folder), str(number)],
            env={**os.environ, "RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": "2"},
        )
        for number in range(2)
    ]
    return max(int(one.wait() != 0) for one in ranks)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    sys.exit(rank(place, sys.argv[2]) if len(sys.argv) > 2 else launch(place))
