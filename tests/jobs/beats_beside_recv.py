"""Four ranks: rank 2 waits for a silent server while a thread of its own computes a little."""

import socket
import threading
import time

import torch.distributed as dist


def beat() -> None:
    while True:
        sum(range(400_000))
        time.sleep(0.3)


dist.init_process_group("gloo")
threading.Thread(target=beat, daemon=True).start()
if dist.get_rank() == 2:  # <- parted
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    client.recv(1)  # <- culprit, rank 2
dist.barrier()  # <- rank 0, rank 1, rank 3
