"""Not a job: a server that takes calls and never answers."""

import socket
import sys

with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    caller, _ = server.accept()
    sys.stdin.read()
