"""Where the command line of a launcher says that the nodes meet. No I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..model.network import Rendezvous
from .identity import LOOPBACK

# torchrun: torch/distributed/run.py, 2.11 to 2.15; accelerate: accelerate/commands/launch.py
_NODES = r"--(?:nnodes|num_machines)[= ](\S+)"
_NODE = r"--(?:node[-_]rank|machine_rank)[= ](\d+)"
_ENDPOINT = r"--rdzv[-_]endpoint[= ](\S+:\d+)"
_ADDRESS = r"--(?:master[-_]addr|main_process_ip)[= ](\S+)"
_PORT = r"--(?:master[-_]port|main_process_port)[= ](\d+)"

ONE_NODE = (None, "1", "1:1")
"""How many nodes a launcher is told of that is to meet no other."""

DEFAULT = "127.0.0.1", "29500"
"""Where torchrun looks when it is told of several nodes and of no address."""


def rendezvous(command: Sequence[str], host: str) -> Rendezvous | None:
    """Where a launcher meets those of other nodes; None for one that is to meet nobody.

    Args:
        command: its words.
        host: name of its machine.
    """
    words = " ".join(command)
    nodes = _option(_NODES, words)
    endpoint = _option(_ENDPOINT, words)
    if nodes in ONE_NODE:
        return None
    if endpoint is None:
        endpoint = f"{_option(_ADDRESS, words) or DEFAULT[0]}:{_option(_PORT, words) or DEFAULT[1]}"
    node = _option(_NODE, words)
    number = int(nodes) if nodes is not None and nodes.isdigit() else None
    return Rendezvous(endpoint, None if node is None else int(node), number, host)


def own_port(command: Sequence[str], host: str) -> int | None:
    """The port on this machine at which a launcher of one node is to meet no other node, or None."""
    words = " ".join(command)
    address, _, port = (_option(_ENDPOINT, words) or "").rpartition(":")
    alone = _option(_NODES, words) in ONE_NODE
    return int(port) if alone and address in (*LOOPBACK, host) else None


def _option(pattern: str, words: str) -> str | None:
    match = re.search(pattern, words)
    return match[1] if match else None
