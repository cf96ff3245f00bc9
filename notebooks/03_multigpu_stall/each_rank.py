"""Starts a program once per rank and watches none of them, as `srun` does by default.

python each_rank.py 2 broken.py
"""

import os
import socket
import subprocess
import sys


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def start(rank: int, ranks: int, port: int) -> subprocess.Popen[bytes]:
    own = {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return subprocess.Popen([sys.executable, *sys.argv[2:]], env=os.environ | own)


def main() -> int:
    ranks, port = int(sys.argv[1]), free_port()
    started = [start(rank, ranks, port) for rank in range(ranks)]
    return max(abs(process.wait()) for process in started)


if __name__ == "__main__":
    sys.exit(main())
