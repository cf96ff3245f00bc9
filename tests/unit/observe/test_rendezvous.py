"""What the command line of a launcher says of where the nodes meet."""

from __future__ import annotations

import socket

import pytest

from helpers.model.network import Rendezvous
from helpers.observe.rendezvous import own_port, rendezvous

ALONE = [
    ("torchrun --rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:29400 train.py", 29400),
    ("torchrun --rdzv_backend c10d --rdzv_endpoint localhost:29400 train.py", 29400),
    ("torchrun --nnodes=1 --rdzv-endpoint=localhost:29400 train.py", 29400),
    ("torchrun --nnodes=1:1 --rdzv-endpoint=localhost:29400 train.py", 29400),
    (f"torchrun --rdzv-endpoint={socket.gethostname()}:29400 train.py", 29400),
    ("torchrun --nnodes=2 --rdzv-endpoint=localhost:29400 train.py", None),
    ("torchrun --nnodes 1:4 --rdzv-endpoint=localhost:29400 train.py", None),
    ("torchrun --rdzv-endpoint=192.0.2.1:29400 train.py", None),
    ("torchrun --rdzv-endpoint=localhost train.py", None),
    ("torchrun --master-port=29400 train.py", None),
]

TOGETHER = [
    (
        "torchrun --nnodes=2 --node-rank=1 --master-addr=10.0.0.1 --master-port=29500 train.py",
        Rendezvous("10.0.0.1:29500", 1, 2, "n1"),
    ),
    (
        "torchrun --nnodes 4 --node_rank 3 --master_addr node_a --master_port 29501 train.py",
        Rendezvous("node_a:29501", 3, 4, "n1"),
    ),
    (
        "torchrun --nnodes=1:4 --rdzv-backend=c10d --rdzv-endpoint=[fd00::1]:29400 train.py",
        Rendezvous("[fd00::1]:29400", None, None, "n1"),
    ),
    ("torchrun --nnodes=2 --node-rank=0 train.py", Rendezvous("127.0.0.1:29500", 0, 2, "n1")),
    (
        "accelerate launch --num_machines 2 --machine_rank 1 --main_process_ip 10.0.0.1"
        " --main_process_port 29500 train.py",
        Rendezvous("10.0.0.1:29500", 1, 2, "n1"),
    ),
    ("torchrun --nproc-per-node=2 train.py", None),
    ("torchrun --nnodes=1 --master-addr=10.0.0.1 train.py", None),
]


@pytest.mark.parametrize(("command", "port"), ALONE)
def test_where_a_launcher_of_one_node_meets_nobody_else(command: str, port: int | None) -> None:
    assert own_port(command.split(), socket.gethostname()) == port


@pytest.mark.parametrize(("command", "found"), TOGETHER)
def test_where_launchers_of_several_nodes_meet(command: str, found: Rendezvous | None) -> None:
    assert rendezvous(command.split(), "n1") == found
