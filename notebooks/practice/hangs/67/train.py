import multiprocessing
import socket
import time

import torch
import torch.distributed as dist
from torch import nn

STEPS = 100


def serve(listening, delay):
    connection, _ = listening.accept()
    while connection.recv(1):
        time.sleep(delay)
        connection.sendall(bytes(1024))


def read(connection):
    connection.sendall(b"?")
    received = b""
    while len(received) < 1024:
        received += connection.recv(1024)
    return torch.frombuffer(bytearray(received), dtype=torch.float32)


def main():
    dist.init_process_group("gloo")
    listening = socket.create_server(("127.0.0.1", 0))
    delay = 0.15 if dist.get_rank() == 2 else 0.05
    server = multiprocessing.Process(target=serve, args=(listening, delay), daemon=True)
    server.start()
    connection = socket.create_connection(listening.getsockname())
    model = nn.Linear(256, 256)
    for _ in range(STEPS):
        model(read(connection)).mean().backward()
        dist.all_reduce(model.weight.grad)
        model.zero_grad()
    connection.close()
    server.join()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
